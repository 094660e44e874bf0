
/*
 * What an engine does with weights that it has: it gives them back to a
 * service, and sleeps.
 */

#include "t/unit/replica/weights/weights_scene.h"


static void
test_weights_are_handed_back(void **state)
{
    service_t    *s;
    fixture_t    *f;
    struct stat   had, given;

    f = *state;
    s = &f->services[0];
    start_reader(f, 0);
    assert_int_equal(stat(weights_path(f->weights, 0), &had), 0);

    service_die(s);
    service_start(s);
    until(f, &s->lines, 3);
    assert_says(s->line, "\"adopt\"");
    assert_says(s->line, "\"id\":\"" ID_A "\"");
    assert_says(s->line, "\"name\":\"w0\"");
    assert_int_equal(fstat(s->given, &given), 0);
    assert_int_equal(given.st_ino, had.st_ino);

    /* The service is lost again before it adopted: all is offered once more.
       */

    service_die(s);
    service_start(s);
    until(f, &s->lines, 4);
    assert_says(s->line, "\"adopt\"");
    service_say(s, "{\"type\":\"adopting\"}");
    service_say(s, "{\"type\":\"adopted\",\"id\":\"" ID_A "\"}");
    until(f, &s->conns, 3);
    assert_int_equal(f->failed, 0);
    assert_holds(f, 0);
}


static void
test_service_with_other_weights_ends_nobody(void **state)
{
    service_t  *s;
    fixture_t  *f;

    f = *state;
    s = &f->services[0];
    start_reader(f, 0);
    service_say(s, "{\"type\":\"refused\",\"error\":\"nonsense\"}");
    service_say(s, "{\"type\":\"timeout\"}");
    ev_run(f->loop, EVRUN_NOWAIT);
    service_die(s);
    service_start(s);
    until(f, &s->lines, 3);
    service_say(s, "{\"type\":\"refused\",\"reason\":\"other\","
                   "\"error\":\"other weights\"}");
    until(f, &s->ends, 1);
    assert_int_equal(f->failed, 0);
    assert_holds(f, 0);
}


static void
refuse(fixture_t *f, service_t *s, const char *reason)
{
    int   ends;
    char  text[128];

    ends = s->ends;
    snprintf(text, sizeof(text), "{\"type\":\"refused\",\"reason\":\"%s\","
             "\"error\":\"a sentence\"}", reason);
    service_say(s, text);
    until(f, &s->ends, ends + 1);
    close(s->given);
    s->given = -1;
}


/* The pause of the first service began earlier, and is not over then. */
static void
test_refusal_that_passes_is_tried_again_soon(void **state)
{
    int         i;
    service_t  *other, *s;
    fixture_t  *f;

    static const char *const  passing[] = {
        "adopting", "reclaiming", "writer"
    };

    f = *state;
    other = &f->services[0];
    s = &f->services[1];
    start(f, 2, 0);

    for (i = 0; i < 2; i++) {
        until(f, &f->services[i].lines, 1);
        give(f, i, i == 0 ? "w0" : "w1", ID_A, BYTES,
             sealed(f->files[i], SEALS));
    }

    until(f, &f->ready, 1);

    for (i = 0; i < 2; i++) {
        service_die(&f->services[i]);
        service_start(&f->services[i]);
    }

    until(f, &other->lines, 3);
    refuse(f, other, "other_weights");

    until(f, &s->lines, 3);

    for (i = 0; i < 3; i++) {
        refuse(f, s, passing[i]);
        until(f, &s->lines, 4 + i);
        assert_says(s->line, "\"adopt\"");
    }

    assert_int_equal(other->lines, 3);
    assert_int_equal(f->failed, 0);
    assert_holds(f, 1);
}


/* --- sleep */

static void
test_mapped_sleep_keeps_all(void **state)
{
    fixture_t  *f;

    f = *state;
    start_reader(f, 1);
    weights_sleep(f->weights);
    assert_int_equal(f->asleep, 1);
    assert_non_null(f->services[0].conn);

    service_die(&f->services[0]);       /* it is not needed */
    weights_wake(f->weights);
    assert_int_equal(f->awake, 1);
    assert_holds(f, 0);
}


static void
test_mapped_wake_knows_another_descriptor(void **state)
{
    int         fd, other;
    fixture_t  *f;

    f = *state;
    start_reader(f, 0);
    weights_sleep(f->weights);
    fd = atoi(strrchr(weights_path(f->weights, 0), '/') + 1);
    other = sealed(f->files[0], SEALS);
    assert_int_equal(dup2(other, fd), fd);
    close(other);

    weights_wake(f->weights);
    assert_int_equal(f->awake, 0);
    assert_int_equal(f->failed, 1);
}


static void
sleep_unmapped(fixture_t *f)
{
    int   fd;
    char  name[64];

    f->options.is_unmapped = 1;
    start_reader(f, 1);
    snprintf(name, sizeof(name), "%s", weights_path(f->weights, 0));
    weights_sleep(f->weights);
    until(f, &f->asleep, 1);
    until(f, &f->services[0].ends, 1);
    fd = atoi(strrchr(name, '/') + 1);
    assert_int_equal(fcntl(fd, F_GET_SEALS), -1);
}


/* Wakes the engine, and gives it these weights. */
static void
wake_with(fixture_t *f, const char *name, const char *id, size_t bytes)
{
    int  lines;

    lines = f->services[0].lines;
    weights_wake(f->weights);
    until(f, &f->services[0].lines, lines + 1);
    assert_says(f->services[0].line, "\"mode\":\"ro\"");
    give(f, 0, name, id, bytes, sealed(f->files[0], SEALS));
}


static void
test_unmapped_wake_takes_the_same_bytes(void **state)
{
    fixture_t  *f;

    f = *state;
    sleep_unmapped(f);
    wake_with(f, "w0", ID_A, BYTES);
    until(f, &f->awake, 1);
    assert_holds(f, 0);
    assert_int_equal(f->ready, 1);
}


static void
test_unmapped_wake_refuses_other_bytes(void **state)
{
    fixture_t  *f;

    f = *state;
    sleep_unmapped(f);
    wake_with(f, "w0", ID_B, BYTES);
    until(f, &f->failed, 1);
    assert_int_equal(f->awake, 0);
}


static void
test_unmapped_wake_refuses_another_layout(void **state)
{
    fixture_t  *f;

    f = *state;
    sleep_unmapped(f);
    assert_int_equal(truncate(f->files[0], BYTES - 1), 0);
    wake_with(f, "w0", ID_A, BYTES - 1);
    until(f, &f->failed, 1);
    assert_int_equal(f->awake, 0);
}


static void
test_unmapped_wake_ends_in_time(void **state)
{
    fixture_t  *f;

    f = *state;
    f->options.remap_timeout_ms = 30;
    sleep_unmapped(f);
    service_die(&f->services[0]);
    weights_wake(f->weights);
    until(f, &f->failed, 1);
    assert_int_equal(f->awake, 0);
}


static void
test_unmapped_wake_asks_a_fresh_service_again(void **state)
{
    int         lines;
    fixture_t  *f;

    f = *state;
    sleep_unmapped(f);
    lines = f->services[0].lines;
    weights_wake(f->weights);
    until(f, &f->services[0].lines, lines + 1);
    service_die(&f->services[0]);
    service_start(&f->services[0]);
    until(f, &f->services[0].lines, lines + 2);
    assert_says(f->services[0].line, "\"hello\"");
    assert_int_equal(f->failed, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        CASE(test_weights_are_handed_back),
        CASE(test_service_with_other_weights_ends_nobody),
        CASE(test_refusal_that_passes_is_tried_again_soon),
        CASE(test_mapped_sleep_keeps_all),
        CASE(test_mapped_wake_knows_another_descriptor),
        CASE(test_unmapped_wake_takes_the_same_bytes),
        CASE(test_unmapped_wake_refuses_other_bytes),
        CASE(test_unmapped_wake_refuses_another_layout),
        CASE(test_unmapped_wake_ends_in_time),
        CASE(test_unmapped_wake_asks_a_fresh_service_again)
    };

    signal(SIGPIPE, SIG_IGN);

    return cmocka_run_group_tests(tests, NULL, NULL);
}
