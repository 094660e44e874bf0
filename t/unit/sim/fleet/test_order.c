
/* In which order events are done: the gateway's, and the replicas'. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/fleet/agenda.h"
#include "sim/fleet/ready.h"


#define EVENTS    3000
#define REPLICAS  37


static void
take(agenda_t *agenda, int64_t at_us, agenda_kind_t kind, uint32_t subject)
{
    const agenda_event_t  *event = agenda_next(agenda);

    assert_non_null(event);
    assert_int_equal(event->at_us, at_us);
    assert_int_equal(event->kind, kind);
    assert_int_equal(event->subject, subject);
    agenda_drop(agenda);
}


static void
test_events_of_one_time_go_by_kind_then_by_coming(void **state)
{
    agenda_t  agenda = { 0 };

    assert_null(agenda_next(&agenda));
    agenda_add(&agenda, 5, AGENDA_TICK, 1, 0);
    agenda_add(&agenda, 5, AGENDA_TTL, 2, 0);
    agenda_add(&agenda, 5, AGENDA_TRANSFER_END, 3, 0);
    agenda_add(&agenda, 5, AGENDA_EVICTION, 4, 0);
    agenda_add(&agenda, 5, AGENDA_TRANSFER_START, 5, 0);
    agenda_add(&agenda, 5, AGENDA_PREFILL, 6, 0);
    agenda_add(&agenda, 5, AGENDA_ROUTING, 7, 0);
    agenda_add(&agenda, 5, AGENDA_ROUTING, 8, 0);
    agenda_add(&agenda, 5, AGENDA_ADMISSION, 9, 0);
    agenda_add(&agenda, 5, AGENDA_ARRIVAL, 10, 0);
    agenda_add(&agenda, 4, AGENDA_TICK, 11, 0);

    take(&agenda, 4, AGENDA_TICK, 11);
    take(&agenda, 5, AGENDA_ARRIVAL, 10);
    take(&agenda, 5, AGENDA_ADMISSION, 9);
    take(&agenda, 5, AGENDA_ROUTING, 7);
    take(&agenda, 5, AGENDA_ROUTING, 8);
    take(&agenda, 5, AGENDA_PREFILL, 6);
    take(&agenda, 5, AGENDA_EVICTION, 4);
    take(&agenda, 5, AGENDA_TRANSFER_START, 5);
    take(&agenda, 5, AGENDA_TTL, 2);
    take(&agenda, 5, AGENDA_TRANSFER_END, 3);
    take(&agenda, 5, AGENDA_TICK, 1);
    assert_null(agenda_next(&agenda));
    agenda_done(&agenda);
}


static void
test_any_events_come_out_in_order(void **state)
{
    int                    i;
    agenda_t               agenda = { 0 };
    agenda_event_t         last;
    const agenda_event_t  *next;

    srand(1);

    for (i = 0; i < EVENTS; i++) {
        assert_int_equal(agenda_add(&agenda, rand() % 50,
                                    (agenda_kind_t) (rand() % 9),
                                    (uint32_t) i, 0), 0);
    }

    last = *agenda_next(&agenda);
    agenda_drop(&agenda);

    for (i = 1; i < EVENTS; i++) {
        next = agenda_next(&agenda);
        assert_true(next->at_us > last.at_us
                    || (next->at_us == last.at_us
                        && next->order > last.order));
        last = *next;
        agenda_drop(&agenda);
    }

    assert_null(agenda_next(&agenda));
    agenda_done(&agenda);
}


/* The tree against a walk over all, with many equal times. */
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
            test_the_earliest_replica_is_next_of_equal_ones_the_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
