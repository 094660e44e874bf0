
/* A pace: starts that are due happen on time and in order, or wait for room. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/load/pace.h"
#include "common/os/mono.h"


#define SCENE_MAX  8

typedef struct {
    pace_t     pace;
    uint64_t   dues[SCENE_MAX];
    size_t     ndues;
    size_t     n;                   /* how many have started */
    uint64_t   started_ns[SCENE_MAX];
    uint64_t   said_ns[SCENE_MAX];  /* times that start() was given */
    size_t     room;
    unsigned   looks;
    unsigned   interrupts;
} scene_t;


static uint64_t
scene_next(void *data)
{
    scene_t  *s;

    s = data;

    return s->n < s->ndues ? s->dues[s->n] : PACE_NEVER;
}


static int
scene_start(void *data, uint64_t due_ns)
{
    scene_t  *s;

    s = data;

    if (s->room == 0) {
        return -1;
    }

    s->room--;
    s->said_ns[s->n] = due_ns;
    s->started_ns[s->n++] = mono_ns();

    return 0;
}


static void
scene_looked(void *data)
{
    scene_t  *s;

    s = data;
    s->looks++;

    if (s->n == s->ndues || s->room == 0) {
        ev_break(s->pace.loop, EVBREAK_ALL);
    }
}


static void
scene_progress(void *data)
{
}


static void
scene_interrupt(void *data)
{
    scene_t  *s;

    s = data;
    s->interrupts++;
    ev_break(s->pace.loop, EVBREAK_ALL);
}


static const pace_source_t  scene_source = {
    .next = scene_next,
    .start = scene_start,
    .looked = scene_looked,
    .progress = scene_progress,
    .interrupt = scene_interrupt
};


static void
scene_init(scene_t *s, size_t room)
{
    memset(s, 0, sizeof(*s));
    s->room = room;
    assert_int_equal(pace_init(&s->pace, ev_default_loop(0), &scene_source, s),
                     0);
}


static void
nothing_starts_before_its_time(void **state)
{
    size_t    i;
    scene_t   s;
    uint64_t  now_ns;

    scene_init(&s, SCENE_MAX);
    now_ns = mono_ns();

    for (i = 0; i < 4; i++) {
        s.dues[s.ndues++] = now_ns + i / 2 * 3000000;   /* two at a time */
    }

    pace_look(&s.pace);
    assert_int_equal(s.n, 2);
    ev_run(s.pace.loop, 0);
    assert_int_equal(s.n, 4);

    for (i = 0; i < 4; i++) {
        assert_true(s.started_ns[i] >= s.dues[i]);
        assert_true(s.said_ns[i] == s.dues[i]);
    }

    pace_done(&s.pace);
    pace_done(&s.pace);
}


static void
what_waits_for_room_keeps_its_time(void **state)
{
    scene_t   s;
    uint64_t  now_ns;

    scene_init(&s, 1);
    now_ns = mono_ns();
    s.dues[0] = now_ns - 2000;
    s.dues[1] = now_ns - 1000;
    s.ndues = 2;

    pace_look(&s.pace);
    pace_look(&s.pace);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.looks, 2);

    s.room = 1;
    pace_look(&s.pace);
    assert_int_equal(s.n, 2);
    assert_true(s.said_ns[1] == now_ns - 1000);
    pace_done(&s.pace);
}


static void
what_is_due_at_once_is_due_now(void **state)
{
    scene_t   s;
    uint64_t  now_ns;

    scene_init(&s, 3);
    now_ns = mono_ns();
    s.ndues = 3;
    pace_look(&s.pace);
    assert_int_equal(s.n, 3);
    assert_true(s.said_ns[0] >= now_ns && s.said_ns[0] <= s.started_ns[0]);
    pace_done(&s.pace);
}


/* The pace waits for the earliest time: if a later look finds an earlier one,
   it waits for that. */
static void
an_earlier_time_that_appears_is_kept(void **state)
{
    scene_t  s;

    scene_init(&s, 2);
    s.dues[0] = mono_ns() + 3600 * UINT64_C(1000000000);
    s.ndues = 1;
    pace_look(&s.pace);
    assert_int_equal(s.n, 0);

    s.dues[0] = mono_ns() + 1000000;
    pace_look(&s.pace);
    ev_run(s.pace.loop, 0);
    assert_int_equal(s.n, 1);
    pace_done(&s.pace);
}


static void
ctrl_c_reaches_the_source(void **state)
{
    scene_t  s;

    scene_init(&s, 1);
    s.dues[0] = mono_ns() + 3600 * UINT64_C(1000000000);
    s.ndues = 1;
    pace_look(&s.pace);
    raise(SIGINT);
    ev_run(s.pace.loop, 0);
    assert_int_equal(s.interrupts, 1);
    assert_int_equal(s.n, 0);
    pace_done(&s.pace);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(nothing_starts_before_its_time),
        cmocka_unit_test(what_waits_for_room_keeps_its_time),
        cmocka_unit_test(what_is_due_at_once_is_due_now),
        cmocka_unit_test(an_earlier_time_that_appears_is_kept),
        cmocka_unit_test(ctrl_c_reaches_the_source)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
