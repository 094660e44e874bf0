
/* What a shard counts of each caller, and that names are bounded. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "t/unit/replica/shard/serve/serve_test.h"


static json_int_t
reported(const callers_t *callers, const char *id, const char *figure)
{
    json_t      *report, *value;
    json_int_t   n;

    report = callers_report(callers);
    assert_non_null(report);
    value = json_object_get(json_object_get(report, id), figure);

    if (value == NULL) {
        value = json_object_get(json_object_get(json_object_get(report, id),
                                                "refused"), figure);
    }

    n = value != NULL ? json_integer_value(value) : -1;
    json_decref(report);

    return n;
}


static void
sessions_rows_and_refusals_count_at_their_caller(void **state)
{
    scene_t                  s;
    scene_client_t           a, b, c;
    const callers_t         *callers;
    Llmgateway__Shard__Open  open = client_request();

    scene_init(&s, &options);
    scene_ready(&s);
    callers = serve_callers(s.serve);
    client_open(&s, &a);
    client_ask(&a, &open);
    client_step(&a, 0, 3, 0);
    scene_compute(&s, SHARD_STEP_DONE);
    client_step(&a, 3, 2, 0);               /* not computed yet */
    assert_int_equal(reported(callers, "orch", "sessions"), 1);
    assert_int_equal(reported(callers, "orch", "rows"), 3);

    open.caller = "other";
    client_open(&s, &b);
    client_ask(&b, &open);
    client_open(&s, &c);
    client_ask(&c, &open);                  /* more than two sessions */
    assert_int_equal(reported(callers, "other", "sessions"), 1);
    assert_int_equal(reported(callers, "other", "opened"), 1);
    assert_int_equal(reported(callers, "other", "shard_full"), 1);
    assert_int_equal(reported(callers, "orch", "shard_full"), -1);

    client_step(&b, 1, 1, 0);               /* not the next position */
    assert_int_equal(reported(callers, "other", "bad_position"), 1);
    assert_int_equal(reported(callers, "other", "sessions"), 0);
    scene_compute(&s, SHARD_STEP_FAILED);
    assert_int_equal(reported(callers, "orch", "failed"), 1);
    assert_int_equal(reported(callers, "orch", "rows"), 3);
    assert_int_equal(reported(callers, "orch", "sessions"), 0);

    client_close(&a);
    client_close(&b);
    test_finish(&s, &c);
}


/* A session that waits for the slice counts as its caller's, too. */
static void
session_is_released_once_however_it_ends(void **state)
{
    int                      i;
    scene_t                  s;
    scene_client_t           c;
    Llmgateway__Shard__Open  open = client_request();

    for (i = 0; i < 2; i++) {
        scene_init(&s, &options);
        client_open(&s, &c);
        client_ask(&c, &open);
        assert_int_equal(reported(serve_callers(s.serve), "orch", "sessions"),
                         1);

        if (i == 0) {
            scene_tick(&s, 60000);
            test_ended(&c, SHARD_LOADING);
        } else {
            serve_stop(s.serve, "stops");
            test_ended(&c, SHARD_DRAINING);
        }

        assert_int_equal(reported(serve_callers(s.serve), "orch", "sessions"),
                         0);
        assert_int_equal(reported(serve_callers(s.serve), "orch",
                                  i == 0 ? "loading" : "draining"), 1);
        client_close(&c);
        assert_int_equal(reported(serve_callers(s.serve), "orch", "sessions"),
                         0);
        scene_done(&s);
    }
}


/*
 * A name that no key has signed may be another caller's, so the refusal does
 * not count for it.
 */
static void
refusal_of_an_unknown_caller_counts_at_the_others(void **state)
{
    char                     path[64], error[SHARD_KEY_ERROR_BYTES];
    FILE                    *file;
    scene_t                  s;
    scene_client_t           c;
    serve_options_t          keyed = options;
    Llmgateway__Shard__Open  open = client_request();

    snprintf(path, sizeof(path), "/tmp/llmgw-callers-%d", (int) getpid());
    file = fopen(path, "w");
    fprintf(file, "* GQzGBRMbq8WlBkmCwPvvlXI8fMXl3b2Yx7zS0m8hZ1E=\n");
    fclose(file);
    chmod(path, 0600);
    keyed.key = shard_key_open(path, error);
    unlink(path);
    assert_non_null(keyed.key);

    scene_init(&s, &keyed);
    scene_ready(&s);
    client_open(&s, &c);
    client_ask(&c, &open);
    test_ended(&c, SHARD_BAD_TOKEN);
    assert_int_equal(reported(serve_callers(s.serve), CALLERS_OTHERS,
                              "bad_token"), 1);
    assert_int_equal(reported(serve_callers(s.serve), "orch", "bad_token"),
                     -1);
    test_finish(&s, &c);
    shard_key_close((shard_key_t *) keyed.key);
}


static caller_t *
named(callers_t *callers, int i)
{
    char  id[LLMGW_MEMBERS_NAME_BYTES];

    snprintf(id, sizeof(id), "o%d", i);

    return callers_find(callers, id);
}


/* The sum over all names is what was asked, whichever are forgotten. */
static void
caller_beyond_the_limit_takes_the_place_of_an_idle_one(void **state)
{
    int         i;
    caller_t   *caller;
    callers_t   callers = { .n = 0 };

    for (i = 0; i < CALLERS_MAX; i++) {
        caller = named(&callers, i);
        caller_opened(caller);
        caller->rows = 10;
        caller->refused[SHARD_FULL] = 1;
    }

    caller = named(&callers, CALLERS_MAX);      /* all have a session */
    assert_ptr_equal(caller, &callers.others);
    caller_opened(caller);
    caller_closed(caller);
    assert_int_equal(reported(&callers, CALLERS_OTHERS, "opened"), 1);

    caller_closed(named(&callers, 3));
    caller_closed(named(&callers, 5));
    (void) named(&callers, 3);                  /* used after o5 */
    caller = named(&callers, CALLERS_MAX);
    assert_string_equal(caller->id, "o16");
    assert_int_equal(caller->rows, 0);
    assert_int_equal(reported(&callers, "o5", "opened"), -1);
    assert_int_equal(reported(&callers, "o3", "opened"), 1);
    assert_int_equal(reported(&callers, CALLERS_OTHERS, "opened"), 2);
    assert_int_equal(reported(&callers, CALLERS_OTHERS, "rows"), 10);
    assert_int_equal(reported(&callers, CALLERS_OTHERS, "shard_full"), 1);

    for (i = 0; i < 1000; i++) {
        caller = named(&callers, 100 + i);
        caller_opened(caller);
        caller_closed(caller);
    }

    assert_int_equal(callers.n, CALLERS_MAX);
    assert_int_equal(reported(&callers, "o0", "sessions"), 1);
}


/*
 * A report with the longest names and every reason is short enough for an
 * agent.
 */
static void
report_has_a_limit(void **state)
{
    int         i;
    char        id[LLMGW_MEMBERS_NAME_BYTES];
    size_t      k;
    json_t     *report;
    caller_t   *caller;
    callers_t   callers = { .n = 0 };

    memset(id, 'a', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';

    for (i = 0; i <= CALLERS_MAX; i++) {
        id[0] = (char) ('a' + i);
        caller = callers_find(&callers, id);
        caller->opened = caller->rows = 1ULL << 62;
        caller->sessions = 1;

        for (k = 1; k < SHARD_REASONS_COUNT; k++) {
            caller->refused[k] = 1ULL << 62;
        }
    }

    report = callers_report(&callers);
    assert_int_equal(json_object_size(report), CALLERS_MAX + 1);
    assert_in_range(json_dumpb(report, NULL, 0, JSON_COMPACT), 1000, 32768);
    json_decref(report);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(sessions_rows_and_refusals_count_at_their_caller),
        cmocka_unit_test(session_is_released_once_however_it_ends),
        cmocka_unit_test(refusal_of_an_unknown_caller_counts_at_the_others),
        cmocka_unit_test(
            caller_beyond_the_limit_takes_the_place_of_an_idle_one),
        cmocka_unit_test(report_has_a_limit)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
