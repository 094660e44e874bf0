
/* How long a shard that failed is left out. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replica/shard/fleet/ban.h"


static void
terms_double_from_15_s_to_5_min(void **state)
{
    size_t           i;
    ban_t            ban = { 0 };
    uint64_t         now;
    const uint64_t   terms[] = { 15000, 30000, 60000, 120000, 240000, 300000,
                                 300000 };

    for (now = 1, i = 0; i < sizeof(terms) / sizeof(terms[0]); i++) {
        assert_int_equal(ban_begin(&ban, SHARD_FAILED, now), terms[i]);
        assert_true(ban_is_on(&ban, now));
        assert_true(ban_is_on(&ban, now + terms[i] - 1));
        now += terms[i];
        assert_false(ban_is_on(&ban, now));
    }
}


static void
what_many_say_of_one_failure_counts_once(void **state)
{
    int    i;
    ban_t  ban = { 0 };

    assert_int_equal(ban_begin(&ban, SHARD_FAILED, 1000), BAN_MS);

    for (i = 0; i < 64; i++) {
        assert_int_equal(ban_begin(&ban, SHARD_FAILED, 1000 + i), 0);
    }

    assert_false(ban_is_on(&ban, 1000 + BAN_MS));
}


/* A shard may be late for want of a processor, and then fail for want of a
   network: the worse reason counts, in whatever order they come. */
static void
a_ban_becomes_one_for_what_is_worse(void **state)
{
    ban_t  ban = { 0 };

    assert_int_equal(ban_begin(&ban, SHARD_LATE, 1000), BAN_MS);
    assert_int_equal(ban.reason, SHARD_LATE);
    assert_int_equal(ban_begin(&ban, SHARD_FAILED, 2000), 0);
    assert_int_equal(ban.reason, SHARD_FAILED);
    assert_int_equal(ban_begin(&ban, SHARD_LATE, 3000), 0);
    assert_int_equal(ban.reason, SHARD_FAILED);
    assert_false(ban_is_on(&ban, 1000 + BAN_MS));
}


/* A late or failed shard may be asked in the end, a corrupt one may not; and
   next to nothing may be left of the other reason's term. */
static void
corruption_has_a_term_of_its_own(void **state)
{
    size_t                 i;
    ban_t                  ban;
    uint64_t               last;
    const shard_reason_t   lesser[] = { SHARD_LATE, SHARD_FAILED };

    for (i = 0; i < sizeof(lesser) / sizeof(lesser[0]); i++) {
        ban = (ban_t) { 0 };
        assert_int_equal(ban_begin(&ban, lesser[i], 1000), BAN_MS);
        last = 1000 + BAN_MS - 1;
        assert_int_equal(ban_begin(&ban, SHARD_CORRUPTION, last), 2 * BAN_MS);
        assert_int_equal(ban.reason, SHARD_CORRUPTION);
        assert_int_equal(ban_begin(&ban, lesser[i], last + 1), 0);
        assert_int_equal(ban_begin(&ban, SHARD_CORRUPTION, last + 2), 0);
        assert_int_equal(ban.reason, SHARD_CORRUPTION);
        assert_true(ban_is_on(&ban, last + 2 * BAN_MS - 1));
        assert_false(ban_is_on(&ban, last + 2 * BAN_MS));
    }
}


static void
only_success_behind_a_ban_ends_the_doubling(void **state)
{
    ban_t  ban = { 0 };

    (void) ban_begin(&ban, SHARD_FAILED, 1);
    ban_forgive(&ban, 2);
    assert_true(ban_is_on(&ban, 2));
    assert_int_equal(ban_begin(&ban, SHARD_FAILED, 20000), 2 * BAN_MS);

    ban_forgive(&ban, 100000);
    assert_int_equal(ban_begin(&ban, SHARD_FAILED, 100001), BAN_MS);
}


static void
a_new_process_is_let_in_but_not_after_corruption(void **state)
{
    ban_t  ban = { 0 };

    (void) ban_begin(&ban, SHARD_FAILED, 1);
    ban_lift(&ban);
    assert_false(ban_is_on(&ban, 2));

    assert_int_equal(ban_begin(&ban, SHARD_CORRUPTION, 3), 2 * BAN_MS);
    ban_lift(&ban);
    assert_true(ban_is_on(&ban, 4));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(terms_double_from_15_s_to_5_min),
        cmocka_unit_test(what_many_say_of_one_failure_counts_once),
        cmocka_unit_test(a_ban_becomes_one_for_what_is_worse),
        cmocka_unit_test(corruption_has_a_term_of_its_own),
        cmocka_unit_test(only_success_behind_a_ban_ends_the_doubling),
        cmocka_unit_test(a_new_process_is_let_in_but_not_after_corruption)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
