
/* An engine's half of the lock protocol. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "replica/standby/lock_session.h"


static seat_t
asked(void)
{
    seat_t  seat = { .state = SEAT_AWAY };

    seat_connected(&seat);
    assert_int_equal(seat.state, SEAT_ASKED);

    return seat;
}


static seat_t
taking(uint64_t epoch)
{
    seat_t  seat;

    seat = asked();
    assert_int_equal(seat_queued(&seat, 0), SEAT_NOTHING);
    assert_int_equal(seat.state, SEAT_WAITING);
    assert_int_equal(seat_offered(&seat, epoch), SEAT_TAKE);
    assert_int_equal(seat.offered, epoch);

    return seat;
}


static seat_t
holding(uint64_t epoch)
{
    seat_t  seat;

    seat = taking(epoch);
    assert_int_equal(seat_granted(&seat, epoch, 99), SEAT_BEGIN);
    assert_int_equal(seat.state, SEAT_HELD);
    assert_int_equal(seat.epoch, epoch);
    assert_int_equal(seat.lock, 99);

    return seat;
}


static void
only_what_was_offered_can_be_granted(void **state)
{
    seat_t  seat;

    seat = taking(5);
    assert_int_equal(seat_granted(&seat, 6, 99), SEAT_RETRY);
    assert_int_equal(seat.epoch, 0);

    seat = asked();
    assert_int_equal(seat_granted(&seat, 0, 99), SEAT_RETRY);
    assert_int_equal(seat_granted(&seat, 5, 99), SEAT_RETRY);
    assert_int_equal(seat.epoch, 0);
}


/* What the service forgets is brought back, and no lower epoch is taken. */
static void
a_waiter_learns_the_greatest_epoch(void **state)
{
    seat_t  seat;

    seat = asked();
    assert_int_equal(seat_queued(&seat, 7), SEAT_NOTHING);
    assert_int_equal(seat_queued(&seat, 5), SEAT_NOTHING);
    seat_lost(&seat);
    seat_connected(&seat);
    assert_int_equal(seat.last_epoch, 7);
    assert_int_equal(seat_queued(&seat, 0), SEAT_NOTHING);
    assert_int_equal(seat_offered(&seat, 7), SEAT_RETRY);
    assert_int_equal(seat_offered(&seat, 8), SEAT_TAKE);
}


/* The clock was wrong when the service drew that epoch. */
static void
a_waiter_forgets_an_epoch_that_gossip_refuses(void **state)
{
    seat_t  seat;

    seat = asked();
    assert_int_equal(seat_queued(&seat, 700), SEAT_NOTHING);
    seat_lost(&seat);
    seat_forget_above(&seat, 700);
    seat_connected(&seat);
    assert_int_equal(seat.last_epoch, 700);
    assert_int_equal(seat_offered(&seat, 8), SEAT_RETRY);

    seat_lost(&seat);
    seat_forget_above(&seat, 699);
    seat_connected(&seat);
    assert_int_equal(seat.last_epoch, 0);
    assert_int_equal(seat_offered(&seat, 8), SEAT_TAKE);

    seat = holding(700);
    seat_forget_above(&seat, 699);
    assert_int_equal(seat.epoch, 700);
    assert_int_equal(seat.last_epoch, 700);
}


/* The service forgot it: so does the engine, which holds nothing yet. */
static void
an_offer_ends_with_its_connection(void **state)
{
    seat_t  seat;

    seat = taking(5);
    seat_lost(&seat);
    assert_int_equal(seat.state, SEAT_AWAY);
    seat_connected(&seat);
    assert_int_equal(seat_granted(&seat, 5, 99), SEAT_RETRY);
    assert_int_equal(seat.epoch, 0);
}


static void
a_take_that_was_late_leaves_the_engine_in_the_queue(void **state)
{
    seat_t                    seat;
    size_t                    i;
    static const char *const  reasons[] = { "late", "busy", "state" };

    for (i = 0; i < 3; i++) {
        seat = taking(5);
        assert_int_equal(seat_refused(&seat, reasons[i]), SEAT_NOTHING);
        assert_int_equal(seat.state, SEAT_WAITING);
        assert_int_equal(seat_offered(&seat, 6), SEAT_TAKE);
        assert_int_equal(seat_granted(&seat, 6, 99), SEAT_BEGIN);
    }
}


/* A second offer came before the first TAKE was answered. */
static void
two_takes_that_were_late_leave_the_engine_in_the_queue(void **state)
{
    seat_t  seat;

    seat = taking(5);
    assert_int_equal(seat_offered(&seat, 6), SEAT_TAKE);
    assert_int_equal(seat_refused(&seat, "late"), SEAT_NOTHING);
    assert_int_equal(seat_refused(&seat, "late"), SEAT_NOTHING);
    assert_int_equal(seat.state, SEAT_WAITING);
    assert_int_equal(seat_offered(&seat, 7), SEAT_TAKE);
    assert_int_equal(seat_granted(&seat, 7, 99), SEAT_BEGIN);
}


static void
a_waiter_that_is_refused_must_end(void **state)
{
    seat_t  seat;

    seat = asked();
    assert_int_equal(seat_refused(&seat, "no_pidfd"), SEAT_REFUSED);

    seat = asked();
    assert_int_equal(seat_refused(&seat, "late"), SEAT_REFUSED);

    seat = taking(5);
    assert_int_equal(seat_refused(&seat, "too_many"), SEAT_REFUSED);
}


static void
a_holder_outlives_the_service_and_is_granted_again(void **state)
{
    seat_t  seat;

    seat = holding(5);
    seat_lost(&seat);
    assert_int_equal(seat.epoch, 5);

    seat_connected(&seat);
    assert_int_equal(seat_granted(&seat, 6, 100), SEAT_RETRY);
    assert_int_equal(seat.epoch, 5);
    assert_int_equal(seat.lock, 99);
    assert_int_equal(seat_granted(&seat, 5, 100), SEAT_GO_ON);
    assert_int_equal(seat.lock, 100);
}


static void
no_word_of_the_service_ends_a_holder(void **state)
{
    seat_t  seat;

    seat = holding(5);
    assert_int_equal(seat_refused(&seat, "held"), SEAT_RETRY);
    assert_int_equal(seat_refused(&seat, "late"), SEAT_RETRY);
    assert_int_equal(seat_queued(&seat, 0), SEAT_RETRY);
    assert_int_equal(seat_offered(&seat, 6), SEAT_RETRY);
    assert_int_equal(seat.epoch, 5);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(only_what_was_offered_can_be_granted),
        cmocka_unit_test(a_waiter_learns_the_greatest_epoch),
        cmocka_unit_test(a_waiter_forgets_an_epoch_that_gossip_refuses),
        cmocka_unit_test(an_offer_ends_with_its_connection),
        cmocka_unit_test(a_take_that_was_late_leaves_the_engine_in_the_queue),
        cmocka_unit_test(
            two_takes_that_were_late_leave_the_engine_in_the_queue),
        cmocka_unit_test(a_waiter_that_is_refused_must_end),
        cmocka_unit_test(a_holder_outlives_the_service_and_is_granted_again),
        cmocka_unit_test(no_word_of_the_service_ends_a_holder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
