
/*
 * Coalesce: a model of a worker, with a clock that the test moves and sources
 * that each have their own pace.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/coalesce.h"


#define WINDOW    LLMGW_COALESCE_WINDOW
#define QUIET     LLMGW_COALESCE_QUIET

#define START_MS  1000000
#define SOURCES   8


typedef struct {
    uint64_t                 interval_ms;
    uint64_t                 period_ms[SOURCES];    /* 0: silent */
    uint64_t                 tokens[SOURCES];       /* each time */

    /* the results */
    uint64_t                 by_event, by_interval;
    uint64_t                 sent, passed;
    uint64_t                 longest_ms;            /* longest wait */
    uint64_t                 marks[SOURCES];        /* how many were set */
    uint64_t                 closest_ms;            /* least gap of marks */

    llmgw_coalesce_load_t    load;
    llmgw_coalesce_source_t  sources[SOURCES];
    uint64_t                 pending[SOURCES];
    uint64_t                 since_ms[SOURCES];     /* pending */
    uint64_t                 marked_ms[SOURCES];
    uint64_t                 fires_ms;              /* 0: not set */
} worker_t;


static uint64_t
worker_read(worker_t *w, int i, uint64_t now_ms)
{
    uint64_t  n;

    n = w->pending[i];
    w->pending[i] = 0;
    w->passed += n;

    if (n) {
        llmgw_coalesce_brought(&w->sources[i]);

        if (now_ms - w->since_ms[i] > w->longest_ms) {
            w->longest_ms = now_ms - w->since_ms[i];
        }
    }

    return n;
}


static void
worker_mark(worker_t *w, int i, uint64_t now_ms)
{
    if (w->marks[i]++ && now_ms - w->marked_ms[i] < w->closest_ms) {
        w->closest_ms = now_ms - w->marked_ms[i];
    }

    w->marked_ms[i] = now_ms;

    if (w->fires_ms == 0) {
        w->fires_ms = now_ms + w->interval_ms;
    }
}


static uint64_t
worker_fire(worker_t *w, uint64_t now_ms)
{
    int       i;
    uint64_t  n;

    n = 0;
    w->fires_ms = 0;

    for (i = 0; i < SOURCES; i++) {
        if (!w->sources[i].at_intervals) {
            continue;
        }

        if (llmgw_coalesce_interval(&w->load, &w->sources[i])) {
            w->sources[i].at_intervals = 0;
        }

        w->by_interval++;
        n += worker_read(w, i, now_ms);

        if (w->sources[i].at_intervals) {
            w->fires_ms = now_ms + w->interval_ms;
        }
    }

    return n;
}


static void
worker_turn(worker_t *w, uint64_t now_ms)
{
    int       i;
    uint64_t  n;

    n = 0;

    for (i = 0; i < SOURCES; i++) {
        if (w->period_ms[i] == 0 || (now_ms + i) % w->period_ms[i]) {
            continue;
        }

        if (w->pending[i] == 0) {
            w->since_ms[i] = now_ms;
        }

        w->pending[i] += w->tokens[i];
        w->sent += w->tokens[i];

        if (w->sources[i].at_intervals) {
            continue;
        }

        if (llmgw_coalesce_event(&w->load, &w->sources[i], now_ms)) {
            worker_mark(w, i, now_ms);
        }

        w->by_event++;
        n += worker_read(w, i, now_ms);
    }

    if (w->fires_ms && w->fires_ms <= now_ms) {
        n += worker_fire(w, now_ms);
    }

    if (n) {
        w->load.tokens += n;
        llmgw_coalesce_iteration(&w->load, now_ms);
    }
}


/* Runs the worker for so long; the results are counted from here on. */
static void
worker_run(worker_t *w, uint64_t *now_ms, uint64_t during_ms)
{
    int       i;
    uint64_t  end_ms;

    w->by_event = w->by_interval = w->longest_ms = 0;
    w->closest_ms = UINT64_MAX;
    w->load.interval_ms = w->interval_ms;

    for (end_ms = *now_ms + during_ms; *now_ms < end_ms; (*now_ms)++) {
        worker_turn(w, *now_ms);

        for (i = 0; i < SOURCES; i++) {
            assert_true(w->pending[i] == 0 || w->sources[i].at_intervals);
        }
    }

    assert_in_range(w->longest_ms, 0, w->interval_ms);
}


static void
worker_of_few_tokens_holds_nothing(void **state)
{
    int       i;
    uint64_t  now_ms = START_MS;
    worker_t  w = { .interval_ms = 10 };

    /* eight replicas, all together 31 tokens in 10 ms */
    for (i = 0; i < SOURCES; i++) {
        w.period_ms[i] = 10;
        w.tokens[i] = 4 - (i == 0);
    }

    worker_run(&w, &now_ms, 100000);

    assert_int_equal(w.by_interval, 0);
    assert_int_equal(w.sent, 31 * 10000);
    assert_int_equal(w.passed, w.sent);
}


static void
worker_of_many_tokens_reads_once_an_interval(void **state)
{
    int       i;
    uint64_t  now_ms = START_MS;
    worker_t  w = { .interval_ms = 10 };

    for (i = 0; i < SOURCES; i++) {
        w.period_ms[i] = 1 + i % 3;
        w.tokens[i] = 3;
    }

    worker_run(&w, &now_ms, 1000);
    worker_run(&w, &now_ms, 100000);

    assert_int_equal(w.by_event, 0);
    assert_int_equal(w.by_interval, SOURCES * 10000);
}


/* A slow source beside fast ones is neither buffered nor delayed. */
static void
slow_source_stays_with_events(void **state)
{
    int       i;
    uint64_t  now_ms = START_MS;
    worker_t  w = { .interval_ms = 10 };

    for (i = 0; i < SOURCES; i++) {
        w.period_ms[i] = i ? 1 : 11;
        w.tokens[i] = 1;
    }

    worker_run(&w, &now_ms, 1000);
    worker_run(&w, &now_ms, 110000);

    assert_int_equal(w.marks[0], 0);
    assert_int_equal(w.by_event, 10000);
    assert_int_equal(w.by_interval, (SOURCES - 1) * 11000);
}


/*
 * After the load has ended the timer is not set, and no source is at
 * intervals.
 */
static void
worker_whose_load_ends_ticks_no_more(void **state)
{
    int       i;
    uint64_t  now_ms = START_MS;
    worker_t  w = { .interval_ms = 10 };

    for (i = 0; i < SOURCES; i++) {
        w.period_ms[i] = 1;
        w.tokens[i] = 8;
    }

    worker_run(&w, &now_ms, 1000);
    assert_true(w.fires_ms);

    for (i = 0; i < SOURCES; i++) {
        w.period_ms[i] = 0;
    }

    worker_run(&w, &now_ms, 10 * (QUIET + 3));
    assert_int_equal(w.fires_ms, 0);
    assert_int_equal(w.passed, w.sent);

    /* one source comes back alone: a window later its data does not wait */

    w.period_ms[3] = 7;
    w.tokens[3] = 1;
    worker_run(&w, &now_ms, 10 * (WINDOW + 3));
    worker_run(&w, &now_ms, 70000);
    assert_int_equal(w.by_event, 10000);
    assert_int_equal(w.by_interval, 0);
}


/*
 * Loads and paces change all the time: nothing waits longer than an interval,
 * nothing is forgotten, and no source switches more than once in QUIET
 * intervals.
 */
static void
changing_paces_make_few_marks(void **state)
{
    int       i, k;
    uint64_t  seed, now_ms, marks;
    worker_t  w;

    for (seed = 1; seed <= 50; seed++) {
        srandom((unsigned) seed);
        w = (worker_t) { .interval_ms = 1 + seed % 20 };
        now_ms = START_MS;
        marks = 0;

        for (k = 0; k < 200; k++) {
            for (i = 0; i < SOURCES; i++) {
                w.period_ms[i] = (uint64_t) random()
                                 % (4 * w.interval_ms + 1);
                w.tokens[i] = 1 + (uint64_t) random() % 12;
            }

            worker_run(&w, &now_ms, 1 + (uint64_t) random() % 200);
            assert_true(w.closest_ms >= QUIET * w.interval_ms);
        }

        for (i = 0; i < SOURCES; i++) {
            assert_in_range(w.marks[i], 0, (now_ms - START_MS)
                                           / (QUIET * w.interval_ms) + 1);
            marks += w.marks[i];
            w.period_ms[i] = 0;
        }

        assert_true(marks);             /* some marks were set */

        worker_run(&w, &now_ms, w.interval_ms * (QUIET + 3));
        assert_int_equal(w.passed, w.sent);
    }
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(worker_of_few_tokens_holds_nothing),
        cmocka_unit_test(worker_of_many_tokens_reads_once_an_interval),
        cmocka_unit_test(slow_source_stays_with_events),
        cmocka_unit_test(worker_whose_load_ends_ticks_no_more),
        cmocka_unit_test(changing_paces_make_few_marks)
    };

    return cmocka_run_group_tests_name("coalesce worker", tests, NULL, NULL);
}
