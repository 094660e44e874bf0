
/*
 * Slices give the whole model's bits, however they are cut and asked.
 */

#include <math.h>

#include "replica/shard/half.h"
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


static uint32_t
count_hops(const hop_t *hops)
{
    uint32_t  n;

    for (n = 1; hops[n - 1].stop < LAYERS - 1; n++) {
        /* void */
    }

    return n;
}


/* Sends a text through all hops in chunks, and compares every row and logit.
   */
static void
run(node_t *nodes, const hop_t *hops, const text_t *text, uint32_t chunk)
{
    float     *rows, *logits;
    uint32_t   i, at, n, nhops, places[LAYERS];

    rows = malloc(SHARD_CORE_ROWS_MAX * ROW_BYTES);
    logits = malloc(SHARD_CORE_ROWS_MAX * text->vocabulary * sizeof(float));

    nhops = count_hops(hops);

    for (i = 0; i < nhops; i++) {
        places[i] = node_begin(&nodes[i], hops[i].stop);
    }

    for (at = 0; at < POSITIONS; at += n) {
        n = POSITIONS - at < chunk ? POSITIONS - at : chunk;
        memcpy(rows, text_row(text, 0, at), n * ROW_BYTES);

        for (i = 0; i < nhops - 1; i++) {
            assert_int_equal(node_step(&nodes[i], places[i], at, n, 0, rows,
                                       rows), SHARD_STEP_DONE);
            assert_true(text_has_rows(text, hops[i].stop + 1, at, rows, n));
        }

        assert_int_equal(node_step(&nodes[i], places[i], at, n, n, rows,
                                   logits), SHARD_STEP_DONE);
        assert_true(text_has_logits(text, at, logits, n));
    }

    for (i = 0; i < nhops; i++) {
        plugin->end(nodes[i].core, places[i]);
    }

    free(rows);
    free(logits);
}


static void
each_cut_and_chunk_is_exact(model_t *m, const reference_t *r, int is_stepwise)
{
    size_t    i, j;
    node_t    nodes[LAYERS];
    uint32_t  n, k;

    for (i = 0; i < length(cuts); i++) {
        n = count_hops(cuts[i]);

        for (k = 0; k < n; k++) {
            node_open(&nodes[k], m, cuts[i][k].first, cuts[i][k].last, 2);
            assert_int_equal(nodes[k].facts.is_stepwise, is_stepwise);
        }

        for (j = 0; j < length(chunks); j++) {
            run(nodes, cuts[i], &r->texts[j], chunks[j]);
        }

        for (k = 0; k < n; k++) {
            node_close(&nodes[k]);
        }
    }
}


static void
quantized_weights_are_exact_in_chunks(void **state)
{
    each_cut_and_chunk_is_exact(&model, &reference, 0);
}


/* Float weights are computed row by row, even if rows come in chunks. */
static void
float_weights_are_exact_row_by_row(void **state)
{
    model_t      floats;
    reference_t  r;

    model_make(&floats, "weights='f32'");
    reference_make(&r, &floats);
    each_cut_and_chunk_is_exact(&floats, &r, 1);
    reference_drop(&r);
    model_drop(&floats);
}


/* --- halves */

/* Heads of 16 values are no blocks of q8_0, so the cache has halves, whose
   rows are exact one by one.  A cell has to hold a number even where it is not
   looked at: a session whose input is no number leaves nothing to the next one
   in its place. */
static void
heads_that_are_no_blocks_are_exact(void **state)
{
    float        rows[32 * WIDTH];
    node_t       nodes[LAYERS];
    size_t       i;
    model_t      heads;
    reference_t  r;

    model_make(&heads, "head=16");
    reference_make(&r, &heads);

    for (i = 0; i < count_hops(cuts[2]); i++) {
        node_open(&nodes[i], &heads, cuts[2][i].first, cuts[2][i].last, 2);
        assert_int_equal(node_begin(&nodes[i], cuts[2][i].stop), 0);
        memcpy(rows, text_row(&r.texts[1], cuts[2][i].first, 0),
               sizeof(rows));
        rows[31 * WIDTH] = NAN;
        assert_int_equal(node_step(&nodes[i], 0, 0, 32, 0, rows, rows),
                         SHARD_STEP_BAD_INPUT);
        plugin->end(nodes[i].core, 0);
    }

    run(nodes, cuts[2], &r.texts[0], 7);

    for (i = 0; i < count_hops(cuts[2]); i++) {
        node_close(&nodes[i]);
    }

    each_cut_and_chunk_is_exact(&heads, &r, 1);
    reference_drop(&r);
    model_drop(&heads);
}


/* Rows are halves between two slices, and in what the first slice gets: as if
   the whole model had rounded there. */
static void
halves_are_floats_rounded_at_the_cuts(void **state)
{
    node_t          floats[2], halves[2];
    uint32_t        i;
    uint16_t        told[16 * WIDTH], rounded[16 * WIDTH];
    float           rows[16 * WIDTH];
    float          *logits[2];
    core_options_t  o;

    for (i = 0; i < 2; i++) {
        node_open(&floats[i], &model, 4 * i, 4 * i + 3, 1);
        o = node_options(&halves[i], model_slice(&model, 4 * i, 4 * i + 3), 1);
        o.is_fp16 = 1;
        node_open_as(&halves[i], &o);
        node_until(&halves[i], CORE_READY);
        assert_string_not_equal(halves[i].facts.numerics,
                                floats[i].facts.numerics);
        (void) node_begin(&floats[i], 4 * i + 3);
        (void) node_begin(&halves[i], 4 * i + 3);
        logits[i] = malloc(16 * reference.texts[0].vocabulary
                           * sizeof(float));
    }

    assert_string_equal(halves[0].facts.numerics, halves[1].facts.numerics);
    assert_int_equal(half_encode(told, text_row(&reference.texts[0], 0, 0),
                                 length(told)), 0);
    half_decode(rows, told, length(told));

    assert_int_equal(node_step(&floats[0], 0, 0, 16, 0, rows, rows),
                     SHARD_STEP_DONE);
    assert_int_equal(node_step(&halves[0], 0, 0, 16, 0, told, told),
                     SHARD_STEP_DONE);
    assert_false(text_has_rows(&reference.texts[0], 4, 0, rows, 16));

    assert_int_equal(half_encode(rounded, rows, length(rounded)), 0);
    assert_memory_equal(rounded, told, sizeof(told));
    half_decode(rows, rounded, length(rounded));

    assert_int_equal(node_step(&floats[1], 0, 0, 16, 16, rows, logits[0]),
                     SHARD_STEP_DONE);
    assert_int_equal(node_step(&halves[1], 0, 0, 16, 16, told, logits[1]),
                     SHARD_STEP_DONE);
    assert_memory_equal(logits[0], logits[1],
                        16 * reference.texts[0].vocabulary * sizeof(float));

    for (i = 0; i < 2; i++) {
        node_close(&floats[i]);
        node_close(&halves[i]);
        free(logits[i]);
    }
}


/* --- bounds */

/* Slices know the greatest norms of rows: only at the first four positions may
   a row be 16 times as long. */
static void
rows_far_too_long_are_found(void **state)
{
    float     row[WIDTH];
    size_t    i, j;
    node_t    node;
    model_t   bounded;

    const struct {
        uint32_t        first;          /* of the slice; it ends at 5 */
        uint32_t        position;
        float           factor;
        float           norm;           /* of the rows that leave it */
        shard_status_t  status;
    } cases[] = {
        { 2, 3, 10000, 40, SHARD_STEP_DONE },
        { 2, 4, 10000, 40, SHARD_STEP_BAD_INPUT },
        { 2, 4, 2, 40, SHARD_STEP_DONE },
        { 0, 4, 2, 40, SHARD_STEP_DONE },
        { 0, 4, 10000, 40, SHARD_STEP_BAD_INPUT },
        { 1, 3, 1, .1f, SHARD_STEP_DONE },
        { 1, 4, 1, .1f, SHARD_STEP_CORRUPT }
    };

    model_make(&bounded, "seed=1");
    bounded.whole.norms = malloc((LAYERS + 1) * sizeof(float));

    for (i = 0; i <= LAYERS; i++) {
        bounded.whole.norms[i] = 40;            /* the rows have 10 to 38 */
    }

    for (i = 0; i < length(cases); i++) {
        bounded.whole.norms[6] = cases[i].norm;
        node_open(&node, &bounded, cases[i].first, 5, 1);
        assert_int_equal(node_begin(&node, 5), 0);

        for (j = 0; j < cases[i].position; j++) {
            assert_int_equal(node_step(&node, 0, j, 1, 0,
                                       text_row(&reference.texts[0],
                                                cases[i].first, j), row),
                             SHARD_STEP_DONE);
        }

        for (j = 0; j < WIDTH; j++) {
            row[j] = cases[i].factor * text_row(&reference.texts[0],
                                                cases[i].first,
                                                cases[i].position)[j];
        }

        assert_int_equal(node_step(&node, 0, cases[i].position, 1, 0, row,
                                   row), cases[i].status);
        node_close(&node);
    }

    model_drop(&bounded);
}


/* --- the model's last layer */

/* A step gets the logits of the rows that it asks for, or none. */
static void
logits_are_of_the_rows_asked_for(void **state)
{
    float         *logits, *out;
    node_t         node;
    uint32_t       place;
    const text_t  *text;
    shard_step_t   step;

    text = &reference.texts[0];
    logits = malloc(SHARD_CORE_ROWS_MAX * text->vocabulary * sizeof(float));
    out = malloc(SHARD_CORE_ROWS_MAX * ROW_BYTES);
    node_open(&node, &model, 4, 7, 2);
    assert_int_equal(node.facts.vocabulary, text->vocabulary);
    place = node_begin(&node, 7);

    step_fill(&step, place, 0, 20, 0, text_row(text, 4, 0), NULL);
    plugin->submit(node.core, &step);
    assert_ptr_equal(node_take(&node), &step);
    assert_int_equal(step.status, SHARD_STEP_DONE);
    assert_int_equal(step.out_rows, 0);
    assert_true(step.is_logits);

    step_fill(&step, place, 20, 12, 3, text_row(text, 4, 20), logits);
    plugin->submit(node.core, &step);
    assert_ptr_equal(node_take(&node), &step);
    assert_int_equal(step.status, SHARD_STEP_DONE);
    assert_int_equal(step.out_rows, 3);
    assert_true(step.is_logits);
    assert_true(text_has_logits(text, 29, logits, 3));

    /* The same slice serves a session as an inner one, too. */

    place = node_begin(&node, 6);
    assert_int_equal(node_step(&node, place, 0, 12, 0, text_row(text, 4, 0),
                               out), SHARD_STEP_DONE);
    assert_true(text_has_rows(text, 7, 0, out, 12));
    node_close(&node);
    free(logits);
    free(out);
}


/* A core is opened before the reference is made, since it loads ggml's code.
   */
static int
make_model(void **state)
{
    node_t  node;

    model_make(&model, "seed=1");
    node_open(&node, &model, 0, 0, 1);
    reference_make(&reference, &model);
    node_close(&node);

    return 0;
}


static int
drop_model(void **state)
{
    reference_drop(&reference);
    model_drop(&model);

    return 0;
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantized_weights_are_exact_in_chunks),
        cmocka_unit_test(float_weights_are_exact_row_by_row),
        cmocka_unit_test(heads_that_are_no_blocks_are_exact),
        cmocka_unit_test(halves_are_floats_rounded_at_the_cuts),
        cmocka_unit_test(rows_far_too_long_are_found),
        cmocka_unit_test(logits_are_of_the_rows_asked_for)
    };

    return cmocka_run_group_tests(tests, make_model, drop_model);
}
