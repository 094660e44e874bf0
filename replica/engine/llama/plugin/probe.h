
/*
 * Whether results are exact here.
 *
 * The same rows are computed three ways: one by one, as one call, and beside a
 * second sequence.  If a bit of what comes of the last rows differs (weights of
 * f32 or f16 do that on most processors), each row has a call of its own from
 * then on, and all is tried again: slower, and exact.
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

/* What came of the rows of sequence 0 from position PROBE_HEAD on. */
typedef struct {
    uint64_t  logits[PROBE_TAIL];       /* hashes, of hidden states perhaps */
    uint64_t  draws[PROBE_TAIL];        /* 0 where none are drawn */
} probe_found_t;

/* Computes parts in one call, and notes what came of them.  0, or -1. */
typedef int (*probe_call_t)(void *data, const probe_part_t *parts, uint32_t n,
    probe_found_t *found);


/*
 * Sets facts.is_stepwise where only one row a call is exact, and *found: of
 * rows one by one.  0, 1: not even these are exact, or -1: a call failed.  The
 * context is empty then.
 */
int probe_run(core_t *core, probe_call_t call, void *data,
    probe_found_t *found);

#endif /* PROBE_H */
