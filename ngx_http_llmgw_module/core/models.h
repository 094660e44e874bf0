
/*
 * The models of a pool: which names its replicas serve.
 *
 * A replica reports a list of names: first its base model, then the names that
 * it serves on top of it (adapters, aliases).  Replicas that report the same
 * share one list here, and a peer of the pick has its number
 * (core/policy/peer.h).  So a request for a name is a set of lists, and whether
 * a peer serves it costs the pick one bit.
 *
 * A list that was too long for gossip says that it lacks names.  Its replicas
 * may serve any name, as far as is known here; they refuse what they do not.
 *
 * One pool serves one base model.  Where its replicas have several, a base
 * model whose replicas serve or are about to goes before one whose replicas are
 * all gone; then that with the most replicas, the dead included; of equals the
 * first by name.  Each worker and each gateway finds the same, whatever it knew
 * before.
 *
 * Pure.  Lists live in memory of the caller.
 */

#ifndef LLMGW_MODELS_H
#define LLMGW_MODELS_H

#include <stddef.h>
#include <stdint.h>


/* Numbers of lists; a segment holds as many.  0 is that of no list. */
#define LLMGW_MODELS_MAX    256
#define LLMGW_MODELS_WORDS  (LLMGW_MODELS_MAX / 64)

typedef struct {
    uint64_t     hash;          /* of all its names, by which it is asked for */
    uint64_t     base;          /* llmgw_models_hash() of the first */
    uint32_t     nmembers;      /* replicas that have it; the caller counts */
    uint32_t     nliving;       /* of them; the same */
    uint32_t     nserving;      /* of them: ready, draining, starting or
                                   standing by; the same */
    uint8_t      is_cut;        /* it lacks names */
    uint8_t      is_other;      /* its base model is not the pool's */
    uint32_t     n;             /* names */
    size_t       bytes;         /* of `names` */
    const char  *names;         /* each ended by a NUL */
    uint64_t     hashes[];      /* of each name */
} llmgw_model_list_t;

/* Zeroed: it has none. */
typedef struct {
    llmgw_model_list_t  *lists[LLMGW_MODELS_MAX];
    uint64_t             base;  /* llmgw_models_settle(): of the pool's base
                                   model; 0: none is known */
} llmgw_models_t;

/* How a pool serves a name. */
typedef enum {
    LLMGW_SERVES_NOT = 0,
    LLMGW_SERVES_MAYBE,         /* a list that lacks names may have it */
    LLMGW_SERVES_SOME,          /* the lists of llmgw_models_restrict() do */
    LLMGW_SERVES_ALL            /* it is the base model */
} llmgw_serves_t;

/* A set of lists, by their numbers. */
typedef struct {
    uint64_t  words[LLMGW_MODELS_WORDS];
} llmgw_model_set_t;


uint64_t llmgw_models_hash(const char *name, size_t len);

/* The number of a list; 0: it is not here. */
uint32_t llmgw_models_find(const llmgw_models_t *models, uint64_t hash,
    int is_cut);

/*
 * Adds a list of `bytes` bytes: names, none of them empty, each ended by a NUL.
 * Its memory is llmgw_models_bytes() and aligned as malloc() does.  Returns its
 * number; 0: there are too many.
 */
size_t llmgw_models_bytes(const char *names, size_t bytes);
uint32_t llmgw_models_add(llmgw_models_t *models, void *memory, uint64_t hash,
    int is_cut, const char *names, size_t bytes);

/* The list, to be freed. */
llmgw_model_list_t *llmgw_models_remove(llmgw_models_t *models,
    uint32_t number);

/*
 * The members are counted: marks the lists of other base models than the
 * pool's.  Returns 1 if a mark has changed.
 */
int llmgw_models_settle(llmgw_models_t *models);

/* A list that begins with the pool's base model; NULL: none is known. */
const llmgw_model_list_t *llmgw_models_base(const llmgw_models_t *models);

/*
 * A list that begins with the base model of most replicas, where that is not
 * the pool's because none of its replicas serves; else NULL.
 */
const llmgw_model_list_t *llmgw_models_yielding(const llmgw_models_t *models);

/* By lists that have members, living or not. */
llmgw_serves_t llmgw_models_serves(const llmgw_models_t *models, uint64_t name);

/*
 * Which lists may serve a request that came while `base` was the pool's base
 * model: those with `name`, and none once the pool's base model is another.
 * base 0: whatever the pool's is; name 0: the base model itself.  Returns 0 and
 * leaves *set alone if every replica may serve it.
 */
int llmgw_models_restrict(const llmgw_models_t *models, uint64_t base,
    uint64_t name, llmgw_model_set_t *set);

/*
 * The names that living members serve, ascending, each once.  names has room
 * for llmgw_models_count(); returns how many there are.
 */
size_t llmgw_models_count(const llmgw_models_t *models);
size_t llmgw_models_names(const llmgw_models_t *models, const char **names);

/* 1: those n names have this one of `len` bytes, of which none is a NUL. */
int llmgw_models_has(const char *const *names, size_t n, const char *name,
    size_t len);

#endif /* LLMGW_MODELS_H */
