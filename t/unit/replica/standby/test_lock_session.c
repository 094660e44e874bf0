
/* An engine's half of the lock protocol. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "replica/standby/lock_session.h"


static lock_session_t
asked(void)
{
    lock_session_t  session = { .state = LOCK_SESSION_AWAY };

    lock_session_connected(&session);
    assert_int_equal(session.state, LOCK_SESSION_ASKED);

    return session;
}


static lock_session_t
taking(uint64_t epoch)
{
    lock_session_t  session;

    session = asked();
    assert_int_equal(lock_session_queued(&session, 0), LOCK_SESSION_NOTHING);
    assert_int_equal(session.state, LOCK_SESSION_WAITING);
    assert_int_equal(lock_session_offered(&session, epoch), LOCK_SESSION_TAKE);
    assert_int_equal(session.offered, epoch);

    return session;
}


static lock_session_t
holding(uint64_t epoch)
{
    lock_session_t  session;

    session = taking(epoch);
    assert_int_equal(lock_session_granted(&session, epoch, 99),
                     LOCK_SESSION_BEGIN);
    assert_int_equal(session.state, LOCK_SESSION_HELD);
    assert_int_equal(session.epoch, epoch);
    assert_int_equal(session.lock, 99);

    return session;
}


static void
only_what_was_offered_can_be_granted(void **state)
{
    lock_session_t  session;

    session = taking(5);
    assert_int_equal(lock_session_granted(&session, 6, 99), LOCK_SESSION_RETRY);
    assert_int_equal(session.epoch, 0);

    session = asked();
    assert_int_equal(lock_session_granted(&session, 0, 99), LOCK_SESSION_RETRY);
    assert_int_equal(lock_session_granted(&session, 5, 99), LOCK_SESSION_RETRY);
    assert_int_equal(session.epoch, 0);
}


/*
 * The engine keeps the greatest epoch for a service that forgets it, and takes
 * no lower one.
 */
static void
a_waiter_learns_the_greatest_epoch(void **state)
{
    lock_session_t  session;

    session = asked();
    assert_int_equal(lock_session_queued(&session, 7), LOCK_SESSION_NOTHING);
    assert_int_equal(lock_session_queued(&session, 5), LOCK_SESSION_NOTHING);
    lock_session_lost(&session);
    lock_session_connected(&session);
    assert_int_equal(session.last_epoch, 7);
    assert_int_equal(lock_session_queued(&session, 0), LOCK_SESSION_NOTHING);
    assert_int_equal(lock_session_offered(&session, 7), LOCK_SESSION_RETRY);
    assert_int_equal(lock_session_offered(&session, 8), LOCK_SESSION_TAKE);
}


/* The service's clock was wrong when it drew that epoch. */
static void
a_waiter_forgets_an_epoch_that_gossip_refuses(void **state)
{
    lock_session_t  session;

    session = asked();
    assert_int_equal(lock_session_queued(&session, 700), LOCK_SESSION_NOTHING);
    lock_session_lost(&session);
    lock_session_forget_above(&session, 700);
    lock_session_connected(&session);
    assert_int_equal(session.last_epoch, 700);
    assert_int_equal(lock_session_offered(&session, 8), LOCK_SESSION_RETRY);

    lock_session_lost(&session);
    lock_session_forget_above(&session, 699);
    lock_session_connected(&session);
    assert_int_equal(session.last_epoch, 0);
    assert_int_equal(lock_session_offered(&session, 8), LOCK_SESSION_TAKE);

    session = holding(700);
    lock_session_forget_above(&session, 699);
    assert_int_equal(session.epoch, 700);
    assert_int_equal(session.last_epoch, 700);
}


/*
 * The service forgot its offer, and so does the engine, which holds nothing
 * yet.
 */
static void
an_offer_ends_with_its_connection(void **state)
{
    lock_session_t  session;

    session = taking(5);
    lock_session_lost(&session);
    assert_int_equal(session.state, LOCK_SESSION_AWAY);
    lock_session_connected(&session);
    assert_int_equal(lock_session_granted(&session, 5, 99), LOCK_SESSION_RETRY);
    assert_int_equal(session.epoch, 0);
}


static void
a_take_that_was_late_leaves_the_engine_in_the_queue(void **state)
{
    lock_session_t                    session;
    size_t                    i;
    static const char *const  reasons[] = { "late", "busy", "state" };

    for (i = 0; i < 3; i++) {
        session = taking(5);
        assert_int_equal(lock_session_refused(&session, reasons[i]),
                         LOCK_SESSION_NOTHING);
        assert_int_equal(session.state, LOCK_SESSION_WAITING);
        assert_int_equal(lock_session_offered(&session, 6), LOCK_SESSION_TAKE);
        assert_int_equal(lock_session_granted(&session, 6, 99),
                         LOCK_SESSION_BEGIN);
    }
}


/* A second offer came before the first TAKE was answered. */
static void
two_takes_that_were_late_leave_the_engine_in_the_queue(void **state)
{
    lock_session_t  session;

    session = taking(5);
    assert_int_equal(lock_session_offered(&session, 6), LOCK_SESSION_TAKE);
    assert_int_equal(lock_session_refused(&session, "late"),
                     LOCK_SESSION_NOTHING);
    assert_int_equal(lock_session_refused(&session, "late"),
                     LOCK_SESSION_NOTHING);
    assert_int_equal(session.state, LOCK_SESSION_WAITING);
    assert_int_equal(lock_session_offered(&session, 7), LOCK_SESSION_TAKE);
    assert_int_equal(lock_session_granted(&session, 7, 99), LOCK_SESSION_BEGIN);
}


static void
a_waiter_that_is_refused_must_end(void **state)
{
    lock_session_t  session;

    session = asked();
    assert_int_equal(lock_session_refused(&session, "no_pidfd"),
                     LOCK_SESSION_REFUSED);

    session = asked();
    assert_int_equal(lock_session_refused(&session, "late"),
                     LOCK_SESSION_REFUSED);

    session = taking(5);
    assert_int_equal(lock_session_refused(&session, "too_many"),
                     LOCK_SESSION_REFUSED);
}


static void
a_holder_outlives_the_service_and_is_granted_again(void **state)
{
    lock_session_t  session;

    session = holding(5);
    lock_session_lost(&session);
    assert_int_equal(session.epoch, 5);

    lock_session_connected(&session);
    assert_int_equal(lock_session_granted(&session, 6, 100),
                     LOCK_SESSION_RETRY);
    assert_int_equal(session.epoch, 5);
    assert_int_equal(session.lock, 99);
    assert_int_equal(lock_session_granted(&session, 5, 100),
                     LOCK_SESSION_GO_ON);
    assert_int_equal(session.lock, 100);
}


static void
no_word_of_the_service_ends_a_holder(void **state)
{
    lock_session_t  session;

    session = holding(5);
    assert_int_equal(lock_session_refused(&session, "held"),
                     LOCK_SESSION_RETRY);
    assert_int_equal(lock_session_refused(&session, "late"),
                     LOCK_SESSION_RETRY);
    assert_int_equal(lock_session_queued(&session, 0), LOCK_SESSION_RETRY);
    assert_int_equal(lock_session_offered(&session, 6), LOCK_SESSION_RETRY);
    assert_int_equal(session.epoch, 5);
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
