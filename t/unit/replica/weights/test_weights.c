
/*
 * How an engine gets its weights, and which ones it accepts.
 */

#include "replica/weights/weights_inner.h"
#include "t/unit/replica/weights/weights_scene.h"


static void
test_writer_fills_memory_that_can_be_sealed(void **state)
{
    service_t  *s;
    fixture_t  *f;

    f = *state;
    s = &f->services[0];
    start(f, 1, 1);
    until(f, &s->lines, 1);
    assert_says(s->line, "\"hello\"");
    assert_says(s->line, "\"rw_or_ro\"");
    assert_says(s->line, "\"engine\":\"e1\"");

    service_say(s, "{\"type\":\"granted\",\"mode\":\"rw\",\"committed\":false,"
                   "\"id\":null}");
    until(f, &s->lines, 3);
    assert_says(s->before, "\"put\"");
    assert_says(s->before, "\"name\":\"w0\"");
    assert_says(s->before, "\"bytes\":300000");
    assert_says(s->line, "\"commit\"");
    assert_int_equal(fcntl(s->given, F_ADD_SEALS, SEALS), 0);
    assert_int_equal(f->ready, 0);

    service_say(s, "{\"type\":\"hashing\",\"done\":0,\"bytes\":300000}");
    service_say(s, "{\"type\":\"committed\",\"id\":\"" ID_A "\","
                   "\"bytes\":300000}");
    until(f, &f->ready, 1);
    assert_holds(f, 0);
}


static void
test_commit_that_was_not_sealed_is_not_believed(void **state)
{
    service_t  *s;
    fixture_t  *f;

    f = *state;
    s = &f->services[0];
    start(f, 1, 0);
    until(f, &s->lines, 1);
    service_say(s, "{\"type\":\"granted\",\"mode\":\"rw\"}");
    until(f, &s->lines, 3);
    service_say(s, "{\"type\":\"committed\",\"id\":\"" ID_A "\"}");
    until(f, &f->failed, 1);
    assert_int_equal(f->ready, 0);
}


static void
test_reader_gets_the_same_memory(void **state)
{
    fixture_t  *f;

    f = *state;
    f->options.is_reader = 1;
    start_reader(f, 1);
    assert_says(f->services[0].before, "\"mode\":\"ro\"");
    assert_holds(f, 0);
}


static void
test_reader_never_writes(void **state)
{
    fixture_t  *f;

    f = *state;
    f->options.is_reader = 1;
    start(f, 1, 0);
    until(f, &f->services[0].lines, 1);
    service_say(&f->services[0], "{\"type\":\"granted\",\"mode\":\"rw\"}");
    until(f, &f->services[0].lines, 2);
    assert_says(f->services[0].line, "\"get\"");
}


static void
refused_slot(fixture_t *f, const char *name, const char *id, size_t bytes,
    int seals)
{
    start(f, 1, 0);
    until(f, &f->services[0].lines, 1);
    give(f, 0, name, id, bytes, sealed(f->files[0], seals));
    until(f, &f->failed, 1);
    assert_int_equal(f->ready, 0);
}


static void
test_unsealed_memory_is_refused(void **state)
{
    refused_slot(*state, "w0", ID_A, BYTES, F_SEAL_SHRINK|F_SEAL_GROW);
}


static void
test_memory_of_another_size_is_refused(void **state)
{
    refused_slot(*state, "w0", ID_A, BYTES + 1, SEALS);
}


static void
test_weights_of_another_name_are_refused(void **state)
{
    refused_slot(*state, "w1", ID_A, BYTES, SEALS);
}


static void
test_slot_without_an_id_is_refused(void **state)
{
    refused_slot(*state, "w0", "none", BYTES, SEALS);
}


static void
test_beginning_waits_for_its_service(void **state)
{
    fixture_t  *f;

    f = *state;
    open_weights(f, 1, 0);
    ev_run(f->loop, EVRUN_NOWAIT);
    service_start(&f->services[0]);
    until(f, &f->services[0].lines, 1);
    assert_says(f->services[0].line, "\"hello\"");
    assert_int_equal(f->failed, 0);
}


static void
test_beginning_ends_in_time(void **state)
{
    fixture_t  *f;

    f = *state;
    f->options.timeout_ms = 30;
    start(f, 1, 0);
    until(f, &f->failed, 1);
}


static void
test_beginning_ends_with_its_service(void **state)
{
    fixture_t  *f;

    f = *state;
    start(f, 2, 0);
    until(f, &f->services[0].lines, 1);
    until(f, &f->services[1].lines, 1);
    give(f, 0, "w0", ID_A, BYTES, sealed(f->files[0], SEALS));
    service_drop(&f->services[1]);
    until(f, &f->failed, 1);

    /* The engine gives up the other service, too. */

    until(f, &f->services[0].ends, 1);
    assert_int_equal(f->ready, 0);
}


static void
test_each_device_has_its_own_file(void **state)
{
    int         i;
    fixture_t  *f;

    f = *state;
    start(f, 2, 1);

    for (i = 1; i >= 0; i--) {
        until(f, &f->services[i].lines, 1);
        assert_int_equal(f->ready, 0);
        give(f, i, i == 0 ? "w0" : "w1", ID_A, BYTES,
             sealed(f->files[i], SEALS));
    }

    until(f, &f->ready, 1);
    assert_holds(f, 0);
    assert_holds(f, 1);
}


/* Whether this process has memory for weights. */
static int
has_memory(void)
{
    int   fd;
    char  name[64], target[64];

    for (fd = 0; fd < 64; fd++) {
        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        memset(target, 0, sizeof(target));

        if (readlink(name, target, sizeof(target) - 1) > 0
            && strncmp(target, "/memfd:llmgw-weights", 20) == 0)
        {
            return 1;
        }
    }

    return 0;
}


static void
test_close_does_not_wait_for_a_copy(void **state)
{
    fixture_t  *f;

    f = *state;
    assert_int_equal(truncate(f->files[0], (off_t) 1 << 30), 0);
    start(f, 1, 0);
    until(f, &f->services[0].lines, 1);
    service_say(&f->services[0], "{\"type\":\"granted\",\"mode\":\"rw\"}");

    while (!has_memory()) {
        ev_run(f->loop, EVRUN_NOWAIT);
    }

    weights_close(f->weights);
    f->weights = NULL;
    assert_int_equal(f->services[0].given, -1);
    assert_false(has_memory());
}


static void
test_no_copy_begins_while_it_closes(void **state)
{
    fixture_t  *f;

    f = *state;
    start(f, 1, 0);
    until(f, &f->services[0].lines, 1);
    atomic_store(&f->weights->is_stopping, 1);
    service_say(&f->services[0], "{\"type\":\"granted\",\"mode\":\"rw\"}");
    until(f, &f->failed, 1);
    assert_int_equal(f->weights->devices[0].slot.bytes, 0);
}


static void
test_weights_that_do_not_fit_are_not_loaded(void **state)
{
    fixture_t  *f;

    f = *state;

    if (truncate(f->files[0], (off_t) 1 << 43) != 0) {
        skip();                 /* files here cannot be so large */
    }

    start(f, 1, 0);
    until(f, &f->services[0].lines, 1);
    service_say(&f->services[0], "{\"type\":\"granted\",\"mode\":\"rw\"}");
    until(f, &f->failed, 1);
    assert_false(has_memory());
}


static void
test_file_that_cannot_be_read_ends_it(void **state)
{
    fixture_t  *f;

    f = *state;
    unlink(f->files[0]);
    start(f, 1, 0);
    until(f, &f->services[0].lines, 1);
    service_say(&f->services[0], "{\"type\":\"granted\",\"mode\":\"rw\"}");
    until(f, &f->failed, 1);
}


static void
test_fifo_is_no_file_with_weights(void **state)
{
    fixture_t  *f;

    f = *state;
    unlink(f->files[0]);
    assert_int_equal(mkfifo(f->files[0], 0600), 0);
    start(f, 1, 0);
    until(f, &f->services[0].lines, 1);
    service_say(&f->services[0], "{\"type\":\"granted\",\"mode\":\"rw\"}");
    until(f, &f->failed, 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        CASE(test_writer_fills_memory_that_can_be_sealed),
        CASE(test_commit_that_was_not_sealed_is_not_believed),
        CASE(test_reader_gets_the_same_memory),
        CASE(test_reader_never_writes),
        CASE(test_unsealed_memory_is_refused),
        CASE(test_memory_of_another_size_is_refused),
        CASE(test_weights_of_another_name_are_refused),
        CASE(test_slot_without_an_id_is_refused),
        CASE(test_beginning_waits_for_its_service),
        CASE(test_beginning_ends_in_time),
        CASE(test_beginning_ends_with_its_service),
        CASE(test_each_device_has_its_own_file),
        CASE(test_close_does_not_wait_for_a_copy),
        CASE(test_no_copy_begins_while_it_closes),
        CASE(test_weights_that_do_not_fit_are_not_loaded),
        CASE(test_file_that_cannot_be_read_ends_it),
        CASE(test_fifo_is_no_file_with_weights)
    };

    signal(SIGPIPE, SIG_IGN);

    return cmocka_run_group_tests(tests, NULL, NULL);
}
