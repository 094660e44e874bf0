
/*
 * The order in which things are done: requests, events, replicas, and what
 * comes last.
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/fleet/fleet_inner.h"


#define EVENTS    3000
#define REPLICAS  37


static void
scene_init(loop_t *loop, work_t *work)
{
    memset(loop, 0, sizeof(*loop));
    work_init(work);
    assert_int_equal(loop_init(loop, work, 1), 0);
}


static void
scene_done(loop_t *loop, work_t *work)
{
    assert_null(heap_first(&loop->heap));
    loop_done(loop);
    work_done(work);
}


static void
add(loop_t *loop, int64_t at_us, fleet_event_kind_t kind, uint32_t subject)
{
    loop_event_t  event = { .kind = kind, .subject = subject };

    assert_int_equal(loop_add(loop, at_us, fleet_rank(kind), event), 0);
}


static void
take(loop_t *loop, int64_t at_us, fleet_event_kind_t kind, uint32_t subject)
{
    const loop_event_t  *event = heap_first(&loop->heap);

    assert_non_null(event);
    assert_int_equal(event->key.at_us, at_us);
    assert_int_equal(event->kind, kind);
    assert_int_equal(event->subject, subject);
    heap_drop(&loop->heap);
}


static void
test_events_of_one_time_go_by_kind_then_by_coming(void **state)
{
    loop_t  loop;
    work_t  work;

    scene_init(&loop, &work);
    add(&loop, 5, FLEET_EVENT_TICK, 1);
    add(&loop, 5, FLEET_EVENT_TTL, 2);
    add(&loop, 5, FLEET_EVENT_TRANSFER_END, 3);
    add(&loop, 5, FLEET_EVENT_EVICTION, 4);
    add(&loop, 5, FLEET_EVENT_TRANSFER_START, 5);
    add(&loop, 5, FLEET_EVENT_PREFILL, 6);
    add(&loop, 5, FLEET_EVENT_ROUTING, 7);
    add(&loop, 5, FLEET_EVENT_ROUTING, 8);
    add(&loop, 5, FLEET_EVENT_ADMISSION, 9);
    add(&loop, 5, FLEET_EVENT_ARRIVAL, 10);
    add(&loop, 4, FLEET_EVENT_TICK, 11);

    take(&loop, 4, FLEET_EVENT_TICK, 11);
    take(&loop, 5, FLEET_EVENT_ARRIVAL, 10);
    take(&loop, 5, FLEET_EVENT_ADMISSION, 9);
    take(&loop, 5, FLEET_EVENT_ROUTING, 7);
    take(&loop, 5, FLEET_EVENT_ROUTING, 8);
    take(&loop, 5, FLEET_EVENT_PREFILL, 6);
    take(&loop, 5, FLEET_EVENT_EVICTION, 4);
    take(&loop, 5, FLEET_EVENT_TRANSFER_START, 5);
    take(&loop, 5, FLEET_EVENT_TTL, 2);
    take(&loop, 5, FLEET_EVENT_TRANSFER_END, 3);
    take(&loop, 5, FLEET_EVENT_TICK, 1);
    scene_done(&loop, &work);
}


static void
test_any_events_come_out_in_order(void **state)
{
    int           i;
    loop_t        loop;
    work_t        work;
    heap_key_t    last, next;

    srand(1);
    scene_init(&loop, &work);

    for (i = 0; i < EVENTS; i++) {
        add(&loop, rand() % 50, (fleet_event_kind_t) (rand() % 9),
            (uint32_t) i);
    }

    last = *(const heap_key_t *) heap_first(&loop.heap);
    heap_drop(&loop.heap);

    for (i = 1; i < EVENTS; i++) {
        next = *(const heap_key_t *) heap_first(&loop.heap);
        assert_true(heap_is_before(&last, &next));
        last = next;
        heap_drop(&loop.heap);
    }

    scene_done(&loop, &work);
}


/* What each turn was for: a letter for each, in a text. */
typedef struct {
    loop_t  loop;
    char    text[64];
    size_t  n;
    int     lasts;
} turns_t;


static void
turns_note(void *data, char letter)
{
    turns_t  *t = data;

    assert_true(t->n < sizeof(t->text) - 1);
    t->text[t->n++] = letter;
}


static void
turns_arrive(void *data, uint32_t request)
{
    turns_note(data, (char) ('a' + request));
}


static void
turns_event(void *data, const loop_event_t *event)
{
    turns_note(data, (char) ('0' + event->subject));
}


static void
turns_step(void *data, uint32_t replica)
{
    turns_t  *t = data;

    turns_note(data, (char) ('A' + replica));
    ready_set(&t->loop.ready, replica, INT64_MAX);
}


static int64_t
turns_last_us(void *data)
{
    turns_t  *t = data;

    return t->lasts > 0 ? 5 : INT64_MAX;
}


static void
turns_last(void *data)
{
    turns_t  *t = data;

    turns_note(data, '.');
    t->lasts--;
}


static void
test_a_turn_is_for_requests_events_replicas_then_what_comes_last(void **state)
{
    int              i;
    work_t           work;
    turns_t          t = { .lasts = 2 };
    static const int64_t       arrivals_us[] = { 5, 2, 5, 9 };
    static const loop_hooks_t  hooks = {
        .arrive = turns_arrive, .event = turns_event, .step = turns_step,
        .last_us = turns_last_us, .last = turns_last
    };

    work_init(&work);

    for (i = 0; i < 4; i++) {
        work_add(&work)->arrival_us = arrivals_us[i];
    }

    t.loop.hooks = &hooks;
    t.loop.data = &t;
    t.loop.horizon_us = 8;
    assert_int_equal(loop_init(&t.loop, &work, 3), 0);
    ready_set(&t.loop.ready, 2, 5);
    ready_set(&t.loop.ready, 1, 5);
    ready_set(&t.loop.ready, 0, 8);
    add(&t.loop, 5, FLEET_EVENT_TICK, 1);
    add(&t.loop, 5, FLEET_EVENT_ROUTING, 2);
    add(&t.loop, 1, FLEET_EVENT_TICK, 3);
    add(&t.loop, 9, FLEET_EVENT_ARRIVAL, 4);

    loop_run(&t.loop, NULL);
    assert_string_equal(t.text, "3bac21BC..A");
    assert_int_equal(t.loop.turns, 11);
    assert_int_equal(t.loop.clock_us, 8);

    loop_done(&t.loop);
    work_done(&work);
}


/*
 * The tree gives what a walk over all replicas gives, with many equal times.
 */
static void
test_the_earliest_replica_is_next_of_equal_ones_the_first(void **state)
{
    int       turn;
    ready_t   ready;
    int64_t   times[REPLICAS];
    uint32_t  i, first;

    srand(2);
    assert_int_equal(ready_init(&ready, REPLICAS), 0);
    assert_int_equal(ready_time(&ready), INT64_MAX);

    for (i = 0; i < REPLICAS; i++) {
        times[i] = INT64_MAX;
    }

    for (turn = 0; turn < 20000; turn++) {
        i = (uint32_t) rand() % REPLICAS;
        times[i] = rand() % 8 == 0 ? INT64_MAX : rand() % 20;
        ready_set(&ready, i, times[i]);

        for (i = 0, first = 0; i < REPLICAS; i++) {
            first = times[i] < times[first] ? i : first;
        }

        assert_int_equal(ready_time(&ready), times[first]);

        if (times[first] != INT64_MAX) {
            assert_int_equal(ready_first(&ready), first);
        }
    }

    ready_done(&ready);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_events_of_one_time_go_by_kind_then_by_coming),
        cmocka_unit_test(test_any_events_come_out_in_order),
        cmocka_unit_test(
            test_a_turn_is_for_requests_events_replicas_then_what_comes_last),
        cmocka_unit_test(
            test_the_earliest_replica_is_next_of_equal_ones_the_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
