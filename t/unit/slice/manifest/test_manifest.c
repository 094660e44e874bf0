
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "slice/manifest/manifest.h"


#define ZEROS  "00000000000000000000000000000000"                              \
               "00000000000000000000000000000000"

static const uint8_t  zeros[MANIFEST_ID_BYTES];


static void
test_lines_are_sorted_whatever_their_order(void **state)
{
    char        *text;
    manifest_t   m = { 0 };

    assert_int_equal(manifest_add(&m, "output.weight", "q8_0 32x8", zeros), 0);
    assert_int_equal(manifest_add(&m, "blk.10.a", "f32 4", zeros), 0);
    assert_int_equal(manifest_add(&m, "blk.1.a", "f32 4", zeros), 0);

    text = manifest_text(&m);
    assert_string_equal(text, "blk.1.a f32 4 " ZEROS "\n"
                              "blk.10.a f32 4 " ZEROS "\n"
                              "output.weight q8_0 32x8 " ZEROS "\n");
    assert_string_equal(manifest_find(&m, "blk.10.a")->shape, "f32 4");
    assert_null(manifest_find(&m, "blk.10"));
    free(text);
    manifest_done(&m);
}


static void
test_id_is_the_sha256_of_the_text(void **state)
{
    char     hex[MANIFEST_HEX_BYTES];
    uint8_t  id[MANIFEST_ID_BYTES], again[MANIFEST_ID_BYTES];

    manifest_id("abc", id);         /* FIPS 180-2, B.1 */
    manifest_hex(id, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223"
                             "b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(manifest_unhex(hex, again), 0);
    assert_memory_equal(id, again, sizeof(id));
}


static void
test_what_was_written_is_read(void **state)
{
    char        *text, *again, name[32];
    size_t       i;
    uint8_t      hash[MANIFEST_ID_BYTES];
    manifest_t   m = { 0 }, read;

    for (i = 0; i < 500; i++) {
        snprintf(name, sizeof(name), "blk.%zu.ffn_up.weight", i * 7919 % 500);
        memset(hash, (int) i, sizeof(hash));
        assert_int_equal(manifest_add(&m, name, "q4_0 32x64", hash), 0);
    }

    text = manifest_text(&m);
    assert_int_equal(manifest_parse(&read, text), 0);
    assert_int_equal(read.n, 500);
    again = manifest_text(&read);
    assert_string_equal(text, again);
    free(text);
    free(again);
    manifest_done(&m);
    manifest_done(&read);
}


static void
test_bad_line_is_named(void **state)
{
    size_t      i;
    manifest_t  m;

    static const struct {
        const char  *text;
        int          line;
    } cases[] = {
        { "a f32 4 " ZEROS, 1 },                        /* no end */
        { "a f32 4\n", 1 },
        { "a f32 4 " ZEROS "0\n", 1 },
        { "a f32 4 " ZEROS "\na f32 4 " ZEROS "\n", 2 },        /* twice */
        { "b f32 4 " ZEROS "\na f32 4 " ZEROS "\n", 2 },
        { "a f32 4 " ZEROS "\n\n", 2 },
        { " f32 4 " ZEROS "\n", 1 },
        { "a\tb f32 4 " ZEROS "\n", 1 },
        { "a f32 4 G0" ZEROS "\n", 1 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(manifest_parse(&m, cases[i].text), cases[i].line);
        assert_int_equal(m.n, 0);
        assert_null(m.lines);
    }
}


static void
test_what_no_line_can_hold_is_refused(void **state)
{
    char        shape[MANIFEST_SHAPE_BYTES + 1];
    manifest_t  m = { 0 };

    memset(shape, 'x', sizeof(shape));
    shape[MANIFEST_SHAPE_BYTES] = '\0';
    assert_int_equal(manifest_add(&m, "a", shape, zeros), -1);
    shape[MANIFEST_SHAPE_BYTES - 1] = '\0';
    assert_int_equal(manifest_add(&m, "a", shape, zeros), 0);
    assert_int_equal(manifest_add(&m, "a b", "f32 4", zeros), -1);
    assert_int_equal(manifest_add(&m, "", "f32 4", zeros), -1);

    /* A second tensor of one name is only noticed when the text is made. */
    assert_int_equal(manifest_add(&m, "a", "f32 4", zeros), 0);
    assert_null(manifest_text(&m));
    manifest_done(&m);
}


static void
test_tensors_are_limited(void **state)
{
    char        name[16];
    size_t      i;
    manifest_t  m = { 0 };

    for (i = 0; i < MANIFEST_TENSORS; i++) {
        snprintf(name, sizeof(name), "t%zu", i);
        assert_int_equal(manifest_add(&m, name, "f32 1", zeros), 0);
    }

    assert_int_equal(manifest_add(&m, "more", "f32 1", zeros), -1);
    manifest_done(&m);
}


static void
test_text_is_limited(void **state)
{
    char        *text;
    manifest_t   m;

    text = malloc(MANIFEST_TEXT_BYTES + 2);
    memset(text, 'a', MANIFEST_TEXT_BYTES + 1);
    text[MANIFEST_TEXT_BYTES + 1] = '\0';
    assert_int_equal(manifest_parse(&m, text), -1);

    text[MANIFEST_TEXT_BYTES] = '\0';
    assert_int_equal(manifest_parse(&m, text), 1);
    free(text);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_lines_are_sorted_whatever_their_order),
        cmocka_unit_test(test_id_is_the_sha256_of_the_text),
        cmocka_unit_test(test_what_was_written_is_read),
        cmocka_unit_test(test_bad_line_is_named),
        cmocka_unit_test(test_what_no_line_can_hold_is_refused),
        cmocka_unit_test(test_tensors_are_limited),
        cmocka_unit_test(test_text_is_limited)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
