
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


static llmgw_cohorts_t *
scene(void)
{
    return llmgw_cohorts_init(calloc(1, llmgw_cohorts_bytes(NROWS)), NROWS);
}


static llmgw_cohort_t *
find(llmgw_cohorts_t *cohorts, llmgw_cohort_kind_t kind, const char *name)
{
    return llmgw_cohorts_find(cohorts, kind, name, strlen(name));
}


static int
is_named(const llmgw_cohort_t *cohort, const char *name)
{
    return cohort != NULL && cohort->name_len == strlen(name)
           && memcmp(cohort->name, name, cohort->name_len) == 0;
}


static void
name_is_one_group_of_its_kind(void **state)
{
    llmgw_cohort_t   *a, *b;
    llmgw_cohorts_t  *cohorts = scene();

    a = find(cohorts, LLMGW_COHORT_CLASS, "gold");
    b = find(cohorts, LLMGW_COHORT_TENANT, "gold");

    assert_true(is_named(a, "gold"));
    assert_ptr_equal(find(cohorts, LLMGW_COHORT_CLASS, "gold"), a);
    assert_ptr_not_equal(find(cohorts, LLMGW_COHORT_CLASS, "gol"), a);
    assert_ptr_not_equal(find(cohorts, LLMGW_COHORT_CLASS, "golden"), a);
    assert_ptr_not_equal(a, b);
    assert_ptr_equal(find(cohorts, LLMGW_COHORT_TENANT, "gold"), b);

    assert_ptr_equal(llmgw_cohorts_at(cohorts, LLMGW_COHORT_CLASS, 1), a);
    assert_ptr_equal(llmgw_cohorts_at(cohorts, LLMGW_COHORT_TENANT, 1), b);
    assert_null(llmgw_cohorts_at(cohorts, LLMGW_COHORT_TENANT, 2));

    free(cohorts);
}


static void
other_is_first_and_for_names_that_are_none(void **state)
{
    char              name[LLMGW_COHORT_NAME_BYTES + 1];
    llmgw_cohort_t   *other;
    llmgw_cohorts_t  *cohorts = scene();

    memset(name, 'x', sizeof(name));
    other = find(cohorts, LLMGW_COHORT_TENANT, "other");

    assert_ptr_equal(llmgw_cohorts_at(cohorts, LLMGW_COHORT_TENANT, 0), other);
    assert_true(is_named(other, "other"));
    assert_ptr_equal(find(cohorts, LLMGW_COHORT_TENANT, ""), other);
    assert_ptr_equal(llmgw_cohorts_find(cohorts, LLMGW_COHORT_TENANT, name,
                                        sizeof(name)),
                     other);
    assert_ptr_not_equal(llmgw_cohorts_find(cohorts, LLMGW_COHORT_TENANT, name,
                                            sizeof(name) - 1),
                         other);

    free(cohorts);
}


/* A name that finds no room is "other", and the names before it stay. */
static void
fill(llmgw_cohort_kind_t kind, uint32_t max)
{
    char              name[16];
    uint32_t          i;
    llmgw_cohorts_t  *cohorts = scene();

    for (i = 1; i <= max; i++) {
        (void) snprintf(name, sizeof(name), "n%u", i);
        assert_int_equal(find(cohorts, kind, name)->index, i);
    }

    assert_int_equal(find(cohorts, kind, "late")->index, 0);
    assert_null(llmgw_cohorts_at(cohorts, kind, max + 1));
    assert_int_equal(find(cohorts, kind, "n7")->index, 7);

    free(cohorts);
}


static void
names_are_limited(void **state)
{
    fill(LLMGW_COHORT_CLASS, LLMGW_COHORT_CLASSES);
    fill(LLMGW_COHORT_TENANT, LLMGW_COHORT_TENANTS);
}


/* The number of cohorts is written last, so half an entry does not count. */
static void
process_killed_while_it_adds_leaves_no_group(void **state)
{
    llmgw_cohorts_t  *cohorts = scene();

    cohorts->tenants[1].index = 1;
    cohorts->tenants[1].name_len = 4;
    memcpy(cohorts->tenants[1].name, "half", 4);

    assert_null(llmgw_cohorts_at(cohorts, LLMGW_COHORT_TENANT, 1));
    assert_true(is_named(find(cohorts, LLMGW_COHORT_TENANT, "next"), "next"));
    assert_true(is_named(llmgw_cohorts_at(cohorts, LLMGW_COHORT_TENANT, 1),
                         "next"));

    free(cohorts);
}


static void
in_flight_is_what_rows_add_up_to(void **state)
{
    llmgw_cohort_t   *a, *b;
    llmgw_cohorts_t  *cohorts = scene();

    a = find(cohorts, LLMGW_COHORT_TENANT, "a");
    b = find(cohorts, LLMGW_COHORT_TENANT, "b");

    llmgw_cohorts_began(cohorts, a, 0);
    llmgw_cohorts_began(cohorts, a, 3);
    llmgw_cohorts_began(cohorts, a, 3);
    llmgw_cohorts_began(cohorts, b, 3);

    assert_int_equal(llmgw_cohorts_in_flight(cohorts, a), 3);
    assert_int_equal(llmgw_cohorts_in_flight(cohorts, b), 1);

    llmgw_cohorts_left(cohorts, a, 0);
    assert_int_equal(llmgw_cohorts_in_flight(cohorts, a), 2);

    llmgw_cohorts_drop_row(cohorts, 3);
    assert_int_equal(llmgw_cohorts_in_flight(cohorts, a), 0);
    assert_int_equal(llmgw_cohorts_in_flight(cohorts, b), 0);

    free(cohorts);
}


/* A worker's requests end after its row was taken back. */
static void
request_that_ends_in_an_empty_row_counts_nothing(void **state)
{
    llmgw_cohort_t   *a;
    llmgw_cohorts_t  *cohorts = scene();

    a = find(cohorts, LLMGW_COHORT_TENANT, "a");

    llmgw_cohorts_began(cohorts, a, 1);
    llmgw_cohorts_drop_row(cohorts, 1);
    llmgw_cohorts_left(cohorts, a, 1);
    assert_int_equal(llmgw_cohorts_in_flight(cohorts, a), 0);

    llmgw_cohorts_began(cohorts, a, 1);
    assert_int_equal(llmgw_cohorts_in_flight(cohorts, a), 1);

    free(cohorts);
}


static void
last_tenant_has_words_of_its_own(void **state)
{
    char              name[16];
    uint32_t          i;
    llmgw_cohort_t   *cohort;
    llmgw_cohorts_t  *cohorts = scene();

    for (i = 1; i <= LLMGW_COHORT_TENANTS; i++) {
        (void) snprintf(name, sizeof(name), "n%u", i);
        cohort = find(cohorts, LLMGW_COHORT_TENANT, name);
    }

    /* AddressSanitizer sees an access beyond these words */
    llmgw_cohorts_began(cohorts, cohort, NROWS - 1);
    assert_int_equal(llmgw_cohorts_in_flight(cohorts, cohort), 1);
    llmgw_cohorts_drop_row(cohorts, NROWS - 1);
    assert_int_equal(llmgw_cohorts_in_flight(cohorts, cohort), 0);

    free(cohorts);
}


static void
ends_are_counted_by_reason(void **state)
{
    llmgw_cohort_t   *cohort;
    llmgw_cohorts_t  *cohorts = scene();

    cohort = find(cohorts, LLMGW_COHORT_CLASS, "gold");

    llmgw_cohort_ended(cohort, LLMGW_OUTCOME_SERVED, 1);
    llmgw_cohort_ended(cohort, LLMGW_OUTCOME_SERVED, 0);
    llmgw_cohort_ended(cohort, LLMGW_OUTCOME_TENANT_BUDGET, 0);
    llmgw_cohort_ended(cohort, LLMGW_OUTCOME_DEADLINE, 0);
    llmgw_cohort_ended(cohort, LLMGW_OUTCOME_REFUSED, 0);

    assert_int_equal(cohort->requests[LLMGW_OUTCOME_SERVED], 2);
    assert_int_equal(cohort->requests[LLMGW_OUTCOME_TENANT_BUDGET], 1);
    assert_int_equal(cohort->requests[LLMGW_COHORT_NREASONS - 1], 2);
    assert_int_equal(cohort->goodput, 1);

    assert_string_equal(llmgw_cohorts_reason(LLMGW_OUTCOME_SERVED), "");
    assert_string_equal(llmgw_cohorts_reason(LLMGW_OUTCOME_TENANT_BUDGET),
                        "admission_tenant_budget");
    assert_string_equal(llmgw_cohorts_reason(LLMGW_COHORT_NREASONS - 1),
                        "other");

    free(cohorts);
}


static void
first_tokens_are_counted_in_buckets(void **state)
{
    llmgw_cohort_t   *cohort;
    llmgw_cohorts_t  *cohorts = scene();

    cohort = find(cohorts, LLMGW_COHORT_CLASS, "gold");

    llmgw_cohort_first_token(cohort, 2, 7);
    llmgw_cohort_first_token(cohort, LLMGW_COHORT_NTIMES - 1, 3000000);

    assert_int_equal(cohort->first_token[2], 1);
    assert_int_equal(cohort->first_token[LLMGW_COHORT_NTIMES - 1], 1);
    assert_int_equal(cohort->first_token_ms, 3000007);

    free(cohorts);
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
