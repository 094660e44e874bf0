
/* Coalesce: when a worker is busy, which sources follow, and for how long. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/coalesce.h"


#define BUSY      LLMGW_COALESCE_BUSY
#define CALM      LLMGW_COALESCE_CALM
#define WINDOW    LLMGW_COALESCE_WINDOW
#define QUIET     LLMGW_COALESCE_QUIET

#define START_MS  1000000


typedef struct {
    llmgw_coalesce_load_t    load;
    llmgw_coalesce_source_t  source;
    uint64_t                 now_ms;
} scene_t;


static void
turn(llmgw_coalesce_load_t *load, uint64_t tokens, uint64_t now_ms)
{
    load->tokens += tokens;
    llmgw_coalesce_iteration(load, now_ms);
}


static void
scene_init(scene_t *s, uint64_t interval_ms)
{
    *s = (scene_t) { .load = { .interval_ms = interval_ms },
                     .now_ms = START_MS };

    turn(&s->load, 0, s->now_ms);
}


/* Counts that many tokens, then ends the window. */
static int
window(scene_t *s, uint64_t tokens)
{
    s->now_ms += WINDOW * s->load.interval_ms;
    turn(&s->load, tokens, s->now_ms);

    return s->load.is_busy;
}


static int
event(scene_t *s, uint64_t gap_ms)
{
    s->now_ms += gap_ms;

    return llmgw_coalesce_event(&s->load, &s->source, s->now_ms);
}


/* A busy worker, with a source that was read just now. */
static void
scene_busy(scene_t *s, uint64_t interval_ms)
{
    scene_init(s, interval_ms);
    assert_true(window(s, BUSY * WINDOW));
    assert_false(event(s, 0));
}


/* The same, with a source that is read at intervals. */
static void
scene_at_intervals(scene_t *s, uint64_t interval_ms)
{
    scene_busy(s, interval_ms);
    assert_true(event(s, interval_ms));
    assert_true(s->source.at_intervals);
}


/* --- load */

static void
busy_begins_at_the_threshold(void **state)
{
    size_t   i;
    scene_t  s;

    static const uint64_t  intervals[] = { 1, 2, 7, 100 };

    for (i = 0; i < sizeof(intervals) / sizeof(intervals[0]); i++) {
        scene_init(&s, intervals[i]);
        assert_false(window(&s, 0));
        assert_false(window(&s, BUSY * WINDOW - 1));
        assert_true(window(&s, BUSY * WINDOW));
    }
}


static void
busy_lasts_down_to_the_lower_threshold(void **state)
{
    int      i;
    scene_t  s;

    scene_busy(&s, 4);

    for (i = 0; i < 100; i++) {
        assert_true(window(&s, CALM * WINDOW));
    }

    assert_false(window(&s, CALM * WINDOW - 1));
    assert_false(window(&s, BUSY * WINDOW - 1));
    assert_true(window(&s, BUSY * WINDOW));
}


/*
 * A window is judged at its end only; all tokens within it count, and no
 * others.
 */
static void
window_is_judged_as_a_whole(void **state)
{
    int      i;
    scene_t  s;

    scene_init(&s, 10);

    for (i = 1; i < 10 * WINDOW; i++) {
        turn(&s.load, 1000, s.now_ms + i);
        assert_false(s.load.is_busy);
    }

    turn(&s.load, 0, s.now_ms + i);
    assert_true(s.load.is_busy);

    s.now_ms += i;
    assert_false(window(&s, 0));

    /* as much again, spread out */

    for (i = 1; i <= 10 * WINDOW; i++) {
        turn(&s.load, i <= 10 * WINDOW / 2 ? 6 : 1, s.now_ms + i);
    }

    assert_true(s.load.is_busy);
}


/* A burst, and then nothing for a long time. */
static void
long_gap_thins_a_burst(void **state)
{
    scene_t  s;

    scene_init(&s, 1);

    s.now_ms += 1000;
    turn(&s.load, BUSY * 1000 - 1, s.now_ms);
    assert_false(s.load.is_busy);

    s.now_ms += 1000;
    turn(&s.load, BUSY * 1000, s.now_ms);
    assert_true(s.load.is_busy);

    s.now_ms += 60000;
    turn(&s.load, 1, s.now_ms);
    assert_false(s.load.is_busy);
}


static void
clock_that_stands_still_judges_nothing(void **state)
{
    int      i;
    scene_t  s;

    scene_init(&s, 1);

    for (i = 0; i < 1000; i++) {
        turn(&s.load, 100, s.now_ms);
        assert_false(s.load.is_busy);
        assert_false(event(&s, 0));
    }

    assert_true(window(&s, 0));
    assert_false(event(&s, WINDOW));
    assert_true(event(&s, 0));
}


static void
clock_may_begin_at_zero(void **state)
{
    llmgw_coalesce_load_t    load = { .interval_ms = 1 };
    llmgw_coalesce_source_t  source = { 0 };

    assert_false(llmgw_coalesce_event(&load, &source, 0));
    turn(&load, BUSY * WINDOW, 0);
    assert_false(load.is_busy);
    turn(&load, 0, WINDOW);
    assert_true(load.is_busy);
    assert_false(llmgw_coalesce_event(&load, &source, WINDOW));
    assert_true(llmgw_coalesce_event(&load, &source, WINDOW + 1));
}


/* Thirty years of uptime, and more tokens than possible. */
static void
great_numbers_do_no_harm(void **state)
{
    uint64_t  now_ms = UINT64_C(1000) * 3600 * 24 * 365 * 30;

    llmgw_coalesce_load_t    load = { .interval_ms = 100 };
    llmgw_coalesce_source_t  source = { 0 };

    turn(&load, UINT32_MAX, now_ms);
    assert_false(load.is_busy);         /* too few in each ms */

    now_ms += WINDOW * 100;
    turn(&load, UINT64_C(1) << 50, now_ms);
    turn(&load, UINT64_C(1) << 50, now_ms + WINDOW * 100);
    assert_true(load.is_busy);

    source.quiet = UINT32_MAX;          /* from long ago */
    assert_false(llmgw_coalesce_event(&load, &source, now_ms));
    assert_true(llmgw_coalesce_event(&load, &source, now_ms));
    assert_false(llmgw_coalesce_interval(&load, &source));

    /* a worker with counts from long ago is calm at once */
    now_ms += UINT64_C(1) << 50;
    load.tokens = 0;
    turn(&load, 1, now_ms);
    assert_false(load.is_busy);
}


static void
off_is_off(void **state)
{
    int      i;
    scene_t  s;

    scene_init(&s, 0);

    for (i = 0; i < 100; i++) {
        s.now_ms += i % 2;
        turn(&s.load, 1000000, s.now_ms);
        assert_false(event(&s, 0));
    }

    assert_false(s.load.is_busy);
    assert_false(s.source.at_intervals);
}


/* --- sources */

static void
source_follows_that_sends_once_an_interval(void **state)
{
    scene_t  s;

    scene_busy(&s, 5);

    assert_false(event(&s, 6));
    assert_false(event(&s, 1000));
    assert_true(event(&s, 5));

    scene_busy(&s, 5);
    assert_true(event(&s, 0));
}


static void
source_of_a_calm_worker_does_not_follow(void **state)
{
    int      i;
    scene_t  s;

    scene_init(&s, 5);

    for (i = 0; i < 100; i++) {
        assert_false(event(&s, i % 5));
        assert_false(window(&s, BUSY * WINDOW - 1));
    }
}


/* An event is still reported where the mark is reached. */
static void
source_goes_over_once(void **state)
{
    scene_t  s;

    scene_at_intervals(&s, 1);

    assert_false(event(&s, 0));
    assert_false(event(&s, 1));
    assert_true(s.source.at_intervals);
}


static void
quiet_intervals_give_it_back(void **state)
{
    int      i;
    scene_t  s;

    scene_at_intervals(&s, 1);

    for (i = 1; i < QUIET; i++) {
        assert_false(llmgw_coalesce_interval(&s.load, &s.source));
    }

    assert_true(llmgw_coalesce_interval(&s.load, &s.source));
    s.source.at_intervals = 0;

    /* its last event was long ago: one alone does not switch it again */
    assert_false(event(&s, QUIET + 1));
    assert_true(event(&s, 1));
    assert_false(llmgw_coalesce_interval(&s.load, &s.source));
}


/* For how many intervals a source stays that has data in each n-th one. */
static int
stays(int n)
{
    int      i;
    scene_t  s;

    scene_at_intervals(&s, 1);

    for (i = 0; i < 1000; i++) {
        if (llmgw_coalesce_interval(&s.load, &s.source)) {
            return i;
        }

        if (i % n == 0) {
            llmgw_coalesce_brought(&s.source);
            llmgw_coalesce_brought(&s.source);
        }
    }

    return i;
}


static void
mostly_empty_intervals_give_it_back(void **state)
{
    assert_int_equal(stays(1), 1000);
    assert_int_equal(stays(2), 1000);
    assert_in_range(stays(3), QUIET, 4 * QUIET);
    assert_in_range(stays(10), QUIET, 2 * QUIET);
}


static void
calm_gives_it_back_at_once(void **state)
{
    scene_t  s;

    scene_at_intervals(&s, 1);

    llmgw_coalesce_brought(&s.source);
    assert_false(llmgw_coalesce_interval(&s.load, &s.source));
    llmgw_coalesce_brought(&s.source);
    assert_false(window(&s, CALM * WINDOW - 1));
    assert_true(llmgw_coalesce_interval(&s.load, &s.source));
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(busy_begins_at_the_threshold),
        cmocka_unit_test(busy_lasts_down_to_the_lower_threshold),
        cmocka_unit_test(window_is_judged_as_a_whole),
        cmocka_unit_test(long_gap_thins_a_burst),
        cmocka_unit_test(clock_that_stands_still_judges_nothing),
        cmocka_unit_test(clock_may_begin_at_zero),
        cmocka_unit_test(great_numbers_do_no_harm),
        cmocka_unit_test(off_is_off),
        cmocka_unit_test(source_follows_that_sends_once_an_interval),
        cmocka_unit_test(source_of_a_calm_worker_does_not_follow),
        cmocka_unit_test(source_goes_over_once),
        cmocka_unit_test(quiet_intervals_give_it_back),
        cmocka_unit_test(mostly_empty_intervals_give_it_back),
        cmocka_unit_test(calm_gives_it_back_at_once)
    };

    return cmocka_run_group_tests_name("coalesce", tests, NULL, NULL);
}
