
/*
 * A core from its file to its end: its facts, loading late, sleeping, and the
 * files that it refuses.
 */

#include "t/unit/replica/engine/llama/plugin/shard/shard_scene.h"


static model_t      model, other;
static reference_t  reference;


static void
open_late(node_t *node, const char *file)
{
    core_options_t  o;

    o = node_options(node, file, 2);
    o.is_standby = 1;
    node_open_as(node, &o);
}


/* Waits until the core is broken; returns why. */
static const char *
broken(node_t *node)
{
    while (node_state(node) != CORE_BROKEN) {
        node_wait(node);
    }

    return node->facts.error;
}


static void
facts_are_known_before_it_loads(void **state)
{
    node_t               node;
    const core_facts_t  *f;

    open_late(&node, model_slice(&model, 3, 7));
    node_until(&node, CORE_ASLEEP);
    f = &node.facts;

    assert_string_equal(f->model, "tiny");
    assert_memory_equal(f->weights_id, model.whole.weights_id, 32);
    assert_int_equal(strncmp(f->numerics, "llama-shard-", 12), 0);
    assert_int_equal(f->first_layer, 3);
    assert_int_equal(f->last_layer, 7);
    assert_int_equal(f->layers, LAYERS);
    assert_int_equal(f->width, WIDTH);
    assert_int_equal(f->vocabulary, model.whole.vocabulary);
    assert_int_equal(f->context, 128);
    assert_int_equal(plugin->begin(node.core, 7), -1);
    assert_int_equal(plugin->sleep(node.core), -1);
    node_close(&node);
}


/* One cell of q8_0 is 34 bytes for 32 values; two heads of 32 have keys and
   values; a context is rounded up to 256 positions.  A call has up to 32 rows,
   and the logits of each are there twice. */
static void
bytes_are_those_of_weights_cells_and_logits(void **state)
{
    node_t          node;
    sliced_t        sliced;
    uint32_t        last;
    core_options_t  o;
    char            error[SLICED_ERROR_BYTES];

    for (last = 4; last < LAYERS; last += 3) {
        o = node_options(&node, model_slice(&model, 1, last), 3);
        o.is_standby = 1;
        node_open_as(&node, &o);
        node_until(&node, CORE_ASLEEP);
        assert_int_equal(sliced_read(&sliced, o.file, error), 0);
        assert_int_equal(node.facts.bytes, sliced.bytes
                         + last * 3 * 256 * (2 * 2 * 32 / 32 * 34)
                         + 32 * 2 * node.facts.vocabulary * sizeof(float));
        sliced_done(&sliced);
        node_close(&node);
    }
}


/* All slices of a model have the same numerics; slices with halves, or of
   other weights, have others. */
static void
numerics_have_one_name_for_a_model(void **state)
{
    node_t  a, b, c;

    open_late(&a, model_slice(&model, 0, 2));
    node_until(&a, CORE_ASLEEP);
    open_late(&b, model_slice(&model, 3, 7));
    node_until(&b, CORE_ASLEEP);
    open_late(&c, model_slice(&other, 0, 2));
    node_until(&c, CORE_ASLEEP);

    assert_string_equal(a.facts.numerics, b.facts.numerics);
    assert_string_not_equal(a.facts.numerics, c.facts.numerics);
    node_close(&a);
    node_close(&b);
    node_close(&c);
}


static void
it_sleeps_without_sessions_and_wakes_as_it_was(void **state)
{
    float     row[WIDTH];
    node_t    node;
    uint32_t  i, place;

    open_late(&node, model_slice(&model, 0, 3));
    node_until(&node, CORE_ASLEEP);

    for (i = 0; i < 3; i++) {
        assert_int_equal(plugin->wake(node.core), 0);
        assert_int_equal(plugin->wake(node.core), -1);
        node_until(&node, CORE_READY);
        assert_int_equal(plugin->wake(node.core), -1);

        if (reference.model == NULL) {
            reference_make(&reference, &model);
        }

        place = node_begin(&node, 3);
        assert_int_equal(node_step(&node, place, 0, 1, 0,
                                   text_row(&reference.texts[i], 0, 0), row),
                         SHARD_STEP_DONE);
        assert_true(text_has_rows(&reference.texts[i], 4, 0, row, 1));
        assert_int_equal(plugin->sleep(node.core), -1);
        plugin->end(node.core, place);
        assert_int_equal(plugin->sleep(node.core), 0);
        assert_int_equal(plugin->begin(node.core, 3), -1);
        assert_int_equal(node_state(&node), CORE_ASLEEP);
    }

    node_close(&node);
}


static void
layers_that_it_has_not_are_refused(void **state)
{
    node_t  node;

    node_open(&node, &model, 2, 5, 2);
    assert_int_equal(plugin->begin(node.core, 1), -1);
    assert_int_equal(plugin->begin(node.core, 6), -1);
    assert_int_equal(plugin->begin(node.core, UINT32_MAX), -1);
    assert_int_equal(plugin->begin(node.core, 2), 0);
    assert_int_equal(plugin->begin(node.core, 5), 1);
    assert_int_equal(plugin->begin(node.core, 5), -1);
    plugin->end(node.core, 0);
    plugin->end(node.core, 0);
    plugin->end(node.core, 2);
    assert_int_equal(plugin->begin(node.core, 5), 0);
    node_close(&node);
}


static void
file_that_is_not_there_is_refused_at_once(void **state)
{
    char            error[CORE_ERROR_BYTES];
    node_t          node;
    core_options_t  o;

    o = node_options(&node, "/nowhere/slice.gguf", 2);
    assert_null(llmgw_shard_llama()->open(&o, error));
    assert_string_equal(error, "cannot open \"/nowhere/slice.gguf\": No such "
                        "file or directory");

    o = node_options(&node, model_slice(&model, 0, 2),
                     CORE_SEQUENCES_MAX + 1);
    assert_null(llmgw_shard_llama()->open(&o, error));
    assert_string_equal(error, "257 sessions, not from 1 to 256");
}


static void
file_that_is_no_slice_is_named(void **state)
{
    char    path[128], error[SLICED_ERROR_BYTES];
    cut_t   cut;
    node_t  node;

    snprintf(path, sizeof(path), "%s/head.gguf", model.folder);
    memset(&cut, 0, sizeof(cut));
    cut.kind = SLICED_HEAD;
    cut.path = path;
    assert_int_equal(cut_write(&model.whole, &cut, NULL, error), 0);

    open_late(&node, path);
    assert_non_null(strstr(broken(&node), "is the head of a model: a shard "
                           "needs a slice"));
    node_close(&node);

    open_late(&node, model.whole.paths[0]);
    assert_non_null(strstr(broken(&node), "model.gguf"));
    node_close(&node);
}


/* One bit of the weights is wrong: libllama never gets the file. */
static void
file_with_a_wrong_bit_does_not_load(void **state)
{
    int          byte;
    char         path[160];
    FILE        *f;
    node_t       node;

    snprintf(path, sizeof(path), "%s.wrong", model_slice(&model, 0, 2));
    assert_int_equal(rename(model_slice(&model, 0, 2), path), 0);
    f = fopen(path, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, -100, SEEK_END), 0);
    byte = fgetc(f);
    assert_int_equal(fseek(f, -100, SEEK_END), 0);
    assert_int_equal(fputc(byte ^ 4, f), byte ^ 4);
    fclose(f);

    open_late(&node, path);
    node_until(&node, CORE_ASLEEP);
    assert_int_equal(plugin->wake(node.core), 0);
    assert_non_null(strstr(broken(&node), ".wrong"));
    assert_int_equal(plugin->wake(node.core), -1);
    assert_int_equal(plugin->begin(node.core, 2), -1);
    node_close(&node);
}


/* Another slice took the file's name after its facts were read. */
static void
file_that_was_replaced_does_not_load(void **state)
{
    char    path[160];
    node_t  node;

    snprintf(path, sizeof(path), "%s.kept", model_slice(&model, 4, 5));
    assert_int_equal(rename(model_slice(&model, 4, 5), path), 0);
    open_late(&node, path);
    node_until(&node, CORE_ASLEEP);
    assert_int_equal(rename(model_slice(&model, 5, 6), path), 0);
    assert_int_equal(plugin->wake(node.core), 0);
    assert_non_null(strstr(broken(&node), "is not the slice that it was at "
                           "the start"));
    node_close(&node);
}


static void
what_no_machine_holds_is_not_loaded(void **state)
{
    node_t          node;
    core_options_t  o;

    o = node_options(&node, model_slice(&other, 0, 7), 1);
    o.context = 1u << 30;
    node_open_as(&node, &o);
    assert_non_null(strstr(broken(&node), "not enough memory: the slice and 1 "
                           "sessions of 1073741824 positions take "));
    node_close(&node);

    o.context = 1u << 31;
    node_open_as(&node, &o);
    assert_string_equal(broken(&node), "1 sessions of 2147483648 positions "
                        "are none, or too many");
    node_close(&node);
}


static int
make_models(void **state)
{
    model_make(&model, "context=128");
    model_make(&other, "seed=2, context=2**31");

    return 0;
}


static int
drop_models(void **state)
{
    reference_drop(&reference);
    model_drop(&model);
    model_drop(&other);

    return 0;
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_known_before_it_loads),
        cmocka_unit_test(bytes_are_those_of_weights_cells_and_logits),
        cmocka_unit_test(numerics_have_one_name_for_a_model),
        cmocka_unit_test(it_sleeps_without_sessions_and_wakes_as_it_was),
        cmocka_unit_test(layers_that_it_has_not_are_refused),
        cmocka_unit_test(file_that_is_not_there_is_refused_at_once),
        cmocka_unit_test(file_that_is_no_slice_is_named),
        cmocka_unit_test(file_with_a_wrong_bit_does_not_load),
        cmocka_unit_test(file_that_was_replaced_does_not_load),
        cmocka_unit_test(what_no_machine_holds_is_not_loaded)
    };

    return cmocka_run_group_tests(tests, make_models, drop_models);
}
