
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "slice/manifest/share.h"


#define LAYERS  12

static const char *const  globals[] = {
    "token_embd.weight", "output.weight", "output.bias", "output_norm.weight",
    "rope_freqs.weight", "settings"
};


static share_t
slice(uint32_t first, uint32_t last)
{
    share_t  share = { 0, 0, first, last, LAYERS };

    return share;
}


static void
test_each_layer_is_in_the_slices_of_its_range(void **state)
{
    char      name[SHARE_NAME_BYTES], local[SHARE_NAME_BYTES];
    uint32_t  i;
    share_t   middle = slice(4, 10), head = { .is_head = 1 };

    for (i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof(name), "blk.%u.attn_q.weight", i);
        assert_int_equal(share_layer(name), i);
        assert_int_equal(share_has(&middle, name), i >= 4 && i <= 10);
        assert_false(share_has(&head, name));
    }

    share_name(&middle, "blk.10.attn_q.weight", local);
    assert_string_equal(local, "blk.6.attn_q.weight");
    share_name(&middle, "blk.4.x", local);
    assert_string_equal(local, "blk.0.x");
}


static void
test_rest_is_where_it_is_needed(void **state)
{
    size_t   i;
    share_t  first = slice(0, 4), last = slice(5, LAYERS - 1);
    share_t  head = { .is_head = 1 };

    static const int  in_head[] = { 1, 0, 0, 0, 0, 1 };
    static const int  in_first[] = { 0, 0, 0, 1, 1, 1 };
    static const int  in_last[] = { 0, 1, 1, 1, 1, 1 };

    for (i = 0; i < sizeof(globals) / sizeof(globals[0]); i++) {
        assert_int_equal(share_has(&head, globals[i]), in_head[i]);
        assert_int_equal(share_has(&first, globals[i]), in_first[i]);
        assert_int_equal(share_has(&last, globals[i]), in_last[i]);
        assert_int_equal(share_layer(globals[i]), -1);
    }
}


static void
test_output_takes_the_place_of_the_embedding(void **state)
{
    char     local[SHARE_NAME_BYTES];
    share_t  last = slice(0, LAYERS - 1);

    assert_true(share_has_output(&last));
    assert_false(share_has(&last, "token_embd.weight"));
    share_name(&last, "output.weight", local);
    assert_string_equal(local, "token_embd.weight");
    share_name(&last, "output.bias", local);
    assert_string_equal(local, "output.bias");
    share_name(&last, "output_norm.weight", local);
    assert_string_equal(local, "output_norm.weight");

    last.is_tied = 1;
    assert_true(share_has(&last, "token_embd.weight"));
    share_name(&last, "token_embd.weight", local);
    assert_string_equal(local, "token_embd.weight");

    last.last_layer--;
    assert_false(share_has_output(&last));
    assert_false(share_has(&last, "token_embd.weight"));
}


static void
test_what_only_looks_like_a_layer_is_none(void **state)
{
    assert_int_equal(share_layer("blk."), -1);
    assert_int_equal(share_layer("blk.x.a"), -1);
    assert_int_equal(share_layer("blk.-1.a"), -1);
    assert_int_equal(share_layer("blk.7"), -1);
    assert_int_equal(share_layer("blk.7a.b"), -1);
    assert_int_equal(share_layer("blk.99999999999999999999.a"), -1);
    assert_int_equal(share_layer("ablk.7.b"), -1);
    assert_int_equal(share_layer("blk.0.a"), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_each_layer_is_in_the_slices_of_its_range),
        cmocka_unit_test(test_rest_is_where_it_is_needed),
        cmocka_unit_test(test_output_takes_the_place_of_the_embedding),
        cmocka_unit_test(test_what_only_looks_like_a_layer_is_none)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
