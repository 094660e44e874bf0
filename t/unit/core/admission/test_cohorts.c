
/* Classes and tenants as processes count them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/admission/cohorts.h"


#define NROWS  4


static llmgw_groups_t *
scene(void)
{
    return llmgw_groups_init(calloc(1, llmgw_groups_bytes(NROWS)), NROWS);
}


static llmgw_group_t *
find(llmgw_groups_t *groups, llmgw_group_kind_t kind, const char *name)
{
    return llmgw_groups_find(groups, kind, name, strlen(name));
}


static int
is_named(const llmgw_group_t *group, const char *name)
{
    return group != NULL && group->name_len == strlen(name)
           && memcmp(group->name, name, group->name_len) == 0;
}


static void
name_is_one_group_of_its_kind(void **state)
{
    llmgw_group_t   *a, *b;
    llmgw_groups_t  *groups = scene();

    a = find(groups, LLMGW_GROUP_CLASS, "gold");
    b = find(groups, LLMGW_GROUP_TENANT, "gold");

    assert_true(is_named(a, "gold"));
    assert_ptr_equal(find(groups, LLMGW_GROUP_CLASS, "gold"), a);
    assert_ptr_not_equal(find(groups, LLMGW_GROUP_CLASS, "gol"), a);
    assert_ptr_not_equal(find(groups, LLMGW_GROUP_CLASS, "golden"), a);
    assert_ptr_not_equal(a, b);
    assert_ptr_equal(find(groups, LLMGW_GROUP_TENANT, "gold"), b);

    assert_ptr_equal(llmgw_groups_at(groups, LLMGW_GROUP_CLASS, 1), a);
    assert_ptr_equal(llmgw_groups_at(groups, LLMGW_GROUP_TENANT, 1), b);
    assert_null(llmgw_groups_at(groups, LLMGW_GROUP_TENANT, 2));

    free(groups);
}


static void
other_is_first_and_for_names_that_are_none(void **state)
{
    char             name[LLMGW_GROUP_NAME_BYTES + 1];
    llmgw_group_t   *other;
    llmgw_groups_t  *groups = scene();

    memset(name, 'x', sizeof(name));
    other = find(groups, LLMGW_GROUP_TENANT, "other");

    assert_ptr_equal(llmgw_groups_at(groups, LLMGW_GROUP_TENANT, 0), other);
    assert_true(is_named(other, "other"));
    assert_ptr_equal(find(groups, LLMGW_GROUP_TENANT, ""), other);
    assert_ptr_equal(llmgw_groups_find(groups, LLMGW_GROUP_TENANT, name,
                                       sizeof(name)),
                     other);
    assert_ptr_not_equal(llmgw_groups_find(groups, LLMGW_GROUP_TENANT, name,
                                           sizeof(name) - 1),
                         other);

    free(groups);
}


/* One more than has room is "other", and those that are there stay. */
static void
fill(llmgw_group_kind_t kind, uint32_t max)
{
    char             name[16];
    uint32_t         i;
    llmgw_groups_t  *groups = scene();

    for (i = 1; i <= max; i++) {
        (void) snprintf(name, sizeof(name), "n%u", i);
        assert_int_equal(find(groups, kind, name)->index, i);
    }

    assert_int_equal(find(groups, kind, "late")->index, 0);
    assert_null(llmgw_groups_at(groups, kind, max + 1));
    assert_int_equal(find(groups, kind, "n7")->index, 7);

    free(groups);
}


static void
names_are_limited(void **state)
{
    fill(LLMGW_GROUP_CLASS, LLMGW_GROUP_CLASSES);
    fill(LLMGW_GROUP_TENANT, LLMGW_GROUP_TENANTS);
}


/* The number of groups is written last. */
static void
process_killed_while_it_adds_leaves_no_group(void **state)
{
    llmgw_groups_t  *groups = scene();

    groups->tenants[1].index = 1;
    groups->tenants[1].name_len = 4;
    memcpy(groups->tenants[1].name, "half", 4);

    assert_null(llmgw_groups_at(groups, LLMGW_GROUP_TENANT, 1));
    assert_true(is_named(find(groups, LLMGW_GROUP_TENANT, "next"), "next"));
    assert_true(is_named(llmgw_groups_at(groups, LLMGW_GROUP_TENANT, 1),
                         "next"));

    free(groups);
}


static void
in_flight_is_what_rows_add_up_to(void **state)
{
    llmgw_group_t   *a, *b;
    llmgw_groups_t  *groups = scene();

    a = find(groups, LLMGW_GROUP_TENANT, "a");
    b = find(groups, LLMGW_GROUP_TENANT, "b");

    llmgw_groups_began(groups, a, 0);
    llmgw_groups_began(groups, a, 3);
    llmgw_groups_began(groups, a, 3);
    llmgw_groups_began(groups, b, 3);

    assert_int_equal(llmgw_groups_in_flight(groups, a), 3);
    assert_int_equal(llmgw_groups_in_flight(groups, b), 1);

    llmgw_groups_left(groups, a, 0);
    assert_int_equal(llmgw_groups_in_flight(groups, a), 2);

    llmgw_groups_drop_row(groups, 3);
    assert_int_equal(llmgw_groups_in_flight(groups, a), 0);
    assert_int_equal(llmgw_groups_in_flight(groups, b), 0);

    free(groups);
}


/* Its requests end after its row was taken back. */
static void
request_that_ends_in_an_empty_row_counts_nothing(void **state)
{
    llmgw_group_t   *a;
    llmgw_groups_t  *groups = scene();

    a = find(groups, LLMGW_GROUP_TENANT, "a");

    llmgw_groups_began(groups, a, 1);
    llmgw_groups_drop_row(groups, 1);
    llmgw_groups_left(groups, a, 1);
    assert_int_equal(llmgw_groups_in_flight(groups, a), 0);

    llmgw_groups_began(groups, a, 1);
    assert_int_equal(llmgw_groups_in_flight(groups, a), 1);

    free(groups);
}


static void
last_tenant_has_words_of_its_own(void **state)
{
    char             name[16];
    uint32_t         i;
    llmgw_group_t   *group;
    llmgw_groups_t  *groups = scene();

    for (i = 1; i <= LLMGW_GROUP_TENANTS; i++) {
        (void) snprintf(name, sizeof(name), "n%u", i);
        group = find(groups, LLMGW_GROUP_TENANT, name);
    }

    /* beyond these words AddressSanitizer sees it */
    llmgw_groups_began(groups, group, NROWS - 1);
    assert_int_equal(llmgw_groups_in_flight(groups, group), 1);
    llmgw_groups_drop_row(groups, NROWS - 1);
    assert_int_equal(llmgw_groups_in_flight(groups, group), 0);

    free(groups);
}


static void
ends_are_counted_by_reason(void **state)
{
    llmgw_group_t   *group;
    llmgw_groups_t  *groups = scene();

    group = find(groups, LLMGW_GROUP_CLASS, "gold");

    llmgw_group_ended(group, LLMGW_OUTCOME_SERVED, 1);
    llmgw_group_ended(group, LLMGW_OUTCOME_SERVED, 0);
    llmgw_group_ended(group, LLMGW_OUTCOME_TENANT_BUDGET, 0);
    llmgw_group_ended(group, LLMGW_OUTCOME_DEADLINE, 0);
    llmgw_group_ended(group, LLMGW_OUTCOME_REFUSED, 0);

    assert_int_equal(group->requests[LLMGW_OUTCOME_SERVED], 2);
    assert_int_equal(group->requests[LLMGW_OUTCOME_TENANT_BUDGET], 1);
    assert_int_equal(group->requests[LLMGW_GROUP_NREASONS - 1], 2);
    assert_int_equal(group->goodput, 1);

    assert_string_equal(llmgw_groups_reason(LLMGW_OUTCOME_SERVED), "");
    assert_string_equal(llmgw_groups_reason(LLMGW_OUTCOME_TENANT_BUDGET),
                        "admission_tenant_budget");
    assert_string_equal(llmgw_groups_reason(LLMGW_GROUP_NREASONS - 1),
                        "other");

    free(groups);
}


static void
first_tokens_are_counted_in_buckets(void **state)
{
    llmgw_group_t   *group;
    llmgw_groups_t  *groups = scene();

    group = find(groups, LLMGW_GROUP_CLASS, "gold");

    llmgw_group_first_token(group, 2, 7);
    llmgw_group_first_token(group, LLMGW_GROUP_NTIMES - 1, 3000000);

    assert_int_equal(group->first_token[2], 1);
    assert_int_equal(group->first_token[LLMGW_GROUP_NTIMES - 1], 1);
    assert_int_equal(group->first_token_ms, 3000007);

    free(groups);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(name_is_one_group_of_its_kind),
        cmocka_unit_test(other_is_first_and_for_names_that_are_none),
        cmocka_unit_test(names_are_limited),
        cmocka_unit_test(process_killed_while_it_adds_leaves_no_group),
        cmocka_unit_test(in_flight_is_what_rows_add_up_to),
        cmocka_unit_test(request_that_ends_in_an_empty_row_counts_nothing),
        cmocka_unit_test(last_tenant_has_words_of_its_own),
        cmocka_unit_test(ends_are_counted_by_reason),
        cmocka_unit_test(first_tokens_are_counted_in_buckets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
