
/*
 * The probe of a slice (plugin/probe.h).  A slice that is not even exact row by
 * row is refused.  So a slice always answers with the bits of rows one by one,
 * and its name (shard_name.h) need not say how they are computed.
 *
 * The probe uses call_run(), like all steps, and also shows that libllama names
 * this architecture's layers as call.c expects.
 */

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "replica/engine/llama/plugin/probe.h"
#include "replica/engine/llama/plugin/shard/shard_inner.h"
#include "replica/shard/half.h"


typedef struct {
    shard_t  *shard;
    char     *in;                       /* PROBE_ROWS of them */
    char     *out;
    size_t    out_bytes;                /* of a row */
} trial_t;

_Static_assert(PROBE_ROWS <= SHARD_CORE_ROWS_MAX, "one step's rows");


/* Numbers from -2 to 2. */
static void
trial_fill(const trial_t *t, float *rows, size_t n)
{
    size_t    i;
    uint32_t  bits;

    bits = 1;

    for (i = 0; i < n; i++) {
        bits = bits * 1664525u + 1013904223u;
        rows[i] = (float) (int32_t) bits * 0x1p-30f;
    }

    if (t->shard->core.options.is_fp16) {
        (void) half_encode((uint16_t *) (void *) t->in, rows, n);

    } else {
        memcpy(t->in, rows, n * sizeof(float));
    }
}


static int
trial_init(trial_t *t, shard_t *s)
{
    const core_facts_t  *f;

    f = &s->core.facts;
    t->shard = s;
    t->out_bytes = f->vocabulary > 0 ? f->vocabulary * sizeof(float)
                                     : s->row_bytes;
    t->in = malloc(PROBE_ROWS * s->row_bytes);
    t->out = malloc(PROBE_ROWS * t->out_bytes);

    if (t->in == NULL || t->out == NULL) {
        return -1;
    }

    trial_fill(t, s->rows, PROBE_ROWS * (size_t) f->width);

    return 0;
}


static void
trial_part(const trial_t *t, const probe_part_t *asked, shard_step_t *step,
    part_t *part)
{
    shard_t  *s;

    s = t->shard;
    memset(step, 0, sizeof(*step));
    step->place = asked->sequence;
    step->position = asked->position;
    step->rows = asked->rows;
    step->in = t->in + asked->position * s->row_bytes;
    step->out = t->out + asked->position * t->out_bytes;

    memset(part, 0, sizeof(*part));
    part->step = step;
    part->rows = asked->rows;
    part->last_layer = s->last_layer;
    part->is_logits = s->core.facts.vocabulary > 0;
    step->logits_rows = part->is_logits ? asked->rows : 0;
}


/* Sequence 1 has the first positions: its rows are written over those of
   sequence 0 that are not compared. */
static int
trial_call(void *data, const probe_part_t *asked, uint32_t n,
    probe_found_t *found)
{
    part_t        parts[2];
    uint32_t      i, at;
    shard_step_t  steps[2];
    const trial_t   *t = data;

    for (i = 0; i < n; i++) {
        trial_part(t, &asked[i], &steps[i], &parts[i]);
    }

    call_run(t->shard, parts, n);

    for (i = 0; i < n; i++) {
        if (parts[i].status != SHARD_STEP_DONE) {
            return -1;
        }
    }

    for (i = 0; asked[0].sequence == 0 && i < asked[0].rows; i++) {
        at = asked[0].position + i;

        if (at >= PROBE_HEAD) {
            found->logits[at - PROBE_HEAD]
                = XXH3_64bits(t->out + at * t->out_bytes, t->out_bytes);
        }
    }

    return 0;
}


int
trial_run(shard_t *s)
{
    int            rc;
    trial_t        t;
    probe_found_t  found;

    memset(&t, 0, sizeof(t));
    rc = trial_init(&t, s) == 0 ? probe_run(&s->core, trial_call, &t, &found)
                                : -1;
    free(t.in);
    free(t.out);

    if (rc == 0) {
        return 0;
    }

    return core_fail(&s->core, rc < 0
                     ? "libllama cannot compute \"%.150s\" layer by layer"
                     : "libllama does not compute \"%.150s\" twice alike",
                     s->core.file);
}
