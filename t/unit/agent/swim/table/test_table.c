
/* Members by id: found, counted, removed, compared. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "swim/table/table.h"


static member_update_t
update(size_t i)
{
    member_update_t  said;

    memset(&said, 0, sizeof(said));
    snprintf(said.facts.id, sizeof(said.facts.id), "m%zu", i);
    said.facts.epoch = i;

    return said;
}


static member_t *
add(table_t *table, size_t i)
{
    member_update_t  said;

    said = update(i);

    return table_add(table, &said, 0);
}


static void
holds_as_many_as_it_may_and_no_more(void **state)
{
    char       id[LLMGW_MEMBERS_NAME_BYTES];
    size_t     i;
    table_t    table;
    member_t  *member;

    table_init(&table);
    assert_null(table_find(&table, "m0"));

    for (i = 0; i < TABLE_MAX_MEMBERS; i++) {
        assert_non_null(add(&table, i));
    }

    assert_null(add(&table, i));
    assert_int_equal(table.npresent, TABLE_MAX_MEMBERS);

    for (i = 0; i < TABLE_MAX_MEMBERS; i++) {
        snprintf(id, sizeof(id), "m%zu", i);
        member = table_find(&table, id);
        assert_non_null(member);
        assert_int_equal(member->facts.epoch, i);
    }

    assert_null(table_find(&table, "m"));
    table_done(&table);
}


static void
removed_ones_are_gone_and_others_stay(void **state)
{
    char     id[LLMGW_MEMBERS_NAME_BYTES];
    size_t   i;
    table_t  table;

    table_init(&table);

    for (i = 0; i < 200; i++) {
        add(&table, i);
    }

    for (i = 0; i < 200; i += 2) {
        snprintf(id, sizeof(id), "m%zu", i);
        table_remove(&table, table_find(&table, id));
    }

    assert_int_equal(table.n, 100);
    assert_int_equal(table.npresent, 100);

    for (i = 0; i < 200; i++) {
        snprintf(id, sizeof(id), "m%zu", i);
        assert_int_equal(table_find(&table, id) != NULL, i % 2);
    }

    assert_non_null(add(&table, 0));
    table_done(&table);
}


static void
digest_tells_contents_and_not_their_order(void **state)
{
    size_t     i;
    table_t    a, b;
    member_t  *member;
    uint64_t   same;

    table_init(&a);
    table_init(&b);

    for (i = 0; i < 50; i++) {
        add(&a, i);
        add(&b, 49 - i);
    }

    same = table_digest(&a, 0, 10);
    assert_int_equal(table_digest(&b, 0, 10), same);

    member = table_find(&b, "m7");
    member->facts.incarnation = 1;
    assert_int_not_equal(table_digest(&b, 0, 10), same);
    member->facts.incarnation = 0;
    member_set_liveness(member, LLMGW_LIVENESS_DEAD, 0);
    assert_int_not_equal(table_digest(&b, 0, 10000000), same);

    /* A member that has been dead for long counts as one that was
       never known. */
    table_remove(&a, table_find(&a, "m7"));
    assert_int_not_equal(table_digest(&b, 9000000, 10000000),
                         table_digest(&a, 0, 10000000));
    assert_int_equal(table_digest(&b, 10000000, 10000000),
                     table_digest(&a, 0, 10000000));

    table_done(&a);
    table_done(&b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(holds_as_many_as_it_may_and_no_more),
        cmocka_unit_test(removed_ones_are_gone_and_others_stay),
        cmocka_unit_test(digest_tells_contents_and_not_their_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
