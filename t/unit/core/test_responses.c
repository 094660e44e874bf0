
/*
 * The table of responses: what it holds, what it forgets, and what a process
 * that is killed within a note leaves.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/responses.h"


#define NSETS  4
#define ALL    (NSETS * LLMGW_RESPONSES_WAYS)


static llmgw_responses_t *
made(uint32_t nsets)
{
    void  *memory;

    memory = calloc(1, llmgw_responses_bytes(nsets));
    assert_non_null(memory);

    return llmgw_responses_init(memory, nsets);
}


static void
note(llmgw_responses_t *all, unsigned i, uint64_t owner)
{
    char              id[32];
    llmgw_response_t  said = { owner, i + 1 };

    llmgw_responses_note(all, id, (size_t) sprintf(id, "resp_%u", i), &said);
}


/* 0: it is not there. */
static uint64_t
found(const llmgw_responses_t *all, unsigned i)
{
    char              id[32];
    llmgw_response_t  said;

    if (!llmgw_responses_find(all, id, (size_t) sprintf(id, "resp_%u", i),
                              &said))
    {
        return 0;
    }

    assert_int_equal(said.account, i + 1);

    return said.owner;
}


static void
what_is_noted_is_found(void **state)
{
    unsigned            i;
    llmgw_responses_t  *all;

    all = made(256);
    assert_int_equal(found(all, 0), 0);

    for (i = 0; i < 200; i++) {
        note(all, i, 7 + i);
    }

    for (i = 0; i < 200; i++) {
        assert_int_equal(found(all, i), 7 + i);
    }

    note(all, 5, 99);       /* the same id, anew */
    assert_int_equal(found(all, 5), 99);
    assert_int_equal(found(all, 200), 0);
    free(all);
}


static void
oldest_of_a_set_is_forgotten(void **state)
{
    unsigned            i, n;
    llmgw_responses_t  *all;

    all = made(1);

    for (i = 0; i < 100; i++) {
        note(all, i, 1);

        for (n = 0; n <= i; n++) {
            assert_int_equal(found(all, n) != 0,
                             n + LLMGW_RESPONSES_WAYS > i);
        }
    }

    free(all);
}


static void
torn_entry_is_empty_and_harms_no_other(void **state)
{
    size_t              at, bytes;
    unsigned            i, n, lost;
    uint8_t            *copy;
    llmgw_responses_t  *all;

    all = made(NSETS);
    bytes = llmgw_responses_bytes(NSETS);
    copy = malloc(bytes);
    assert_non_null(copy);

    for (i = 0; i < ALL; i++) {
        note(all, i, 1);
    }

    for (n = 0, i = 0; i < ALL; i++) {
        n += found(all, i) != 0;
    }

    memcpy(copy, all, bytes);

    for (at = 2 * sizeof(uint64_t); at < bytes; at++) {
        ((uint8_t *) all)[at] ^= 0x10;

        for (lost = n, i = 0; i < ALL; i++) {
            lost -= found(all, i) != 0;
        }

        assert_true(lost <= 1);
        note(all, 1000, 3);
        assert_int_equal(found(all, 1000), 3);
        memcpy(all, copy, bytes);
    }

    free(copy);
    free(all);
}


static void
sets_fit_their_memory(void **state)
{
    size_t    bytes;
    uint32_t  n;

    assert_int_equal(llmgw_responses_sets(0), 0);
    assert_int_equal(llmgw_responses_sets(llmgw_responses_bytes(1) - 1), 0);

    for (bytes = llmgw_responses_bytes(1); bytes < 1 << 20; bytes += 1000) {
        n = llmgw_responses_sets(bytes);
        assert_int_equal(n & (n - 1), 0);
        assert_true(llmgw_responses_bytes(n) <= bytes);
        assert_true(llmgw_responses_bytes(2 * n) > bytes);
    }
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_noted_is_found),
        cmocka_unit_test(oldest_of_a_set_is_forgotten),
        cmocka_unit_test(torn_entry_is_empty_and_harms_no_other),
        cmocka_unit_test(sets_fit_their_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
