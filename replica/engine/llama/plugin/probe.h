
/*
 * Tests whether results are exact on this host.
 *
 * The same rows are computed three ways: one by one, as one call, and beside a
 * second sequence.  If a bit of the last rows' results differs (as with weights
 * of f32 or f16 on most processors), each row has a call of its own from then
 * on, which is slower and exact, and the probe is repeated so.
 */

#ifndef PROBE_H
#define PROBE_H

#include "replica/engine/llama/plugin/thread.h"


#define PROBE_ROWS  CORE_CONTEXT_MIN
#define PROBE_TAIL  8                   /* rows that are compared */
#define PROBE_HEAD  (PROBE_ROWS - PROBE_TAIL)

typedef struct {
    uint32_t  sequence;                 /* 0 or 1 */
    uint32_t  position;                 /* of the first row */
    uint32_t  rows;
} probe_part_t;

/* Results of the rows of sequence 0 from position PROBE_HEAD on. */
typedef struct {
    uint64_t  logits[PROBE_TAIL];       /* hashes of logits, or of a slice's
                                           hidden states */
    uint64_t  draws[PROBE_TAIL];        /* 0 where none are drawn */
} probe_found_t;

/* Computes parts in one call, and stores their results in found.  0, or -1. */
typedef int (*probe_call_t)(void *data, const probe_part_t *parts, uint32_t n,
    probe_found_t *found);


/*
 * Sets *found to the results of rows one by one, and facts.is_stepwise if only
 * one row a call is exact.  0: results are exact; 1: not even rows one by one
 * are; -1: a call failed.  The context is empty afterwards.
 */
int probe_run(core_t *core, probe_call_t call, void *data,
    probe_found_t *found);

#endif /* PROBE_H */
