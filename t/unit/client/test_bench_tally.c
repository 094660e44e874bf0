
/* Errors counted by kind: what counts as one kind, and how many kinds fit. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "client/bench_tally.h"


static void
equal_ones_are_one_kind(void **state)
{
    bench_tally_t  tally;

    memset(&tally, 0, sizeof(tally));
    bench_tally_add(&tally, BENCH_TALLY_STATUS, "UNAVAILABLE", "no_replicas");
    bench_tally_add(&tally, BENCH_TALLY_STATUS, "UNAVAILABLE", "");
    bench_tally_add(&tally, BENCH_TALLY_TRANSPORT, "UNAVAILABLE", "");
    bench_tally_add(&tally, BENCH_TALLY_STATUS, "UNAVAILABLE", "no_replicas");

    assert_int_equal(tally.n, 3);
    assert_int_equal(tally.kinds[0].count, 2);
    assert_int_equal(tally.kinds[1].count, 1);
    assert_int_equal(tally.kinds[2].count, 1);
}


static void
texts_are_cut_and_cleaned(void **state)
{
    char           text[2 * BENCH_TALLY_TEXT_BYTES];
    bench_tally_t  tally;

    memset(&tally, 0, sizeof(tally));
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';

    bench_tally_add(&tally, BENCH_TALLY_STATUS, text, "a\x1b[2Jb\x7f");
    bench_tally_add(&tally, BENCH_TALLY_STATUS, text, "a\x1b[2Jb\x7f");

    assert_int_equal(tally.n, 1);
    assert_int_equal(strlen(tally.kinds[0].code), BENCH_TALLY_TEXT_BYTES - 1);
    assert_string_equal(tally.kinds[0].reason, "a?[2Jb?");
}


/* The last row counts all kinds beyond the limit, and no error is lost. */
static void
kinds_beyond_the_limit_are_other(void **state)
{
    int            i;
    char           code[BENCH_TALLY_TEXT_BYTES];
    uint64_t       sum;
    bench_tally_t  tally;

    memset(&tally, 0, sizeof(tally));

    for (i = 0; i < BENCH_TALLY_KINDS - 1; i++) {
        snprintf(code, sizeof(code), "kind %d", i);
        bench_tally_add(&tally, BENCH_TALLY_TOKENS, code, "");
    }

    assert_string_equal(tally.kinds[tally.n - 1].code, code);

    for ( /* void */ ; i < BENCH_TALLY_KINDS + 10; i++) {
        snprintf(code, sizeof(code), "kind %d", i);
        bench_tally_add(&tally, BENCH_TALLY_TOKENS, code, "");
    }

    assert_int_equal(tally.n, BENCH_TALLY_KINDS);
    assert_string_equal(tally.kinds[BENCH_TALLY_KINDS - 1].code, "other");
    assert_int_equal(tally.kinds[BENCH_TALLY_KINDS - 1].count, 11);

    for (sum = 0, i = 0; i < BENCH_TALLY_KINDS; i++) {
        sum += tally.kinds[i].count;
    }

    assert_int_equal(sum, BENCH_TALLY_KINDS + 10);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(equal_ones_are_one_kind),
        cmocka_unit_test(texts_are_cut_and_cleaned),
        cmocka_unit_test(kinds_beyond_the_limit_are_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
