
/*
 * Whether results are exact here, and what names them.
 *
 * A probe decodes the same tokens three ways: one by one, as one chunk, and
 * beside a second sequence.  If a logit differs in one bit (weights of f32 or
 * f16 do, on most processors), all is decoded token by token, one sequence a
 * call, and the probe is repeated: slower, and exact again.
 *
 * The name of the numerics is a hash of all that may change a bit: the file,
 * the library, the processor's code, the settings, and the probe's own logits
 * and draws, which catch what this list forgets.  Replicas of one name
 * continue each other's streams without a difference.
 */

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "replica/engine/llama/plugin/generate/generate_inner.h"


#define NUMERICS_TOKENS  CORE_CONTEXT_MIN
#define NUMERICS_TAIL    8              /* whose logits are compared */
#define NUMERICS_HEAD    (NUMERICS_TOKENS - NUMERICS_TAIL)

/* Not exact, with weights as the file has them: other bits again. */
#define NUMERICS_AS_STORED  2

typedef struct {
    uint64_t  logits[NUMERICS_TAIL];
    uint64_t  draws[NUMERICS_TAIL];
} numerics_probe_t;

typedef struct {
    uint64_t  file;
    uint64_t  cpu;
    uint64_t  chunk;
    uint64_t  threads;
    uint64_t  is_exact;                 /* or NUMERICS_AS_STORED */
    char      library[CORE_NAME_BYTES];
    char      variant[CORE_NAME_BYTES];
    numerics_probe_t  probe;
} numerics_name_t;


static llama_token
numerics_token(const generator_t *g, uint32_t i, uint32_t which)
{
    return (llama_token) ((i * 7919 + which * 104729 + 13) % g->room.n);
}


static void
numerics_note(generator_t *g, numerics_probe_t *probe, uint32_t i, int32_t row)
{
    const float      *logits;
    sample_input_t    input;
    sample_params_t   params;

    logits = llama_get_logits_ith(g->core.context, row);
    probe->logits[i] = XXH3_64bits(logits, g->room.n * sizeof(float));

    memset(&params, 0, sizeof(params));
    params.temperature = 1;
    params.top_p = 1;
    params.repeat_penalty = 1;
    memset(&input, 0, sizeof(input));
    input.logits = logits;
    input.position = i;
    probe->draws[i] = sample_token(&params, &g->room, &input);
}


/* Tokens of sequence 0, as one call. */
static int
numerics_chunk(generator_t *g, uint32_t from, uint32_t to,
    numerics_probe_t *probe)
{
    uint32_t  i;

    for (i = from; i < to; i++) {
        local_add(g, numerics_token(g, i, 0), i, 0, i >= NUMERICS_HEAD);
    }

    if (local_decode(g) != 0) {
        return -1;
    }

    for (i = from; i < to; i++) {
        if (i >= NUMERICS_HEAD) {
            numerics_note(g, probe, i - NUMERICS_HEAD,
                          (int32_t) (i - from));
        }
    }

    return 0;
}


/* The tail beside another sequence, in one call with it or by turns. */
static int
numerics_beside(generator_t *g, numerics_probe_t *probe)
{
    uint32_t  i, at;

    for (i = 0; i < NUMERICS_TAIL; i++) {
        at = NUMERICS_HEAD + i;
        local_add(g, numerics_token(g, at, 0), at, 0, 1);

        if (g->core.facts.is_stepwise) {
            if (local_decode(g) != 0) {
                return -1;
            }

            numerics_note(g, probe, i, 0);
        }

        local_add(g, numerics_token(g, i, 1), i, 1, 1);

        if (local_decode(g) != 0) {
            return -1;
        }

        if (!g->core.facts.is_stepwise) {
            numerics_note(g, probe, i, 0);
        }
    }

    return 0;
}


static void
numerics_clear(generator_t *g)
{
    llama_memory_clear(llama_get_memory(g->core.context), true);
}


/* Tokens of sequence 0 in calls of so many. */
static int
numerics_chunks(generator_t *g, uint32_t to, uint32_t step,
    numerics_probe_t *probe)
{
    uint32_t  i;

    numerics_clear(g);

    for (i = 0; i < to; i += step) {
        if (numerics_chunk(g, i, i + step, probe) != 0) {
            return -1;
        }
    }

    return 0;
}


/* 0: all ways are equal; 1: they differ; -1: libllama failed. */
static int
numerics_compare(generator_t *g, numerics_probe_t *probe)
{
    uint32_t          step;
    numerics_probe_t  chunks, beside;

    step = g->core.facts.is_stepwise ? 1 : NUMERICS_HEAD;

    if (numerics_chunks(g, NUMERICS_TOKENS, 1, probe) != 0
        || numerics_chunks(g, NUMERICS_TOKENS,
                           g->core.facts.is_stepwise ? 1 : NUMERICS_TOKENS,
                           &chunks)
           != 0)
    {
        return -1;
    }

    beside = chunks;

    if (g->core.options.sequences > 1
        && (numerics_chunks(g, NUMERICS_HEAD, step, &beside) != 0
            || numerics_beside(g, &beside) != 0))
    {
        return -1;
    }

    numerics_clear(g);

    return memcmp(&chunks, probe, sizeof(chunks)) != 0
           || memcmp(&beside, probe, sizeof(beside)) != 0;
}


static void
numerics_name(generator_t *g, uint64_t file_hash,
    const numerics_probe_t *probe)
{
    numerics_name_t  name;

    memset(&name, 0, sizeof(name));
    name.file = file_hash;
    name.cpu = g->core.backend.hash;
    name.is_exact = (uint64_t) g->core.facts.is_exact;
    name.probe = *probe;
    snprintf(name.library, CORE_NAME_BYTES, "%s", g->core.facts.library);
    snprintf(name.variant, CORE_NAME_BYTES, "%s", g->core.facts.cpu);

    if (!g->core.facts.is_exact) {
        name.is_exact = g->core.options.is_exact || model_is_repacked(&g->core)
                        ? 0 : NUMERICS_AS_STORED;
        name.chunk = g->chunk;
        name.threads = (uint64_t) llama_n_threads(g->core.context);
    }

    snprintf(g->core.facts.numerics, CORE_NAME_BYTES, "llama-%016lx",
             XXH3_64bits(&name, sizeof(name)));
}


int
numerics_probe(generator_t *g, uint64_t file_hash)
{
    int               rc;
    numerics_probe_t  probe;

    memset(&probe, 0, sizeof(probe));
    g->core.facts.is_exact = g->core.options.is_exact;
    rc = 0;

    if (g->core.options.is_exact) {
        rc = numerics_compare(g, &probe);
    }

    if (rc > 0) {
        g->core.facts.is_stepwise = 1;
        rc = numerics_compare(g, &probe);
        g->core.facts.is_exact = (rc == 0);
    }

    if (rc < 0) {
        snprintf(g->core.facts.error, CORE_ERROR_BYTES,
                 "libllama cannot decode with this model");
        return -1;
    }

    numerics_name(g, file_hash, &probe);

    return 0;
}
