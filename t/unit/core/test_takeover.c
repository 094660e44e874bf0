
/* How takeovers are counted and timed: core/takeover.h. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/takeover.h"


/*
 * Sees a view of that generation, with that leader; 0: with none that lives.
 */
static int
see(llmgw_takeover_t *takeover, uint64_t generation, uint64_t process,
    uint64_t now_ms)
{
    llmgw_takeover_view_t  view = { generation, process, process != 0 };

    return llmgw_takeover_see(takeover, &view, now_ms);
}


static void
takeover_is_counted_once_and_timed_from_the_death(void **state)
{
    llmgw_takeover_t  t = { .count = 0 };

    assert_false(see(&t, 1, 11, 1000));         /* the first one that led */
    assert_false(see(&t, 2, 0, 2000));
    assert_false(see(&t, 3, 0, 2100));          /* still gone, since 2000 */
    assert_true(see(&t, 4, 22, 2700));
    assert_false(see(&t, 4, 22, 2705));         /* another worker's look */

    assert_int_equal(t.count, 1);
    assert_int_equal(t.active_ms, 700);
    assert_false(t.has_first_token);

    llmgw_takeover_token(&t, 11, 2710);         /* sent by the dead leader */
    assert_false(t.has_first_token);

    llmgw_takeover_token(&t, 22, 2800);
    llmgw_takeover_token(&t, 22, 2900);
    assert_true(t.has_first_token);
    assert_int_equal(t.first_token_ms, 800);
}


static void
worker_that_lags_behind_changes_nothing(void **state)
{
    llmgw_takeover_t  t = { .count = 0 };

    (void) see(&t, 1, 11, 1000);
    (void) see(&t, 3, 0, 2000);
    assert_false(see(&t, 2, 11, 2001));         /* an older view: it lives */
    assert_int_equal(t.gone_ms, 2000);

    assert_true(see(&t, 4, 22, 2500));
    assert_false(see(&t, 3, 0, 2501));
    assert_int_equal(t.active_ms, 500);
    assert_int_equal(t.gone_ms, 0);
}


static void
engine_that_is_back_was_not_taken_over(void **state)
{
    llmgw_takeover_t  t = { .count = 0 };

    (void) see(&t, 1, 11, 1000);
    (void) see(&t, 2, 0, 2000);
    assert_false(see(&t, 3, 11, 2500));
    assert_int_equal(t.count, 0);

    /* the next death is timed anew */
    (void) see(&t, 4, 0, 9000);
    assert_true(see(&t, 5, 22, 9100));
    assert_int_equal(t.active_ms, 100);
}


static void
takeover_that_one_view_shows_took_no_time(void **state)
{
    llmgw_takeover_t  t = { .count = 0 };

    (void) see(&t, 1, 11, 1000);
    assert_true(see(&t, 2, 22, 5000));
    assert_int_equal(t.active_ms, 0);
}


static void
group_without_an_engine_at_first_was_not_taken_over(void **state)
{
    llmgw_takeover_t  t = { .count = 0 };

    assert_false(see(&t, 1, 0, 1000));
    assert_false(see(&t, 2, 11, 5000));
    assert_int_equal(t.count, 0);
}


static void
as_many_groups_are_counted_as_there_is_room_for(void **state)
{
    char               name[LLMGW_TAKEOVER_NAME_BYTES + 1];
    uint32_t           i;
    llmgw_takeover_t  *first;
    llmgw_takeovers_t  all;

    memset(&all, 0, sizeof(all));
    first = llmgw_takeovers_find(&all, "g0");

    for (i = 1; i < LLMGW_TAKEOVERS_MAX; i++) {
        snprintf(name, sizeof(name), "g%u", i);
        assert_non_null(llmgw_takeovers_find(&all, name));
    }

    assert_null(llmgw_takeovers_find(&all, "one-more"));
    assert_ptr_equal(llmgw_takeovers_find(&all, "g0"), first);
    assert_int_equal(all.n, LLMGW_TAKEOVERS_MAX);
}


static void
name_that_does_not_fit_is_not_counted(void **state)
{
    char               name[LLMGW_TAKEOVER_NAME_BYTES + 1];
    llmgw_takeovers_t  all;

    memset(&all, 0, sizeof(all));
    memset(name, 'g', sizeof(name));
    name[LLMGW_TAKEOVER_NAME_BYTES] = '\0';
    assert_null(llmgw_takeovers_find(&all, name));

    name[LLMGW_TAKEOVER_NAME_BYTES - 1] = '\0';
    assert_non_null(llmgw_takeovers_find(&all, name));
    assert_string_equal(all.groups[0].name, name);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(takeover_is_counted_once_and_timed_from_the_death),
        cmocka_unit_test(worker_that_lags_behind_changes_nothing),
        cmocka_unit_test(engine_that_is_back_was_not_taken_over),
        cmocka_unit_test(takeover_that_one_view_shows_took_no_time),
        cmocka_unit_test(group_without_an_engine_at_first_was_not_taken_over),
        cmocka_unit_test(as_many_groups_are_counted_as_there_is_room_for),
        cmocka_unit_test(name_that_does_not_fit_is_not_counted),
    };

    return cmocka_run_group_tests_name("takeover", tests, NULL, NULL);
}
