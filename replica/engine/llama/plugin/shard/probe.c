
/*
 * Whether many rows in a call get the same bits as one by one.
 *
 * The same rows are computed three ways: one by one, as one step, and beside
 * another session.  If one bit of the last ones differs (weights of f32 or f16
 * do that on most processors), each row has a call of its own from then on,
 * and that is tried, too.  So a slice always answers with the bits of rows one
 * by one, and its name (shard_name.h) need not say which way it goes.
 *
 * The probe takes the way of all steps, call_run(), and also shows that
 * libllama names this architecture's layers as call.c wants.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "replica/engine/llama/plugin/shard/shard_inner.h"
#include "replica/shard/half.h"


#define PROBE_ROWS  SHARD_CORE_ROWS_MAX
#define PROBE_TAIL  8                   /* rows that are compared */
#define PROBE_HEAD  (PROBE_ROWS - PROBE_TAIL)

typedef struct {
    shard_t  *shard;
    char     *in;                       /* PROBE_ROWS of them */
    char     *out;
    size_t    out_bytes;                /* of a row */
    uint64_t  tail[PROBE_TAIL];
} probe_t;


/* Numbers from -2 to 2. */
static void
probe_fill(const probe_t *p, float *rows, size_t n)
{
    size_t    i;
    uint32_t  bits;

    bits = 1;

    for (i = 0; i < n; i++) {
        bits = bits * 1664525u + 1013904223u;
        rows[i] = (float) (int32_t) bits * 0x1p-30f;
    }

    if (p->shard->core.options.is_fp16) {
        (void) half_encode((uint16_t *) (void *) p->in, rows, n);

    } else {
        memcpy(p->in, rows, n * sizeof(float));
    }
}


static int
probe_init(probe_t *p, shard_t *s)
{
    p->shard = s;
    p->out_bytes = s->core.facts.vocabulary > 0
                   ? s->core.facts.vocabulary * sizeof(float) : s->row_bytes;
    p->in = malloc(PROBE_ROWS * s->row_bytes);
    p->out = malloc(PROBE_ROWS * p->out_bytes);

    if (p->in == NULL || p->out == NULL) {
        return -1;
    }

    probe_fill(p, s->rows, PROBE_ROWS * (size_t) s->core.facts.width);

    return 0;
}


static void
probe_part(probe_t *p, shard_step_t *step, part_t *part, uint32_t place,
    uint32_t position, uint32_t rows)
{
    shard_t  *s;

    s = p->shard;
    memset(step, 0, sizeof(*step));
    step->place = place;
    step->position = position;
    step->rows = rows;
    step->in = p->in + position * s->row_bytes;
    step->out = p->out + position * p->out_bytes;

    memset(part, 0, sizeof(*part));
    part->step = step;
    part->rows = rows;
    part->last_layer = s->last_layer;
    part->is_logits = s->core.facts.vocabulary > 0;
    step->logits_rows = part->is_logits ? rows : 0;
}


static int
probe_call(probe_t *p, part_t *parts, uint32_t n)
{
    uint32_t  i;

    call_run(p->shard, parts, n);

    for (i = 0; i < n; i++) {
        if (parts[i].status != SHARD_STEP_DONE) {
            return -1;
        }
    }

    return 0;
}


/* Rows of the first place, so many a call, or one. */
static int
probe_steps(probe_t *p, uint32_t to, uint32_t rows)
{
    part_t        part;
    uint32_t      i;
    shard_step_t  step;

    llama_memory_clear(llama_get_memory(p->shard->core.context), true);

    for (i = 0; i < to; i += rows) {
        probe_part(p, &step, &part, 0, i, rows);

        if (probe_call(p, &part, 1) != 0) {
            return -1;
        }
    }

    return 0;
}


/* The last rows beside another session's first ones, which are written over
   rows that nobody looks at. */
static int
probe_beside(probe_t *p, int is_stepwise)
{
    part_t        parts[2];
    uint32_t      i;
    shard_step_t  steps[2];

    if (probe_steps(p, PROBE_HEAD, is_stepwise ? 1 : PROBE_HEAD) != 0) {
        return -1;
    }

    for (i = 0; i < PROBE_TAIL; i++) {
        probe_part(p, &steps[0], &parts[0], 0, PROBE_HEAD + i, 1);
        probe_part(p, &steps[1], &parts[1], 1, i, 1);

        if (is_stepwise ? probe_call(p, &parts[0], 1) != 0
                          || probe_call(p, &parts[1], 1) != 0
                        : probe_call(p, parts, 2) != 0)
        {
            return -1;
        }
    }

    return 0;
}


static void
probe_note(const probe_t *p, uint64_t tail[PROBE_TAIL])
{
    uint32_t  i;

    for (i = 0; i < PROBE_TAIL; i++) {
        tail[i] = XXH3_64bits(p->out + (PROBE_HEAD + i) * p->out_bytes,
                              p->out_bytes);
    }
}


/* 0: equal to rows one by one; 1: not; -1: libllama failed. */
static int
probe_compare(probe_t *p, int is_stepwise)
{
    uint64_t  steps[PROBE_TAIL], beside[PROBE_TAIL];

    if (probe_steps(p, PROBE_ROWS, is_stepwise ? 1 : PROBE_ROWS) != 0) {
        return -1;
    }

    probe_note(p, steps);
    memcpy(beside, p->tail, sizeof(beside));

    if (p->shard->core.options.sequences > 1) {
        if (probe_beside(p, is_stepwise) != 0) {
            return -1;
        }

        probe_note(p, beside);
    }

    return memcmp(steps, p->tail, sizeof(steps)) != 0
           || memcmp(beside, p->tail, sizeof(beside)) != 0;
}


static int
probe_all(probe_t *p)
{
    int  rc;

    if (probe_steps(p, PROBE_ROWS, 1) != 0) {
        return -1;
    }

    probe_note(p, p->tail);
    rc = probe_compare(p, p->shard->core.facts.is_stepwise);

    if (rc > 0 && !p->shard->core.facts.is_stepwise) {
        p->shard->core.facts.is_stepwise = 1;
        rc = probe_compare(p, 1);
    }

    llama_memory_clear(llama_get_memory(p->shard->core.context), true);

    return rc;
}


int
probe_run(shard_t *s)
{
    int      rc;
    probe_t  p;

    memset(&p, 0, sizeof(p));
    rc = probe_init(&p, s) == 0 ? probe_all(&p) : -1;
    free(p.in);
    free(p.out);

    if (rc != 0) {
        snprintf(s->core.facts.error, CORE_ERROR_BYTES, rc < 0
                 ? "libllama cannot compute \"%.150s\" layer by layer"
                 : "libllama does not compute \"%.150s\" twice alike",
                 s->core.file);
        return -1;
    }

    return 0;
}
