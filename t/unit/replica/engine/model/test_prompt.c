
/* Prompts as tokens, and tokens that wait for their time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "replica/engine/model/delivery.h"
#include "replica/engine/model/prompt.h"


#define BLOCK  4        /* tokens: 16 bytes */

static uint64_t *
hashes(const char *prompt, uint32_t delivered, uint32_t *n)
{
    uint64_t  *got;

    got = model_prompt_hashes((const uint8_t *) prompt, strlen(prompt),
                              delivered, BLOCK, n);
    assert_non_null(got);

    return got;
}


static void
four_bytes_are_a_token(void **state)
{
    assert_int_equal(model_prompt_tokens(0, 0), 0);
    assert_int_equal(model_prompt_tokens(1, 0), 1);
    assert_int_equal(model_prompt_tokens(4, 0), 1);
    assert_int_equal(model_prompt_tokens(5, 7), 9);
}


/* How many first blocks two requests share. */
static void
expect_shared(const char *a, uint32_t delivered_a, const char *b,
    uint32_t delivered_b, uint32_t blocks)
{
    uint32_t   i, na, nb;
    uint64_t  *ha, *hb;

    ha = hashes(a, delivered_a, &na);
    hb = hashes(b, delivered_b, &nb);

    for (i = 0; i < na && i < nb && ha[i] == hb[i]; i++) {
        assert_true(ha[i] != 0);
    }

    assert_int_equal(i, blocks);

    /* hashes are chained: all after a difference differ */
    for ( /* void */ ; i < na && i < nb; i++) {
        assert_true(ha[i] != hb[i]);
    }

    free(ha);
    free(hb);
}


static void
prompts_share_blocks_as_far_as_they_are_equal(void **state)
{
    static const char  text[] = "sixteen bytes, yes sixteen bytes, no";

    expect_shared(text, 0, text, 0, 2);
    expect_shared(text, 0, "sixteen bytes, YES sixteen bytes, no", 0, 0);
    expect_shared(text, 0, "sixteen bytes, yes fifteen bytes, no", 0, 1);
    expect_shared(text, 0, "sixteen bytes", 0, 0);
    expect_shared("", 0, "", 0, 0);
}


static void
delivered_tokens_are_part_of_the_prompt(void **state)
{
    static const char  text[] = "sixteen bytes, yes sixteen bytes, no";

    /* 9 tokens and 7 delivered: two blocks of text, one mixed, one of answer */
    expect_shared(text, 7, text, 7, 4);
    expect_shared(text, 7, text, 3, 3);
    expect_shared(text, 7, text, 0, 2);
    expect_shared(text, 7, "sixteen bytes, yes sixteen bytes, NO", 7, 2);
}


static void
tokens_leave_in_order_of_time(void **state)
{
    int                i, runs[3];
    int64_t            last;
    model_deliveries_t  list = { 0 };

    assert_true(model_delivery_at(&list) == INT64_MAX);

    for (i = 0; i < 300; i++) {
        assert_int_equal(model_delivery_add(&list, &runs[i % 3],
                                        i % 50 == 9 ? i - 5 : i), 0);

        if (i % 2 == 1) {
            (void) model_delivery_pop(&list);
        }
    }

    model_delivery_drop(&list, &runs[1]);
    last = 0;

    while (list.n > 0) {
        assert_true(model_delivery_at(&list) >= last);
        last = model_delivery_at(&list);
        assert_ptr_not_equal(model_delivery_pop(&list), &runs[1]);
    }

    assert_int_equal(last, 299);
    model_delivery_done(&list);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(four_bytes_are_a_token),
        cmocka_unit_test(prompts_share_blocks_as_far_as_they_are_equal),
        cmocka_unit_test(delivered_tokens_are_part_of_the_prompt),
        cmocka_unit_test(tokens_leave_in_order_of_time)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
