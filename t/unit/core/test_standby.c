
/* Where members of a group stand in one view: core/standby.h. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/standby.h"


#define G        7              /* a group's hash */
#define RECORDS  8

#define OUT      LLMGW_STANDING_OUT
#define WARM     LLMGW_STANDING_WARM
#define LEADS    LLMGW_STANDING_LEADS
#define PAST     LLMGW_STANDING_PAST

typedef struct {
    llmgw_standby_t         standby;
    llmgw_standby_group_t   places[64];
    llmgw_standby_record_t  records[RECORDS];
    uint32_t                n;
} view_t;


static void
add(view_t *v, uint64_t group, llmgw_standby_state_t is, uint64_t epoch,
    uint64_t lock, int is_living)
{
    v->records[v->n] = (llmgw_standby_record_t) {
        group, epoch, lock, v->n, (uint8_t) is, (uint8_t) is_living
    };
    v->n++;
}


/* Reads the view, in the order of its records or in reverse. */
static void
look(view_t *v, int is_reversed)
{
    uint32_t  i;

    memset(v->places, 0, sizeof(v->places));
    llmgw_standby_init(&v->standby, v->places, llmgw_standby_places(v->n));

    for (i = 0; i < v->n; i++) {
        llmgw_standby_add(&v->standby,
                          &v->records[is_reversed ? v->n - 1 - i : i]);
    }
}


/* The standings are the same in either order of records. */
static void
assert_standings(view_t *v, const llmgw_standing_t *expected)
{
    int       k;
    uint32_t  i;

    for (k = 0; k < 2; k++) {
        look(v, k);

        for (i = 0; i < v->n; i++) {
            assert_int_equal(llmgw_standby_standing(&v->standby,
                                                    &v->records[i]),
                             expected[i]);
        }
    }
}


static const llmgw_standby_group_t *
group_of(view_t *v)
{
    return llmgw_standby_find(&v->standby, G);
}


static void
members_of_no_group_cost_nothing_and_are_free(void **state)
{
    view_t  v = { .n = 0 };

    assert_int_equal(llmgw_standby_places(0), 0);

    add(&v, 0, LLMGW_STANDBY_NONE, 0, 0, 1);
    llmgw_standby_init(&v.standby, NULL, 0);
    llmgw_standby_add(&v.standby, &v.records[0]);

    assert_int_equal(llmgw_standby_standing(&v.standby, &v.records[0]),
                     LLMGW_STANDING_FREE);
    assert_null(llmgw_standby_find(&v.standby, G));
}


static void
active_one_leads_and_standbys_are_warm(void **state)
{
    view_t  v = { .n = 0 };

    add(&v, G, LLMGW_STANDBY_ACTIVE, 5, 1, 1);
    add(&v, G, LLMGW_STANDBY_STANDBY, 0, 0, 1);
    add(&v, G, LLMGW_STANDBY_INIT, 0, 0, 1);
    add(&v, G, LLMGW_STANDBY_STANDBY, 0, 0, 0);

    assert_standings(&v, (llmgw_standing_t[]) { LEADS, WARM, OUT, OUT });
    assert_int_equal(group_of(&v)->leader, 0);
    assert_true(group_of(&v)->is_led);
    assert_int_equal(group_of(&v)->nstandbys, 1);
    assert_true(llmgw_standby_has_standby(group_of(&v)));
}


static void
greater_epoch_of_a_dead_record_puts_a_living_one_in_the_past(void **state)
{
    view_t  v = { .n = 0 };

    add(&v, G, LLMGW_STANDBY_ACTIVE, 5, 1, 1);
    add(&v, G, LLMGW_STANDBY_ACTIVE, 6, 1, 0);

    assert_standings(&v, (llmgw_standing_t[]) { PAST, LEADS });
    assert_int_equal(group_of(&v)->leader, 1);
    assert_false(group_of(&v)->is_led);
    assert_false(llmgw_standby_has_standby(group_of(&v)));
}


static void
waking_one_with_a_greater_epoch_ends_the_last_one(void **state)
{
    view_t  v = { .n = 0 };

    add(&v, G, LLMGW_STANDBY_ACTIVE, 5, 1, 1);
    add(&v, G, LLMGW_STANDBY_WAKING, 6, 1, 1);

    assert_standings(&v, (llmgw_standing_t[]) { PAST, WARM });
    assert_int_equal(group_of(&v)->leader, LLMGW_STANDBY_NOBODY);
    assert_int_equal(group_of(&v)->nwaking, 1);

    /* the waking engine was granted, and fenced before it was active */
    add(&v, G, LLMGW_STANDBY_ACTIVE, 7, 1, 1);

    assert_standings(&v, (llmgw_standing_t[]) { PAST, PAST, LEADS });
    assert_int_equal(group_of(&v)->nwaking, 0);
}


static void
waking_one_that_died_is_no_heir(void **state)
{
    view_t  v = { .n = 0 };

    add(&v, G, LLMGW_STANDBY_WAKING, 6, 1, 0);

    assert_standings(&v, (llmgw_standing_t[]) { OUT });
    assert_false(llmgw_standby_has_standby(group_of(&v)));
}


static void
two_services_are_a_conflict_and_the_greatest_epoch_leads(void **state)
{
    view_t  v = { .n = 0 };

    add(&v, G, LLMGW_STANDBY_ACTIVE, 5, 1, 1);
    add(&v, G, LLMGW_STANDBY_ACTIVE, 6, 2, 1);

    assert_standings(&v, (llmgw_standing_t[]) { PAST, LEADS });
    assert_true(group_of(&v)->is_conflict);

    /* of equal epochs one leads, the same everywhere */
    v.records[0].epoch = 6;

    assert_standings(&v, (llmgw_standing_t[]) { PAST, LEADS });
    assert_true(group_of(&v)->is_conflict);
}


static void
dead_record_of_a_former_service_is_no_conflict(void **state)
{
    view_t  v = { .n = 0 };

    add(&v, G, LLMGW_STANDBY_ACTIVE, 5, 1, 0);
    add(&v, G, LLMGW_STANDBY_ACTIVE, 6, 2, 1);

    assert_standings(&v, (llmgw_standing_t[]) { PAST, LEADS });
    assert_false(group_of(&v)->is_conflict);

    /* one service, whose first engine has not ended yet */
    v.records[0].is_living = 1;
    v.records[0].lock = 2;
    look(&v, 0);
    assert_false(group_of(&v)->is_conflict);
}


/* An engine's agent came back under another id: one grant has two records. */
static void
record_of_before_does_not_hide_the_engine(void **state)
{
    int     k;
    view_t  v = { .n = 0 };

    add(&v, G, LLMGW_STANDBY_ACTIVE, 5, 1, 0);
    add(&v, G, LLMGW_STANDBY_ACTIVE, 5, 1, 1);

    assert_standings(&v, (llmgw_standing_t[]) { LEADS, LEADS });

    for (k = 0; k < 2; k++) {
        look(&v, k);
        assert_true(group_of(&v)->is_led);
        assert_int_equal(group_of(&v)->leader, 1);
    }
}


static void
groups_do_not_mix(void **state)
{
    size_t   i;
    view_t   v = { .n = 0 };

    /* all groups' hashes belong to one place of the table */
    for (i = 0; i < RECORDS; i++) {
        add(&v, G + 64 * (i / 2), LLMGW_STANDBY_ACTIVE, 10 - i % 2, 1, 1);
    }

    assert_standings(&v, (llmgw_standing_t[]) {
        LEADS, PAST, LEADS, PAST, LEADS, PAST, LEADS, PAST });
    look(&v, 0);
    assert_int_equal(v.standby.n, RECORDS / 2);
    assert_null(llmgw_standby_find(&v.standby, G + 1));
    assert_int_equal(llmgw_standby_find(&v.standby, G + 64)->index, 2);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(members_of_no_group_cost_nothing_and_are_free),
        cmocka_unit_test(active_one_leads_and_standbys_are_warm),
        cmocka_unit_test(
            greater_epoch_of_a_dead_record_puts_a_living_one_in_the_past),
        cmocka_unit_test(waking_one_with_a_greater_epoch_ends_the_last_one),
        cmocka_unit_test(waking_one_that_died_is_no_heir),
        cmocka_unit_test(
            two_services_are_a_conflict_and_the_greatest_epoch_leads),
        cmocka_unit_test(dead_record_of_a_former_service_is_no_conflict),
        cmocka_unit_test(record_of_before_does_not_hide_the_engine),
        cmocka_unit_test(groups_do_not_mix),
    };

    return cmocka_run_group_tests_name("standby", tests, NULL, NULL);
}
