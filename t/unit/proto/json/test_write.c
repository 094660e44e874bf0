
/* JSON that the gateway writes: jansson reads back what was meant. */

#include "t/unit/core/openai/openai_scene.h"

#include "proto/json/write.h"


static void
assert_string(const char *text, size_t len, const char *expected)
{
    char    *end, *json;
    size_t   bytes;

    bytes = llmgw_json_string_bytes(text, len);
    assert_true(bytes <= LLMGW_JSON_STRING_BYTES(len));

    json = malloc(bytes);                   /* exactly: a sanitizer sees more */
    end = llmgw_json_string(json, text, len);
    assert_int_equal(end - json, bytes);

    if (expected) {
        assert_int_equal(bytes, strlen(expected));
        assert_memory_equal(json, expected, bytes);
    }

    free(json);
}


static void
strings_are_escaped_where_needed(void **state)
{
    assert_string("", 0, "\"\"");
    assert_string(NULL, 0, "\"\"");
    assert_string("hello", 5, "\"hello\"");
    assert_string("a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\"");
    assert_string("\b\t\n\f\r", 5, "\"\\b\\t\\n\\f\\r\"");
    assert_string("\0\x1f\x7f", 3, "\"\\u0000\\u001f\x7f\"");
    assert_string("\u20ac\U0001f600", 7, "\"\u20ac\U0001f600\"");
    assert_string("0123456\n", 8, "\"0123456\\n\"");
    assert_string("01234567\n", 9, "\"01234567\\n\"");
    assert_string("\x80\xa2\xdc\xff", 4, "\"\x80\xa2\xdc\xff\"");
}


/* Every byte value at every place of a word, beside bytes from which a carry
   might come. */
static void
every_byte_is_judged_alike_at_every_place(void **state)
{
    char      text[24], plain[200], *p;
    size_t    at;
    unsigned  c, beside;

    for (c = 0; c < 256; c++) {
        for (at = 0; at < 17; at++) {
            for (beside = 0; beside < 2; beside++) {
                memset(text, beside ? '!' : 0x7f, sizeof(text));
                text[at] = (char) c;

                p = plain;
                *p++ = '"';
                memcpy(p, text, at);
                p += at;

                if (c == '"' || c == '\\') {
                    p += sprintf(p, "\\%c", c);
                } else if (c < 0x20 && strchr("\b\f\n\r\t", (int) c) && c) {
                    p += sprintf(p, "\\%c", c == '\b' ? 'b' : c == '\f' ? 'f'
                                 : c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
                } else if (c < 0x20) {
                    p += sprintf(p, "\\u%04x", c);
                } else {
                    *p++ = (char) c;
                }

                memcpy(p, text + at + 1, 16 - at);
                p += 16 - at;
                strcpy(p, "\"");

                assert_string(text, 17, plain);
            }
        }
    }
}


static void
jansson_reads_what_was_written(void **state)
{
    char          text[300], json[2000], *end;
    size_t        i, len;
    json_t       *read;
    unsigned      seed;
    json_error_t  error;

    for (seed = 1; seed < 2000; seed++) {
        len = rand_r(&seed) % sizeof(text);

        for (i = 0; i < len; i++) {
            text[i] = (char) (rand_r(&seed) % 128);
        }

        end = llmgw_json_string(json, text, len);
        read = json_loadb(json, end - json, JSON_DECODE_ANY | JSON_ALLOW_NUL,
                          &error);
        assert_non_null(read);
        assert_int_equal(json_string_length(read), len);
        assert_memory_equal(json_string_value(read), text, len);
        json_decref(read);
    }
}


static void
numbers_are_written_whole(void **state)
{
    size_t         i;
    char           json[LLMGW_JSON_NUMBER_BYTES + 1], expected[64];
    const int64_t  numbers[] = { 0, 1, -1, 9, 10, -10, 1234567890, INT64_MAX,
                                 INT64_MIN, INT64_MIN + 1 };

    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        *llmgw_json_number(json, numbers[i]) = '\0';
        sprintf(expected, "%lld", (long long) numbers[i]);
        assert_string_equal(json, expected);
    }
}


static void
reals_read_back_as_reals(void **state)
{
    size_t  i;
    char    json[LLMGW_JSON_REAL_BYTES + 1];

    const struct {
        double       number;
        const char  *expected;
    } cases[] = {
        { 0, "0.0" }, { 1, "1.0" }, { -8, "-8.0" }, { 0.5, "0.5" },
        { 0.0425, "0.0425" }, { 2560, "2560.0" }, { 123456.7, "123457.0" },
        { 1e12, "1e+12" }, { -1.2345678e-300, "-1.23457e-300" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        *llmgw_json_real(json, cases[i].number) = '\0';
        assert_string_equal(json, cases[i].expected);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(strings_are_escaped_where_needed),
        cmocka_unit_test(every_byte_is_judged_alike_at_every_place),
        cmocka_unit_test(jansson_reads_what_was_written),
        cmocka_unit_test(numbers_are_written_whole),
        cmocka_unit_test(reals_read_back_as_reals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
