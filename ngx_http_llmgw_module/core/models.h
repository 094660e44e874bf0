
/*
 * The models of an upstream: which names its replicas serve.
 *
 * A replica reports a list of names: first its base model, then the names that
 * it serves on top of it (adapters, aliases).  Replicas that report the same
 * share one list here, and a peer of the pick has its number
 * (core/policy/peer.h).  So a request for a name is a set of lists, and whether
 * a peer serves it costs the pick one bit.
 *
 * A list that was too long for gossip is marked as incomplete.  Its replicas
 * may serve any name, as far as is known here; they refuse what they do not.
 *
 * One pool serves one base model, and an upstream has one pool or several.
 * If its replicas have several base models, a model whose replicas serve or are
 * about to comes before one whose replicas are all gone; then the one with the
 * most replicas, the dead included; among equals the first by name. Each worker
 * and each gateway gets the same result, whatever it knew before.  With one
 * pool the first of them is routed; with several each that has a pool
 * (core/directory.h), and the first gets what names no model.
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
    uint64_t     hash;          /* of all its names, to find it */
    uint64_t     base;          /* llmgw_models_hash() of the first name */
    uint32_t     nmembers;      /* with this list; the caller counts */
    uint32_t     nliving;       /* of them, living; the caller counts */
    uint32_t     nserving;      /* of them, ready, draining, starting or
                                   standing by; the caller counts */
    uint8_t      is_cut;        /* some names were cut off */
    uint8_t      is_other;      /* its base model is not routed */
    uint32_t     n;             /* names */
    size_t       bytes;         /* of `names` */
    const char  *names;         /* each ended by a NUL */
    uint64_t     hashes[];      /* of each name */
} llmgw_model_list_t;

/* Zeroed: it has none. */
typedef struct {
    llmgw_model_list_t  *lists[LLMGW_MODELS_MAX];
} llmgw_models_t;

/* A base model, and the replicas of all lists that begin with it. */
typedef struct {
    uint64_t     hash;
    const char  *name;          /* in one of the lists */
    uint32_t     nmembers;
    uint8_t      serves;        /* some of its replicas serve, or are about
                                   to */
} llmgw_model_base_t;

/* How a pool serves a name. */
typedef enum {
    LLMGW_SERVES_NOT = 0,
    LLMGW_SERVES_MAYBE,         /* a list that is cut may have it */
    LLMGW_SERVES_SOME,          /* those of llmgw_models_restrict() do */
    LLMGW_SERVES_ALL            /* it is the base model */
} llmgw_serves_t;

/* A set of lists, by their numbers. */
typedef struct {
    uint64_t  words[LLMGW_MODELS_WORDS];
} llmgw_model_set_t;


uint64_t llmgw_models_hash(const char *name, size_t len);

/* The number of a list; 0: it is not among the models. */
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

/* Removes a list, and returns it for the caller to free. */
llmgw_model_list_t *llmgw_models_remove(llmgw_models_t *models,
    uint32_t number);

/*
 * When members are counted: sets the base models that have any, in the order
 * above. bases has room for LLMGW_MODELS_MAX.
 */
size_t llmgw_models_bases(const llmgw_models_t *models,
    llmgw_model_base_t *bases);

/*
 * Sets the n base models that are routed: marks the lists of all others.
 * Returns 1 if a mark has changed.
 */
int llmgw_models_route(llmgw_models_t *models, const uint64_t *bases,
    size_t n);

/*
 * With one pool: routes the first base model, and sets *base to it.  If none is
 * known, *base becomes 0, and no mark changes.  Returns 1 if a mark has
 * changed.
 */
int llmgw_models_settle(llmgw_models_t *models, uint64_t *base);

/* A list that begins with this base model and belongs to a replica; or NULL. */
const llmgw_model_list_t *llmgw_models_named(const llmgw_models_t *models,
    uint64_t base);

/*
 * A list that begins with the base model of most replicas, if another model
 * comes before that one because none of its replicas serves; else NULL.
 */
const llmgw_model_list_t *llmgw_models_yielding(const llmgw_models_t *models);

/*
 * Whether and how a pool of this base model serves a name, by lists that have
 * members, living or not; base 0: unknown, and the pool serves none.
 */
llmgw_serves_t llmgw_models_serves(const llmgw_models_t *models,
    uint64_t base, uint64_t name);

/*
 * As llmgw_models_serves(), over all base models that are routed.  Sets *base
 * to the one that serves the name best; of equals to `first`, or else to the
 * one with the least hash.
 */
llmgw_serves_t llmgw_models_find_base(const llmgw_models_t *models,
    uint64_t first, uint64_t name, uint64_t *base);

/* 1: the list of that number has this name. */
int llmgw_models_list_has(const llmgw_models_t *models, uint32_t number,
    uint64_t name);

/*
 * 1: some replica reports this name; whether its base model is routed or not.
 */
int llmgw_models_are_reported(const llmgw_models_t *models, uint64_t name);

/*
 * The lists that may serve a request for the base model `wanted`, in a pool
 * whose base model is `base`: those with `name`, and none if the two models
 * differ. wanted 0: the pool's own; base 0: none is known; name 0: the base
 * model itself.  Returns 0 and leaves *set unchanged if every replica of the
 * pool may serve it.
 */
int llmgw_models_restrict(const llmgw_models_t *models, uint64_t base,
    uint64_t wanted, uint64_t name, llmgw_model_set_t *set);

/*
 * The names that living members serve, ascending, each once.  names has room
 * for llmgw_models_count(); returns how many there are.
 */
size_t llmgw_models_count(const llmgw_models_t *models);
size_t llmgw_models_names(const llmgw_models_t *models, const char **names);

/* 1: one of those n names is this one, of `len` bytes and without NUL. */
int llmgw_models_has(const char *const *names, size_t n, const char *name,
    size_t len);

#endif /* LLMGW_MODELS_H */
