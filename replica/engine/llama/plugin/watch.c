
/*
 * The hash log of a model that is whole: what leaves its layers.
 *
 * libllama calls back for each tensor of its graph.  What leaves layer L-1
 * enters layer L; the last layer's is left out, since only those of its rows
 * are computed of which logits are wanted.  A batch may be split, so rows are
 * counted from its beginning.
 */

#include <stdio.h>
#include <stdlib.h>

#include "replica/engine/llama/hash_log.h"
#include "replica/engine/llama/plugin/plugin_inner.h"


/* The layer that this tensor enters; 0: it is another one. */
static uint32_t
watch_layer(const core_t *core, const char *name)
{
    int       end;
    unsigned  layer;

    return sscanf(name, "l_out-%u%n", &layer, &end) == 1 && name[end] == '\0'
           && layer + 1 < core->facts.layers ? layer + 1 : 0;
}


static void
watch_row(core_t *core, uint32_t layer, const float *row)
{
    uint32_t           at;
    const core_seq_t  *seq;

    at = core->watched[layer]++;
    seq = core->places[core->batch.seq_id[at][0]];

    if (seq != NULL) {
        hash_log_row(core->options.hash_log, seq->name, layer,
                     (uint32_t) core->batch.pos[at], row, core->facts.width);
    }
}


bool
watch_tensor(struct ggml_tensor *t, bool is_question, void *data)
{
    float     *rows;
    core_t    *core;
    int64_t    i;
    uint32_t   layer;

    core = data;
    layer = watch_layer(core, t->name);

    if (is_question || layer == 0) {
        return layer != 0;
    }

    rows = malloc(ggml_nbytes(t));

    if (rows == NULL) {
        return true;
    }

    ggml_backend_tensor_get(t, rows, 0, ggml_nbytes(t));

    for (i = 0; i < t->ne[1]; i++) {
        watch_row(core, layer, rows + i * t->ne[0]);
    }

    free(rows);

    return true;
}
