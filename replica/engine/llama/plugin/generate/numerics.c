
/*
 * Whether this model's results are exact here (probe.h), and what names them.
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
#include "replica/engine/llama/plugin/probe.h"


/* Not exact, and with weights as the file has them: gives other bits than
   repacked weights. */
#define NUMERICS_AS_STORED  2

typedef struct {
    uint64_t       file;
    uint64_t       cpu;
    uint64_t       chunk;
    uint64_t       threads;
    uint64_t       is_exact;            /* or NUMERICS_AS_STORED */
    char           library[CORE_NAME_BYTES];
    char           variant[CORE_NAME_BYTES];
    probe_found_t  probe;
} numerics_name_t;


static llama_token
numerics_token(const generator_t *g, uint32_t i, uint32_t which)
{
    return (llama_token) ((i * 7919 + which * 104729 + 13) % g->room.n);
}


static void
numerics_note(generator_t *g, probe_found_t *found, uint32_t i, int32_t row)
{
    const float      *logits;
    sample_input_t    input;
    sample_params_t   params;

    logits = llama_get_logits_ith(g->core.context, row);
    found->logits[i] = XXH3_64bits(logits, g->room.n * sizeof(float));

    memset(&params, 0, sizeof(params));
    params.temperature = 1;
    params.top_p = 1;
    params.repeat_penalty = 1;
    memset(&input, 0, sizeof(input));
    input.logits = logits;
    input.position = i;
    found->draws[i] = sample_token(&params, &g->room, &input);
}


static void
numerics_add(generator_t *g, const probe_part_t *part)
{
    uint32_t  i;

    for (i = part->position; i < part->position + part->rows; i++) {
        local_add(g, numerics_token(g, i, part->sequence), i,
                  (int32_t) part->sequence,
                  part->sequence > 0 || i >= PROBE_HEAD);
    }
}


static int
numerics_call(void *data, const probe_part_t *parts, uint32_t n,
    probe_found_t *found)
{
    uint32_t  i, at;
    generator_t  *g = data;

    for (i = 0; i < n; i++) {
        numerics_add(g, &parts[i]);
    }

    if (local_decode(g) != 0) {
        return -1;
    }

    for (i = 0; parts[0].sequence == 0 && i < parts[0].rows; i++) {
        at = parts[0].position + i;

        if (at >= PROBE_HEAD) {
            numerics_note(g, found, at - PROBE_HEAD, (int32_t) i);
        }
    }

    return 0;
}


static void
numerics_name(generator_t *g, uint64_t file_hash,
    const probe_found_t *probe)
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
    int            rc;
    core_t        *core;
    probe_found_t  found;

    core = &g->core;
    memset(&found, 0, sizeof(found));
    rc = core->options.is_exact ? probe_run(core, numerics_call, g, &found) : 0;

    if (rc < 0) {
        return core_fail(core, "libllama cannot decode with this model");
    }

    core->facts.is_exact = core->options.is_exact && rc == 0;
    numerics_name(g, file_hash, &found);

    return 0;
}
