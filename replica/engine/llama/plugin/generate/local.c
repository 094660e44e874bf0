
/*
 * Rows that libllama computes here.
 *
 * Calls keep to the rules under which results are exact: each chunk of a prompt
 * has a call of its own, and a call for running sequences has one token of
 * each, by ascending place (libllama reorders others).
 */

#include <string.h>

#include "replica/engine/llama/plugin/generate/generate_inner.h"


void
local_add(generator_t *g, llama_token id, uint32_t position, int32_t place,
    int is_output)
{
    struct llama_batch  *b;

    b = &g->core.batch;
    b->token[b->n_tokens] = id;
    b->pos[b->n_tokens] = (llama_pos) position;
    b->n_seq_id[b->n_tokens] = 1;
    b->seq_id[b->n_tokens][0] = place;
    b->logits[b->n_tokens] = (int8_t) is_output;
    b->n_tokens++;
}


int
local_decode(generator_t *g)
{
    int  rc;

    rc = llama_decode(g->core.context, g->core.batch);
    g->core.batch.n_tokens = 0;

    return rc == 0 ? 0 : -1;
}


static int
local_may(core_seq_t *seq)
{
    return 1;
}


static uint32_t
local_chunk_rows(const generator_t *g)
{
    return g->core.facts.is_stepwise ? 1 : g->chunk;
}


static void
local_chunk(core_seq_t *seq, uint32_t to)
{
    int           is_last;
    generator_t  *g;
    uint32_t      i, n;

    g = seq->generator;
    n = to - seq->ndecoded;
    is_last = (to == seq->nids);

    for (i = seq->ndecoded; i < to; i++) {
        local_add(g, seq->ids[i], i, seq->place, is_last && i == to - 1);
    }

    if (local_decode(g) != 0) {
        decode_end(seq, CORE_FAILED);
        return;
    }

    seq->ndecoded = to;

    if (is_last) {
        decode_computed(seq, llama_get_logits_ith(g->core.context,
                                                  (int32_t) n - 1));
    }
}


void
local_flush(generator_t *g)
{
    int          rc;
    uint32_t     i, n;
    core_seq_t  *seq;

    n = (uint32_t) g->core.batch.n_tokens;

    if (n == 0) {
        return;
    }

    rc = local_decode(g);

    for (i = 0; i < n; i++) {
        seq = g->places[g->core.batch.seq_id[i][0]];

        if (rc != 0) {
            decode_end(seq, CORE_FAILED);
            continue;
        }

        seq->ndecoded++;
        decode_computed(seq, llama_get_logits_ith(g->core.context,
                                                  (int32_t) i));
    }
}


static void
local_row(core_seq_t *seq)
{
    local_add(seq->generator, seq->ids[seq->ndecoded], seq->ndecoded,
              seq->place, 1);

    if (seq->generator->core.facts.is_stepwise) {
        local_flush(seq->generator);
    }
}


/* Frees the sequence's cells. */
static void
local_leave(core_seq_t *seq)
{
    (void) llama_memory_seq_rm(llama_get_memory(seq->generator->core.context),
                               seq->place, -1, -1);
}


const way_t  way_local = {
    .may = local_may,
    .chunk_rows = local_chunk_rows,
    .chunk = local_chunk,
    .row = local_row,
    .leave = local_leave
};
