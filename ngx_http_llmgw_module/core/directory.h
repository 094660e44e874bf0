
/*
 * The directory of an upstream: which base model has which of its pools.
 *
 * An upstream has so many pools as it is configured for, and its replicas may
 * serve any base models.  A base model that appears is bound to the first
 * place that is free, and place i is that of pool i.  It keeps the place while
 * it has a member, a stream or a waiter, and for a day after that, in which
 * requests may wait for a replica that is started for them; for ten minutes if
 * another model needs the place.  All workers bind in one directory, so all of
 * them find the same.
 *
 * It always has the same number of places, however many pools are configured:
 * a reload with more pools or fewer keeps the bindings that it can keep.
 *
 * CRASH RULES
 *
 * The directory is in shared memory and changes under its lock.  A process may
 * be killed between any two stores: a place is bound by the last store of a
 * binding, that of the hash, and free by the only store of an unbinding.  So
 * there is nothing to mend.
 *
 * Pure; zeroed memory is a directory.
 */

#ifndef LLMGW_DIRECTORY_H
#define LLMGW_DIRECTORY_H

#include <stddef.h>
#include <stdint.h>


#define LLMGW_DIRECTORY_PLACES      64      /* pools of an upstream */
#define LLMGW_DIRECTORY_NAME_BYTES  256     /* gossip has no longer names */
#define LLMGW_DIRECTORY_UNUSED_MS   600000          /* if another model needs
                                                       the place */
#define LLMGW_DIRECTORY_KEPT_MS     (24 * 3600000)  /* if none does */
#define LLMGW_DIRECTORY_NONE        UINT32_MAX

typedef struct {
    uint64_t  hash;             /* llmgw_models_hash(); 0: the place is free */
    uint64_t  binding;          /* unique number of this binding */
    uint64_t  used_ms;          /* when it last had a member, a stream or a
                                   waiter */
    char      name[LLMGW_DIRECTORY_NAME_BYTES];
} llmgw_directory_place_t;

typedef struct {
    uint64_t                 nbindings;     /* so far */
    uint32_t                 nrefused;      /* models without a pool, when that
                                               was logged last */
    llmgw_directory_place_t  places[LLMGW_DIRECTORY_PLACES];
} llmgw_directory_t;


/* The place of a base model among the first n; LLMGW_DIRECTORY_NONE. */
uint32_t llmgw_directory_find(const llmgw_directory_t *directory, uint32_t n,
    uint64_t hash);

/* The first free one among the first n places. */
uint32_t llmgw_directory_free(const llmgw_directory_t *directory, uint32_t n);

/*
 * Like find, but a model without a place is bound to the first free one. NONE:
 * there is none, or the name is empty or too long.
 */
uint32_t llmgw_directory_bind(llmgw_directory_t *directory, uint32_t n,
    const char *name, uint64_t hash, uint64_t now_ms);

/* The place's model has a member, a stream or a waiter. */
void llmgw_directory_use(llmgw_directory_t *directory, uint32_t place,
    uint64_t now_ms);

/*
 * 1: the place is bound, and has had no member, stream or waiter for as long as
 * a place is kept. is_wanted: another model needs a place.
 */
int llmgw_directory_is_unused(const llmgw_directory_t *directory,
    uint32_t place, int is_wanted, uint64_t now_ms);

void llmgw_directory_unbind(llmgw_directory_t *directory, uint32_t place);

/*
 * Sets the number of models that have no pool now.  Returns 1 if that is more
 * than before, to be logged.
 */
int llmgw_directory_refused(llmgw_directory_t *directory, uint32_t n);

#endif /* LLMGW_DIRECTORY_H */
