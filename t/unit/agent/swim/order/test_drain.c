
/* Which owner may drain a replica, what ends a drain, and when the replica is
   sent Drain or Undrain; in fake time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "swim/order/drain.h"


#define S      1000000ULL
#define BEGIN  (7 * S)
#define OP     "operator"
#define A      "update:a"
#define B      "update:b"


static drain_t
fresh(void)
{
    drain_t  drain;

    drain_init(&drain, "");

    return drain;
}


static void
begins(drain_t *drain, const char *owner, order_rc_t rc, unsigned acts)
{
    unsigned  what;

    assert_int_equal(drain_begin(drain, owner, BEGIN, &what), rc);
    assert_int_equal(what, acts);
}


static void
ends(drain_t *drain, const char *owner, order_rc_t rc, unsigned acts)
{
    unsigned  what;

    assert_int_equal(drain_end(drain, owner, &what), rc);
    assert_int_equal(what, acts);
}


#define assert_owner(drain, text)                                             \
    assert_string_equal(drain_owner(drain), text)


static void
owners_have_names(void **state)
{
    assert_true(drain_is_owner(OP));
    assert_true(drain_is_owner("update:lb1.7"));
    assert_false(drain_is_owner(""));
    assert_false(drain_is_owner("shutdown"));
    assert_false(drain_is_owner("update:"));
    assert_false(drain_is_owner("update:a b"));
    assert_false(drain_is_owner("operators"));
}


static void
operators_drain_stands_until_it_is_undrained(void **state)
{
    drain_t  drain;

    drain = fresh();
    assert_owner(&drain, "");
    begins(&drain, OP, ORDER_DONE, DRAIN_TELL|DRAIN_KEEP);
    assert_owner(&drain, OP);
    assert_string_equal(drain_kept(&drain), OP);

    begins(&drain, OP, ORDER_DONE, 0);
    assert_true(drain_next_us(&drain) == UINT64_MAX);
    assert_int_equal(drain_tick(&drain, BEGIN + 1000 * DRAIN_LEASE_US), 0);
    assert_owner(&drain, OP);

    ends(&drain, OP, ORDER_DONE, DRAIN_UNTELL|DRAIN_KEEP);
    assert_owner(&drain, "");
    assert_string_equal(drain_kept(&drain), "");
}


/* A microsecond before a lease ends, and at its end. */
static void
lease_ends_after_thirty_seconds_unless_renewed(void **state)
{
    drain_t   drain;
    unsigned  what;

    drain = fresh();
    begins(&drain, A, ORDER_DONE, DRAIN_TELL|DRAIN_KEEP);
    assert_true(drain_next_us(&drain) == BEGIN + 30 * S);
    assert_int_equal(drain_tick(&drain, BEGIN + 30 * S - 1), 0);
    assert_owner(&drain, A);

    assert_int_equal(drain_begin(&drain, A, BEGIN + 29 * S, &what),
                     ORDER_DONE);
    assert_int_equal(what, 0);
    assert_int_equal(drain_tick(&drain, BEGIN + 59 * S - 1), 0);
    assert_int_equal(drain_tick(&drain, BEGIN + 59 * S),
                     DRAIN_UNTELL|DRAIN_KEEP);
    assert_owner(&drain, "");
    assert_true(drain_next_us(&drain) == UINT64_MAX);
}


static void
update_never_ends_an_operators_drain(void **state)
{
    drain_t  drain;

    drain = fresh();
    begins(&drain, OP, ORDER_DONE, DRAIN_TELL|DRAIN_KEEP);
    begins(&drain, A, ORDER_DONE, 0);       /* it drains already */
    assert_owner(&drain, OP);
    ends(&drain, A, ORDER_DONE, DRAIN_KEEP);
    assert_owner(&drain, OP);
    ends(&drain, A, ORDER_DONE, DRAIN_KEEP);
    assert_owner(&drain, OP);

    begins(&drain, A, ORDER_DONE, 0);
    assert_int_equal(drain_tick(&drain, BEGIN + 30 * S), DRAIN_KEEP);
    assert_owner(&drain, OP);
}


static void
operator_may_take_over_and_not_end_what_an_update_began(void **state)
{
    drain_t  drain;

    drain = fresh();
    begins(&drain, A, ORDER_DONE, DRAIN_TELL|DRAIN_KEEP);
    ends(&drain, OP, ORDER_EOWNED, 0);
    begins(&drain, OP, ORDER_DONE, DRAIN_KEEP);
    assert_owner(&drain, OP);

    /* The operator's undrain ends only the operator's drain. */
    ends(&drain, OP, ORDER_DONE, DRAIN_KEEP);
    assert_owner(&drain, A);
    ends(&drain, A, ORDER_DONE, DRAIN_UNTELL|DRAIN_KEEP);
    assert_owner(&drain, "");
}


static void
updates_do_not_take_from_each_other(void **state)
{
    drain_t  drain;

    drain = fresh();
    begins(&drain, A, ORDER_DONE, DRAIN_TELL|DRAIN_KEEP);
    begins(&drain, B, ORDER_EOWNED, 0);
    ends(&drain, B, ORDER_EOWNED, 0);
    assert_owner(&drain, A);
}


static void
undrain_of_nobodys_drain_still_tells_the_replica(void **state)
{
    drain_t  drain;

    drain = fresh();
    ends(&drain, OP, ORDER_DONE, DRAIN_UNTELL|DRAIN_KEEP);
    ends(&drain, A, ORDER_DONE, DRAIN_UNTELL|DRAIN_KEEP);
}


static void
shutdown_lasts_and_an_operators_drain_goes_on_behind_it(void **state)
{
    drain_t  drain;

    drain = fresh();
    drain_shutdown(&drain);
    assert_owner(&drain, "shutdown");
    assert_string_equal(drain_kept(&drain), "");
    begins(&drain, A, ORDER_ELEAVING, 0);
    begins(&drain, OP, ORDER_DONE, DRAIN_KEEP);
    assert_owner(&drain, OP);
    assert_string_equal(drain_kept(&drain), OP);
    ends(&drain, OP, ORDER_DONE, DRAIN_KEEP);
    assert_owner(&drain, "shutdown");
}


static void
next_life_keeps_an_operators_drain_and_tells_nobody(void **state)
{
    drain_t  drain;

    drain_init(&drain, OP);
    assert_owner(&drain, OP);
    assert_int_equal(drain_reported(&drain, 1), 0);
}


/* A replica still drains for a lease that ended while its agent was away. */
static void
next_life_undrains_what_a_lease_drained_once(void **state)
{
    drain_t  drain;

    drain_init(&drain, A);
    assert_owner(&drain, "");
    assert_int_equal(drain_reported(&drain, 1), DRAIN_UNTELL|DRAIN_KEEP);
    assert_int_equal(drain_reported(&drain, 1), 0);

    drain = fresh();        /* another drain: left alone */
    assert_int_equal(drain_reported(&drain, 1), 0);
}


/* A replica was away when it should have been undrained, and comes back. */
static void
replica_that_missed_the_end_is_told_when_it_says_so(void **state)
{
    drain_t  drain;

    drain = fresh();
    begins(&drain, OP, ORDER_DONE, DRAIN_TELL|DRAIN_KEEP);
    assert_int_equal(drain_reported(&drain, 1), 0);
    ends(&drain, OP, ORDER_DONE, DRAIN_UNTELL|DRAIN_KEEP);
    assert_int_equal(drain_reported(&drain, 1), DRAIN_UNTELL|DRAIN_KEEP);

    /* A replica that was undrained and drains later does so by itself: left
       alone. */
    begins(&drain, OP, ORDER_DONE, DRAIN_TELL|DRAIN_KEEP);
    ends(&drain, OP, ORDER_DONE, DRAIN_UNTELL|DRAIN_KEEP);
    assert_int_equal(drain_reported(&drain, 0), DRAIN_KEEP);
    assert_int_equal(drain_reported(&drain, 1), 0);
}


static llmgw_member_t
past(uint64_t epoch, uint64_t incarnation, const char *owner)
{
    llmgw_member_t  member;

    memset(&member, 0, sizeof(member));
    member.epoch = epoch;
    member.incarnation = incarnation;
    member.draining = owner[0] != '\0';
    strcpy(member.drain_owner, owner);

    return member;
}


static void
past_that_others_know_counts_by_its_order(void **state)
{
    drain_t         drain;
    llmgw_member_t  update;

    drain_init(&drain, NULL);
    update = past(5, 2, OP);
    assert_int_equal(drain_merge_past(&drain, &update), DRAIN_KEEP);
    assert_owner(&drain, OP);
    update = past(5, 1, "");        /* older: before the operator */
    assert_int_equal(drain_merge_past(&drain, &update), 0);
    assert_owner(&drain, OP);
    update = past(6, 0, "");          /* later: the operator undrained it */
    assert_int_equal(drain_merge_past(&drain, &update), DRAIN_KEEP);
    assert_owner(&drain, "");

    update = past(6, 1, A);
    assert_int_equal(drain_merge_past(&drain, &update), 0);
    assert_owner(&drain, "");
    assert_int_equal(drain_reported(&drain, 1), DRAIN_UNTELL|DRAIN_KEEP);

    update = past(7, 0, "shutdown");    /* without a Drain call */
    assert_int_equal(drain_merge_past(&drain, &update), 0);
    assert_int_equal(drain_reported(&drain, 1), 0);
}


static void
own_memory_and_later_orders_are_above_what_others_know(void **state)
{
    drain_t         drain;
    llmgw_member_t  update;

    drain = fresh();
    update = past(5, 2, OP);
    assert_int_equal(drain_merge_past(&drain, &update), 0);
    assert_owner(&drain, "");

    drain_init(&drain, NULL);
    ends(&drain, OP, ORDER_DONE, DRAIN_UNTELL|DRAIN_KEEP);
    assert_int_equal(drain_merge_past(&drain, &update), 0);
    assert_owner(&drain, "");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(owners_have_names),
        cmocka_unit_test(operators_drain_stands_until_it_is_undrained),
        cmocka_unit_test(lease_ends_after_thirty_seconds_unless_renewed),
        cmocka_unit_test(update_never_ends_an_operators_drain),
        cmocka_unit_test(
            operator_may_take_over_and_not_end_what_an_update_began),
        cmocka_unit_test(updates_do_not_take_from_each_other),
        cmocka_unit_test(undrain_of_nobodys_drain_still_tells_the_replica),
        cmocka_unit_test(
            shutdown_lasts_and_an_operators_drain_goes_on_behind_it),
        cmocka_unit_test(next_life_keeps_an_operators_drain_and_tells_nobody),
        cmocka_unit_test(next_life_undrains_what_a_lease_drained_once),
        cmocka_unit_test(replica_that_missed_the_end_is_told_when_it_says_so),
        cmocka_unit_test(past_that_others_know_counts_by_its_order),
        cmocka_unit_test(
            own_memory_and_later_orders_are_above_what_others_know),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
