
/*
 * A head and a computer of its rows give what the engine `llama` gives,
 * whatever happens to the rows.
 */

#include "t/unit/replica/engine/llama/plugin/head/head_scene.h"


static void
test_rows_computed_elsewhere_give_the_same_tokens(void **state)
{
    int         i;
    engine_t    e;
    stream_t    streams[STREAMS];
    computer_t  c;

    whole_make();
    engine_open_ready(&e, head_path, NULL);
    computer_make(&c);
    assert_int_equal(e.facts.layers, LAYERS);
    assert_string_equal(e.facts.model, "tiny");

    for (i = 0; i < STREAMS; i++) {
        stream_begin(&streams[i], &e, i);
    }

    computer_run(&c, &e, streams, STREAMS);

    for (i = 0; i < STREAMS; i++) {
        stream_check(&streams[i], i);
        plugin->release(streams[i].seq);
    }

    computer_drop(&c);
    engine_close(&e);
}


static void
test_each_token_is_notified_before_the_next_is_computed(void **state)
{
    engine_t  e;
    stream_t  s;

    whole_make();
    engine_open_ready(&e, NULL, model_path);

    pthread_mutex_lock(&e.lock);
    stream_begin(&s, &e, 1);
    e.watched = &s;

    while (!s.has_ended) {
        engine_await_news(&e);
    }

    e.watched = NULL;
    pthread_mutex_unlock(&e.lock);

    stream_check(&s, 1);
    assert_int_equal(e.most, 1);
    plugin->release(s.seq);
    engine_close(&e);
}


/* A prompt of 100 tokens has steps of 32, 32, 32 and 4 rows. */
static void
test_only_the_last_row_of_a_prompt_asks_for_logits(void **state)
{
    engine_t     e;
    uint32_t     position;
    stream_t     s;
    core_step_t  step;

    engine_open_ready(&e, head_path, NULL);
    stream_begin(&s, &e, 1);

    for (position = 0; position < 100; position += step.rows) {
        while (plugin->take_step(e.core, &step) != 0) {
            engine_wait(&e);
        }

        assert_ptr_equal(step.seq, s.seq);
        assert_int_equal(step.position, position);
        assert_int_equal(step.rows, position == 96 ? 4 : 32);
        assert_int_equal(step.logits_rows, position == 96);
        assert_int_equal(step.expected, 100 + TOKENS);
        free(step.embeddings);
    }

    plugin->release(s.seq);
    engine_close(&e);
}


/* Streams take turns by chunks, so the last chunk of the short prompt shows
   how far the long one has come. */
static void
test_a_sequence_has_so_many_steps_out_and_no_more(void **state)
{
    size_t       n[2] = { 0, 0 };
    engine_t     e;
    stream_t     s[2], *whose;
    core_step_t  step;

    engine_open_ready(&e, head_path, NULL);
    stream_begin_of(&s[0], &e, 0, CONTEXT - TOKENS);

    while (n[0] < CORE_STEPS_MAX) {
        assert_ptr_equal(engine_take_step(&e, &step), &s[0]);
        n[0]++;
    }

    stream_begin(&s[1], &e, 1);

    while (n[1] < 4) {
        whose = engine_take_step(&e, &step);
        n[whose == &s[1]]++;
    }

    assert_int_equal(n[0], CORE_STEPS_MAX);
    assert_int_equal(plugin->take_step(e.core, &step), -1);

    plugin->give(s[0].seq, 0, CORE_ROWS_MAX, NULL);
    assert_ptr_equal(engine_take_step(&e, &step), &s[0]);
    assert_int_equal(step.position, CORE_STEPS_MAX * CORE_ROWS_MAX);

    plugin->release(s[0].seq);
    plugin->release(s[1].seq);
    engine_close(&e);
}


/* A rewind at each answer of a stream, one run for each. */
static void
test_a_rewind_at_any_answer_changes_no_token(void **state)
{
    int          at, n;
    engine_t     e;
    stream_t     s;
    computer_t   c;
    core_step_t  step;

    whole_make();
    engine_open_ready(&e, head_path, NULL);
    computer_make(&c);

    for (at = 1; at < 8; at++) {
        stream_begin(&s, &e, 1);

        for (n = 0; n < at; /* void */) {
            n += computer_turn(&c, &e);
            stream_take(&s);
        }

        plugin->rewind(s.seq);

        /* Steps that were out need no answer, and are not taken again. */

        while (plugin->take_step(e.core, &step) != 0) {
            engine_wait(&e);
        }

        assert_int_equal(step.position, 0);
        computer_answer(&c, &e, &step);
        computer_run(&c, &e, &s, 1);
        stream_check(&s, 1);
        plugin->release(s.seq);
    }

    computer_drop(&c);
    engine_close(&e);
}


static void
test_what_is_lost_ends_with_its_reason(void **state)
{
    engine_t     e;
    stream_t     s;
    core_step_t  step;

    engine_open_ready(&e, head_path, NULL);
    stream_begin(&s, &e, 0);

    while (plugin->take_step(e.core, &step) != 0) {
        engine_wait(&e);
    }

    free(step.embeddings);
    plugin->lose(s.seq, "shard_unavailable", "nobody has layer 2");

    for (stream_take(&s); !s.has_ended; stream_take(&s)) {
        engine_wait(&e);
    }

    assert_int_equal(s.last.kind, CORE_FAILED);
    assert_string_equal(s.last.reason, "shard_unavailable");
    assert_string_equal(s.last.text, "nobody has layer 2");
    plugin->release(s.seq);
    engine_close(&e);
}


/* The fallback takes over before any answer, in the prompt, and after tokens.
   */
static void
test_the_fallback_goes_on_with_the_same_tokens(void **state)
{
    int          i, n;
    engine_t     e;
    stream_t     s;
    computer_t   c;
    core_load_t  load;

    static const int  answers[] = { 0, 2, 9 };

    whole_make();
    engine_open_ready(&e, head_path, model_path);
    computer_make(&c);

    for (i = 0; i < 3; i++) {
        stream_begin(&s, &e, 1);

        for (n = 0; n < answers[i]; n += computer_turn(&c, &e)) {
            stream_take(&s);
        }

        plugin->lose(s.seq, "pipeline_stalled", "a shard stood still");
        computer_run(&c, &e, &s, 1);
        stream_check(&s, 1);
        plugin->release(s.seq);
    }

    plugin->load(e.core, &load);
    assert_int_equal(load.fallbacks, 3);
    computer_drop(&c);
    engine_close(&e);
}


static void
test_a_fallback_of_other_weights_is_refused(void **state)
{
    engine_t  e;

    assert_int_equal(engine_open(&e, head_path, other_path), CORE_BROKEN);
    assert_non_null(strstr(e.facts.error, "other weights"));
    engine_close(&e);
}


/* The error is about the fallback, not about the head. */
static void
test_a_fallback_is_a_whole_model(void **state)
{
    engine_t  e;

    assert_int_equal(engine_open(&e, head_path, head_path), CORE_BROKEN);
    assert_non_null(strstr(e.facts.error, "not a whole model"));
    engine_close(&e);

    assert_int_equal(engine_open(&e, head_path, "absent.gguf"), CORE_BROKEN);
    assert_non_null(strstr(e.facts.error, "cannot read \"absent.gguf\""));
    engine_close(&e);
}


static void
test_a_model_is_no_head(void **state)
{
    engine_t  e;

    assert_int_equal(engine_open(&e, model_path, NULL), CORE_BROKEN);
    assert_non_null(strstr(e.facts.error, "llmgw-slice"));
    engine_close(&e);
}


static void
test_a_released_sequence_gives_no_steps(void **state)
{
    int          i;
    engine_t     e;
    stream_t     s[2];
    core_step_t  step;

    engine_open_ready(&e, head_path, NULL);

    for (i = 0; i < 2; i++) {
        stream_begin(&s[i], &e, i);
    }

    while (plugin->take_step(e.core, &step) != 0) {
        engine_wait(&e);
    }

    free(step.embeddings);
    plugin->release(s[0].seq);
    plugin->release(s[1].seq);
    assert_int_equal(plugin->take_step(e.core, &step), -1);
    engine_close(&e);
}


static uint64_t
now_ns(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}


/* The thread looks for answers, finds none, and goes to sleep: an answer that
   comes between the two must wake it.  The test does not sleep, and each
   answer comes after another time. */
static void
test_an_answer_is_heard_whenever_it_comes(void **state)
{
    int           i, n;
    float        *logits;
    uint64_t      given;
    engine_t      e;
    stream_t      s;
    core_step_t   step;

    engine_open_ready(&e, head_path, NULL);
    logits = calloc(e.facts.vocabulary, sizeof(float));
    assert_non_null(logits);
    given = now_ns();

    for (i = 0, n = 0; i < 2000; i++) {
        stream_begin(&s, &e, 0);

        for (stream_take(&s); !s.has_ended; stream_take(&s)) {
            if (plugin->take_step(e.core, &step) != 0) {
                assert_true(now_ns() - given < WAIT_S * 1000000000ULL);
                continue;
            }

            for (given = now_ns() + n++ % 100 * 50; now_ns() < given; ) {
                /* void */
            }

            plugin->give(step.seq, step.position, step.rows,
                         step.logits_rows > 0 ? logits : NULL);
            free(step.embeddings);
        }

        plugin->release(s.seq);
    }

    free(logits);
    engine_close(&e);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_rows_computed_elsewhere_give_the_same_tokens),
        cmocka_unit_test(
            test_each_token_is_notified_before_the_next_is_computed),
        cmocka_unit_test(test_only_the_last_row_of_a_prompt_asks_for_logits),
        cmocka_unit_test(test_a_sequence_has_so_many_steps_out_and_no_more),
        cmocka_unit_test(test_a_rewind_at_any_answer_changes_no_token),
        cmocka_unit_test(test_what_is_lost_ends_with_its_reason),
        cmocka_unit_test(test_the_fallback_goes_on_with_the_same_tokens),
        cmocka_unit_test(test_a_fallback_of_other_weights_is_refused),
        cmocka_unit_test(test_a_fallback_is_a_whole_model),
        cmocka_unit_test(test_a_model_is_no_head),
        cmocka_unit_test(test_a_released_sequence_gives_no_steps),
        cmocka_unit_test(test_an_answer_is_heard_whenever_it_comes)
    };

    return cmocka_run_group_tests(tests, files_make, files_drop);
}
