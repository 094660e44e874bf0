
/*
 * Which replicas got a cold request last: the memory of the scorer no-hit-lru.
 *
 * A cold request finds nothing of its prompt in any cache, so it may go
 * anywhere, and is best sent to the replica that has not got a cold one for the
 * longest time: prefixes spread over the fleet.  The replicas that got one are
 * a list, the newest first; those that never got one rank before all of them.
 *
 * A replica that is no longer among the candidates is forgotten with the next
 * cold choice among two or more.
 *
 * Memory is the caller's, zeroed, and holds indices only: it may be shared.
 * The caller orders writers.  A reader without its lock makes a copy, and
 * ranks by that.
 *
 * The links to newer ones, from the oldest on, are the list; each of its
 * changes is one store.  All other words follow from them, so a process may be
 * killed at any store.  `sequence` is odd then, and the next writer mends.
 */

#ifndef LLMGW_COLD_H
#define LLMGW_COLD_H

#include <stddef.h>

#include "core/policy/candidate.h"


typedef struct {
    uint32_t  newer;            /* number of a replica + 1; 0: none */
    uint32_t  older;
    uint32_t  is_listed;
    uint32_t  position;         /* scratch: among the candidates ... */
    uint64_t  mark;             /* ... of the call that has this mark */
} llmgw_cold_link_t;

typedef struct {
    uint32_t           sequence;        /* odd while a change is made */
    uint32_t           nreplicas;
    uint32_t           newest;
    uint32_t           oldest;
    uint64_t           mark;
    llmgw_cold_link_t  links[];
} llmgw_cold_t;


/* For replicas with numbers below nreplicas; memory: zeroed, aligned to 8 */
size_t llmgw_cold_bytes(uint32_t nreplicas);
llmgw_cold_t *llmgw_cold_init(void *memory, uint32_t nreplicas);

/*
 * Sets ranks[i] of each candidate, 0 to n - 1, the longest without a cold
 * request first.  Writes scratch words into *cold: one that others write, too,
 * is copied first.
 */
void llmgw_cold_rank(llmgw_cold_t *cold,
    const llmgw_candidate_t *candidates, uint32_t n, double *ranks);

/* A cold request goes to candidates[chosen]. */
void llmgw_cold_note(llmgw_cold_t *cold, const llmgw_candidate_t *candidates,
    uint32_t n, uint32_t chosen);

/*
 * That number belongs to another replica from now on, which never got a cold
 * request.
 */
void llmgw_cold_forget(llmgw_cold_t *cold, uint32_t replica);

/* 1: a change was interrupted, or another process is making one. */
int llmgw_cold_is_torn(const llmgw_cold_t *cold);

/* With the writers' lock: repairs a list that is torn. */
void llmgw_cold_mend(llmgw_cold_t *cold);

/*
 * Makes *copy, of as many replicas, the same list.  Needs no lock.  0: the list
 * was changed meanwhile, and *copy is empty.
 */
int llmgw_cold_copy(const llmgw_cold_t *cold, llmgw_cold_t *copy);

#endif /* LLMGW_COLD_H */
