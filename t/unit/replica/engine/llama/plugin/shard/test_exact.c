
/* Slices, however they are cut and asked, have the whole model's bits. */

#ifndef LLMGW_LLAMA_VERSION

int
main(void)
{
    return 0;
}

#else

#include "t/unit/replica/engine/llama/plugin/shard/shard_scene.h"


typedef struct {
    uint32_t  first;            /* of the slice */
    uint32_t  last;
    uint32_t  stop;             /* last layer of the session */
} hop_t;

/* The same model cut in several ways; slices overlap and end early. */
static const hop_t  cuts[][LAYERS] = {
    { { 0, 7, 7 } },
    { { 0, 3, 3 }, { 4, 7, 7 } },
    { { 0, 2, 1 }, { 2, 5, 2 }, { 3, 7, 7 } },
    { { 0, 0, 0 }, { 1, 1, 1 }, { 2, 5, 5 }, { 6, 7, 7 } },
    { { 0, 7, 2 }, { 3, 7, 6 }, { 7, 7, 7 } }
};

static const uint32_t  chunks[] = { 1, 7, 32 };

static model_t      model;
static reference_t  reference;


/* A text through all hops in chunks: every row and logit is compared. */
static void
run(node_t *nodes, const hop_t *hops, const text_t *text, uint32_t chunk)
{
    float     *rows, *logits;
    uint32_t   i, at, n, places[LAYERS];

    rows = malloc(SHARD_CORE_ROWS_MAX * ROW_BYTES);
    logits = malloc(SHARD_CORE_ROWS_MAX * text->vocabulary * sizeof(float));

    for (i = 0; i == 0 || hops[i - 1].stop < LAYERS - 1; i++) {
        places[i] = node_begin(&nodes[i], hops[i].stop);
    }

    for (at = 0; at < POSITIONS; at += n) {
        n = POSITIONS - at < chunk ? POSITIONS - at : chunk;
        memcpy(rows, text_row(text, 0, at), n * ROW_BYTES);

        for (i = 0; hops[i].stop < LAYERS - 1; i++) {
            assert_int_equal(node_step(&nodes[i], places[i], at, n, 0, rows,
                                       rows), SHARD_STEP_DONE);
            assert_true(text_has_rows(text, hops[i].stop + 1, at, rows, n));
        }

        assert_int_equal(node_step(&nodes[i], places[i], at, n, n, rows,
                                   logits), SHARD_STEP_DONE);

        while (n > 0 && text_has_logits(text, at, logits)) {
            memmove(logits, logits + text->vocabulary,
                    (n - 1) * text->vocabulary * sizeof(float));
            at++;
            n--;
        }

        assert_int_equal(n, 0);
    }

    for (i = 0; i == 0 || hops[i - 1].stop < LAYERS - 1; i++) {
        plugin->end(nodes[i].core, places[i]);
    }

    free(rows);
    free(logits);
}


static void
each_cut_and_chunk_is_exact(int is_stepwise)
{
    size_t    i, j;
    node_t    nodes[LAYERS];
    uint32_t  n, k;

    for (i = 0; i < length(cuts); i++) {
        for (n = 0; n == 0 || cuts[i][n - 1].stop < LAYERS - 1; n++) {
            node_open(&nodes[n], &model, cuts[i][n].first, cuts[i][n].last, 2);
            assert_int_equal(nodes[n].facts.is_stepwise, is_stepwise);
        }

        if (reference.model == NULL) {
            reference_make(&reference, &model);
        }

        for (j = 0; j < length(chunks); j++) {
            run(nodes, cuts[i], &reference.texts[j], chunks[j]);
        }

        for (k = 0; k < n; k++) {
            node_close(&nodes[k]);
        }
    }
}


static void
quantized_weights_are_exact_in_chunks(void **state)
{
    model_make(&model, "q8_0", 1);
    each_cut_and_chunk_is_exact(0);
    reference_drop(&reference);
    model_drop(&model);
}


/* Chunks are taken all the same, and computed row by row. */
static void
float_weights_are_exact_row_by_row(void **state)
{
    memset(&reference, 0, sizeof(reference));
    model_make(&model, "f32", 1);
    each_cut_and_chunk_is_exact(1);
    reference_drop(&reference);
    model_drop(&model);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantized_weights_are_exact_in_chunks),
        cmocka_unit_test(float_weights_are_exact_row_by_row)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
