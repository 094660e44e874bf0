
/*
 * Which texts are JSON, and which error is reported for the others.
 *
 * The cases are our own.  Their categories are those of the known test suite
 * for parsers of JSON (Nicolas Seriot, "Parsing JSON is a Minefield",
 * JSONTestSuite): y_ must be accepted, n_ must be refused, and for i_ RFC 8259
 * leaves the answer to the parser.  Our answer to those is in the table, too.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/json/check.h"


typedef struct {
    const char  *bytes;
    size_t       len;
} text_t;

#define T(text)     { text, sizeof(text) - 1 }
#define COUNT(all)  (sizeof(all) / sizeof((all)[0]))


/* --- y_: every parser must accept these */

static const text_t  accepted[] = {

    /* numbers */
    T("0"), T("-0"), T("1"), T("-1"), T("9"), T("10"), T("123"), T("-123"),
    T("0.0"), T("-0.0"), T("0.5"), T("1.5"), T("-1.5"), T("10.01"),
    T("0.000000000000000000000000000001"), T("123.456789"),
    T("0e0"), T("0E0"), T("0e+1"), T("0E+1"), T("1e0"), T("1E1"), T("1e-2"),
    T("1E-2"), T("1e+2"), T("1E+2"), T("1e02"), T("1e-002"), T("20e1"),
    T("123e45"), T("123.456e78"), T("-1.5E-10"), T("-0e-0"), T("1.0e00"),
    T("9007199254740993"), T("-9223372036854775808"),
    T("18446744073709551616"), T("4294967296"),

    /* words */
    T("true"), T("false"), T("null"), T("[true]"), T("[null,false]"),

    /* strings */
    T("\"\""), T("\" \""), T("\"a\""), T("\"asd\""), T("\"'\""), T("\"/\""),
    T("\"//\""), T("\"/*b*/\""), T("\"{}[]:,\""), T("\"#\""), T("\"null\""),
    T("\"0123456789abcdef\""), T("\"0123456789abcde\""),
    T("\"0123456789abcdef0123456789abcdef0\""), T("\"\x7f\""),

    /* escapes */
    T("\"\\\"\""), T("\"\\\\\""), T("\"\\/\""), T("\"\\b\""), T("\"\\f\""),
    T("\"\\n\""), T("\"\\r\""), T("\"\\t\""), T("\"\\\"\\\\\\/\\b\\f\\n\""),
    T("\"a\\\\\""), T("\"\\\\a\""), T("\"\\\\\\\\\""), T("\"\\\\n\""),
    T("\"\\\\u\""), T("\"\\\\u12\""), T("\"0123456789abcde\\n\""),
    T("\"0123456789abcdef\\n\""), T("\"\\u0000\""), T("\"\\u0001\""),
    T("\"\\u001f\""), T("\"\\u0020\""), T("\"\\u0022\""), T("\"\\u005c\""),
    T("\"\\u007f\""), T("\"\\u0080\""), T("\"\\u00e9\""), T("\"\\u00E9\""),
    T("\"\\uabcd\""), T("\"\\uABCD\""), T("\"\\uAbCd\""), T("\"\\u2028\""),
    T("\"\\u2029\""), T("\"\\ufeff\""), T("\"\\ufffe\""), T("\"\\uffff\""),
    T("\"\\ufdd0\""), T("\"\\ud7ff\""), T("\"\\ue000\""),
    T("\"\\u0061\\u30af\\u30EA\\u30b9\""), T("\"a\\u0062c\""),

    /* surrogate pairs */
    T("\"\\ud800\\udc00\""), T("\"\\udbff\\udfff\""), T("\"\\uD83D\\uDE00\""),
    T("\"\\ud83d\\uDE00\""), T("\"\\ud801\\udc37\""),
    T("\"\\ud83d\\ude00\\ud83d\\udc4d\""), T("\"a\\ud83d\\ude00b\""),
    T("\"\\ud83f\\udffe\""),

    /* UTF-8: one to four bytes, the first and the last of each */
    T("\"\xc2\x80\""), T("\"\xc3\xa9\""), T("\"\xdf\xbf\""),
    T("\"\xe0\xa0\x80\""), T("\"\xe2\x82\xac\""), T("\"\xed\x9f\xbf\""),
    T("\"\xee\x80\x80\""), T("\"\xef\xbf\xbf\""), T("\"\xef\xbb\xbf\""),
    T("\"\xe2\x80\xa8\""), T("\"\xe2\x80\xa9\""), T("\"\xf0\x90\x80\x80\""),
    T("\"\xf0\x9f\x98\x80\""), T("\"\xf4\x8f\xbf\xbf\""),
    T("\"\xf0\x9b\xbf\xbf\""), T("\"\xcc\x81\""), T("\"\xc2\xa0\""),
    T("{\"\xc3\xa9\":\"\xe2\x82\xac\"}"),

    /* arrays */
    T("[]"), T("[[]]"), T("[[],[]]"), T("[[[[]]]]"), T("[1]"), T("[1,2]"),
    T("[1,null,1]"), T("[\"\"]"), T("[\"a\",\"b\"]"), T("[{}]"), T("[{},{}]"),
    T("[1,[2,[3]],4]"), T("[1,1,1,1,1,1,1,1,1,1]"), T("[-1,-2]"),
    T("[1e5]"), T("[0.1]"),

    /* objects */
    T("{}"), T("{\"\":0}"), T("{\"a\":1}"), T("{\"a\":1,\"b\":2}"),
    T("{\"a\":{}}"), T("{\"a\":[]}"), T("{\"a\":null}"), T("{\"a\":\"b\"}"),
    T("{\"a\":{\"b\":{\"c\":1}}}"), T("{\"a\":1,\"a\":2}"),
    T("{\"a\":1,\"a\":1}"), T("{\"a\":\"b\",\"a\":\"c\"}"),
    T("{\"\\u0061\":1}"), T("{\"a\\n\":1}"), T("{\"\\u0000\":1}"),
    T("{\"a:\":1}"), T("{\"\\\"\":1}"), T("{\":\":\":\"}"),
    T("{\"a\":[{\"b\":[1,{}]}],\"c\":-1.5e3}"),

    /* white space */
    T(" 1"), T("1 "), T("\t1"), T("\n1"), T("\r1"), T("\r\n1\r\n"),
    T(" \t\r\n1 \t\r\n"), T("[ ]"), T("[\t]"), T("[\n]"), T("[\r]"),
    T("{ }"), T("{\n}"), T("[1 ]"), T("[ 1]"), T("[1 ,2]"), T("[1, 2]"),
    T("{\"a\" :1}"), T("{\"a\": 1}"), T("{ \"a\":1}"), T("{\"a\":1 }"),
    T("{\"a\":1 ,\n\"b\":2}"), T(" [] "), T("\n{\n}\n"), T("null\n"),
    T(" \"a\" "), T("                    []"),
};


/* --- n_: every parser must refuse these, here at that byte */

typedef struct {
    text_t       text;
    size_t       at;
    const char  *reason;            /* how the reason begins */
} refused_t;

#define R(text, at, reason)  { T(text), at, reason }
#define BY_END    "unexpected end"
#define VALUE     "expected a value"
#define KEY       "expected a key"
#define COLON     "expected ':'"
#define OF_ARRAY  "expected ',' or ']'"
#define OF_OBJECT "expected ',' or '}'"
#define DIGIT     "expected a digit"
#define CONTROL   "control character"
#define ESCAPE    "invalid escape"
#define HALF      "half a surrogate pair"
#define UTF8      "invalid UTF-8"
#define BEHIND    "unexpected text"

static const refused_t  refused[] = {

    /* no value at all */
    R("", 0, BY_END), R(" ", 1, BY_END), R("\n", 1, BY_END),
    R(" \t\r\n", 4, BY_END),

    /* numbers */
    R("-", 1, BY_END), R("+1", 0, VALUE), R("+", 0, VALUE), R("++1", 0, VALUE),
    R("--1", 1, DIGIT), R("- 1", 1, DIGIT), R("-a", 1, DIGIT),
    R("01", 1, BEHIND), R("-01", 2, BEHIND), R("00", 1, BEHIND),
    R("-00", 2, BEHIND), R("012", 1, BEHIND), R("[-01]", 3, OF_ARRAY),
    R("1.", 2, BY_END), R("[1.]", 3, DIGIT), R("0.", 2, BY_END),
    R(".5", 0, VALUE), R("-.5", 1, DIGIT), R(".", 0, VALUE),
    R("[.1]", 1, VALUE), R("[-.1]", 2, DIGIT), R("1.a", 2, DIGIT),
    R("1..2", 2, DIGIT), R("1.2.3", 3, BEHIND), R("1.e5", 2, DIGIT),
    R("1.-5", 2, DIGIT), R("0.1.2", 3, BEHIND), R("1e", 2, BY_END),
    R("1E", 2, BY_END), R("1e+", 3, BY_END), R("1e-", 3, BY_END),
    R("[1e]", 3, DIGIT), R("[1e+]", 4, DIGIT), R("1e+-1", 3, DIGIT),
    R("1e1e1", 3, BEHIND), R("1e1.5", 3, BEHIND), R("1ea", 2, DIGIT),
    R("1 000", 2, BEHIND), R("1,000", 1, BEHIND), R("1_000", 1, BEHIND),
    R("0x42", 1, BEHIND), R("0x", 1, BEHIND), R("0b1", 1, BEHIND),
    R("0o7", 1, BEHIND), R("1a", 1, BEHIND), R("1f", 1, BEHIND),
    R("NaN", 0, VALUE), R("-NaN", 1, DIGIT), R("nan", 0, VALUE),
    R("Infinity", 0, VALUE), R("-Infinity", 1, DIGIT), R("inf", 0, VALUE),
    R("1+2", 1, BEHIND), R("1-2", 1, BEHIND), R("[1-]", 2, OF_ARRAY),
    R("2.e3", 2, DIGIT), R("2.e-3", 2, DIGIT), R("[0e]", 3, DIGIT),
    R("[0e+]", 4, DIGIT), R("[1e1+]", 4, OF_ARRAY), R("1\xc2\xa0", 1, BEHIND),
    R("\xef\xbc\x91", 0, VALUE), R("[\xd9\xa1]", 1, VALUE),

    /* words */
    R("t", 0, VALUE), R("tru", 0, VALUE), R("fals", 0, VALUE),
    R("nul", 0, VALUE), R("True", 0, VALUE), R("TRUE", 0, VALUE),
    R("None", 0, VALUE), R("undefined", 0, VALUE), R("truee", 4, BEHIND),
    R("nulll", 4, BEHIND), R("true1", 4, BEHIND), R("[nul]", 1, VALUE),
    R("[fals]", 1, VALUE), R("[trux]", 1, VALUE), R("a", 0, VALUE),
    R("hello", 0, VALUE), R("[a]", 1, VALUE), R("{\"a\":x}", 5, VALUE),

    /* strings */
    R("\"", 1, BY_END), R("\"a", 2, BY_END), R("[\"a", 3, BY_END),
    R("[\"a]", 4, BY_END), R("'a'", 0, VALUE), R("['a']", 1, VALUE),
    R("`a`", 0, VALUE), R("\"a\"b", 3, BEHIND), R("\"\"\"\"", 2, BEHIND),
    R("\"\x1f\"", 1, CONTROL), R("\"\n\"", 1, CONTROL),
    R("\"a\tb\"", 2, CONTROL), R("\"a\rb\"", 2, CONTROL),
    R("\"a\0b\"", 2, CONTROL), R("\"\x01\"", 1, CONTROL),
    R("\"0123456789abcdef\n\"", 17, CONTROL), R("\"\x08\"", 1, CONTROL),
    R("\"0123456789abcde\x0c\"", 16, CONTROL), R("{\"\n\":1}", 2, CONTROL),
    R("\xe2\x80\x9c" "a\xe2\x80\x9d", 0, VALUE),

    /* escapes */
    R("\"\\", 2, BY_END), R("\"\\\"", 3, BY_END), R("\"\\\\\\\"", 5, BY_END),
    R("\"\\x\"", 1, ESCAPE), R("\"\\a\"", 1, ESCAPE), R("\"\\v\"", 1, ESCAPE),
    R("\"\\0\"", 1, ESCAPE), R("\"\\'\"", 1, ESCAPE), R("\"\\ \"", 1, ESCAPE),
    R("\"\\\n\"", 1, ESCAPE), R("\"\\\0\"", 1, ESCAPE),
    R("\"\\N\"", 1, ESCAPE), R("\"\\U00000041\"", 1, ESCAPE),
    R("\"\\x41\"", 1, ESCAPE), R("\"\\\xc3\xa9\"", 1, ESCAPE),
    R("\"\\u\"", 1, ESCAPE), R("\"\\u0\"", 1, ESCAPE),
    R("\"\\u00\"", 1, ESCAPE), R("\"\\u004\"", 1, ESCAPE),
    R("\"\\u00g1\"", 1, ESCAPE), R("\"\\ug000\"", 1, ESCAPE),
    R("\"\\u000G\"", 1, ESCAPE), R("\"\\u-001\"", 1, ESCAPE),
    R("\"\\u+041\"", 1, ESCAPE), R("\"\\u 041\"", 1, ESCAPE),
    R("\"\\u{41}\"", 1, ESCAPE), R("\"\\u0x41\"", 1, ESCAPE),
    R("\"\\u00@0\"", 1, ESCAPE), R("\"\\u00`0\"", 1, ESCAPE),
    R("\"\\u00\x10""0\"", 1, ESCAPE), R("\"\\u00:0\"", 1, ESCAPE),
    R("\"\\u00/0\"", 1, ESCAPE), R("\"a\\u00e\"", 2, ESCAPE),
    R("\"\\ud83d\\u\"", 1, HALF), R("\"\\ud83d\\ude0\"", 1, HALF),
    R("\"\\ud83d\\udg00\"", 1, HALF), R("\"\\ud83d\\x\"", 1, HALF),
    R("\\u0061", 0, VALUE), R("[\\n]", 1, VALUE), R("{\\n\"a\":1}", 1, KEY),

    /* UTF-8 */
    R("\"\x80\"", 1, UTF8), R("\"\xbf\"", 1, UTF8), R("\"\xff\"", 1, UTF8),
    R("\"\xfe\"", 1, UTF8), R("\"\xc0\xaf\"", 1, UTF8),
    R("\"\xc1\xbf\"", 1, UTF8), R("\"\xe0\x80\xaf\"", 1, UTF8),
    R("\"\xe0\x9f\xbf\"", 1, UTF8), R("\"\xf0\x8f\xbf\xbf\"", 1, UTF8),
    R("\"\xf0\x80\x80\xaf\"", 1, UTF8), R("\"\xed\xa0\x80\"", 1, UTF8),
    R("\"\xed\xbf\xbf\"", 1, UTF8), R("\"\xf4\x90\x80\x80\"", 1, UTF8),
    R("\"\xf5\x80\x80\x80\"", 1, UTF8), R("\"\xf8\x88\x80\x80\x80\"", 1, UTF8),
    R("\"\xc3\"", 1, UTF8), R("\"\xe2\x82\"", 1, UTF8),
    R("\"\xf0\x9f\x98\"", 1, UTF8), R("\"a\xe9\"", 2, UTF8),
    R("\"\xc3\xa9\xc3\"", 3, UTF8), R("\"0123456789abcdef\xff\"", 17, UTF8),
    R("\xe9", 0, UTF8), R("[\xff]", 1, UTF8), R("{\"\xb9\":\"0\"}", 2, UTF8),
    R("[1]\xff", 3, UTF8), R("\"\\\xe5\"", 2, UTF8),
    R("[\"\xed\xa0\xbd\xed\xb8\x80\"]", 2, UTF8),

    /* other encodings, byte order marks */
    R("\xef\xbb\xbf{}", 0, VALUE), R("\xef\xbb\xbf", 0, VALUE),
    R("\xef\xbb{}", 0, UTF8), R("\xff\xfe[\0]\0", 0, UTF8),
    R("\xfe\xff\0[\0]", 0, UTF8), R("[\0]\0", 1, VALUE), R("\0[\0]", 0, VALUE),

    /* NUL and other bytes between values */
    R("\0", 0, VALUE), R("1\0", 1, BEHIND), R("{}\0", 2, BEHIND),
    R("[1\0]", 2, OF_ARRAY), R("[\0""1]", 1, VALUE), R("{\0}", 1, KEY),
    R("nul\0", 0, VALUE), R("[\f]", 1, VALUE), R("[\v1]", 1, VALUE),
    R("[1\f]", 2, OF_ARRAY), R("\x1b[]", 0, VALUE), R("[\x08]", 1, VALUE),
    R("[\xc2\xa0]", 1, VALUE), R("[\xe2\x81\xa0]", 1, VALUE),
    R("[\xe2\x80\xa8]", 1, VALUE), R("\xc2\x85[]", 0, VALUE),

    /* arrays */
    R("[", 1, BY_END), R("]", 0, VALUE), R("[1", 2, BY_END),
    R("[1,", 3, BY_END), R("[\"a\",", 5, BY_END), R("[1,]", 3, VALUE),
    R("[1,,2]", 3, VALUE), R("[,1]", 1, VALUE), R("[,]", 1, VALUE),
    R("[,", 1, VALUE), R("[1 2]", 3, OF_ARRAY), R("[\"a\" \"b\"]", 5, OF_ARRAY),
    R("[1:2]", 2, OF_ARRAY), R("[\"a\":1]", 4, OF_ARRAY),
    R("[1;2]", 2, OF_ARRAY), R("[}", 1, OF_ARRAY), R("[1}", 2, OF_ARRAY),
    R("[1]]", 3, BEHIND), R("[[]", 3, BY_END), R("[]]", 2, BEHIND),
    R("[[1]", 4, BY_END), R("[1],", 3, BEHIND), R("[1][2]", 3, BEHIND),
    R("1]", 1, BEHIND), R("[1,\n1\n,1", 8, BY_END), R("[{}", 3, BY_END),
    R("[,\"a\"]", 1, VALUE), R("[3[4]]", 2, OF_ARRAY), R("[*]", 1, VALUE),
    R("<a>", 0, VALUE), R("[<null>]", 1, VALUE), R("[][]", 2, BEHIND),

    /* objects */
    R("{", 1, BY_END), R("}", 0, VALUE), R("{]", 1, OF_OBJECT),
    R("{\"a\"", 4, BY_END), R("{\"a\":", 5, BY_END), R("{\"a\":1", 6, BY_END),
    R("{\"a\":1,", 7, BY_END), R("{\"a\"}", 4, COLON), R("{\"a\":}", 5, VALUE),
    R("{\"a\":1,}", 7, KEY), R("{,}", 1, KEY), R("{,\"a\":1}", 1, KEY),
    R("{\"a\":1,,\"b\":2}", 7, KEY), R("{a:1}", 1, KEY), R("{'a':1}", 1, KEY),
    R("{1:2}", 1, KEY), R("{null:1}", 1, KEY), R("{[]:1}", 1, KEY),
    R("{\"a\" 1}", 5, COLON), R("{\"a\",1}", 4, COLON),
    R("{\"a\"=1}", 4, COLON), R("{\"a\"::1}", 5, VALUE),
    R("{\"a\":1:2}", 6, OF_OBJECT), R("{\"a\":1 \"b\":2}", 7, OF_OBJECT),
    R("{\"a\":1;\"b\":2}", 6, OF_OBJECT), R("{\"a\":1]", 6, OF_OBJECT),
    R("{\"a\":[1}", 7, OF_ARRAY), R("{\"a\":1}}", 7, BEHIND),
    R("{\"a\":1}x", 7, BEHIND), R("{\"a\":1}{\"b\":2}", 7, BEHIND),
    R("{\"a\":1},", 7, BEHIND), R("{:1}", 1, KEY), R("{\"a\":1,b}", 7, KEY),
    R("{\"a\":\"b\",\"c\"}", 12, COLON), R("{ a: \"b\" }", 2, KEY),
    R("{\"a\":tru}", 5, VALUE), R("{\"a\":'b'}", 5, VALUE), R("{{}}", 1, KEY),
    R("{\"a\":{}", 7, BY_END), R("{\"a\":1,\"b", 9, BY_END),
    R("{}}", 2, BEHIND), R("{ \"a\" : \"b\" ] ", 12, OF_OBJECT),

    /* comments, and what follows the value */
    R("/* b */1", 0, VALUE), R("1/* b */", 1, BEHIND), R("// b\n1", 0, VALUE),
    R("1 // b", 2, BEHIND), R("# b\n1", 0, VALUE), R("1#", 1, BEHIND),
    R("[1/**/]", 2, OF_ARRAY), R("{/**/}", 1, KEY), R("1 2", 2, BEHIND),
    R("1x", 1, BEHIND), R("1;", 1, BEHIND), R("1,", 1, BEHIND),
    R("{} \"x", 3, BEHIND), R("[] 1", 3, BEHIND), R("\"a\" :", 4, BEHIND),
    R("null null", 5, BEHIND), R("{}\n{}", 3, BEHIND), R("*", 0, VALUE),
    R(",", 0, VALUE), R(":", 0, VALUE), R("(1)", 0, VALUE), R("&", 0, VALUE),
};


/* --- i_: the parser decides */

static const text_t  decided[] = {      /* accepted, by both checks */
    T("1e400"), T("-1e400"), T("1e-400"), T("1e99999999999999999999"),
    T("123456789012345678901234567890123456789012345678901234567890"),
    T("0.4e00669999999999999999999999999999999999999999999999999999"),
    T("-123123e100000"), T("\"\\uffff\\ufffe\""), T("\"\xef\xbf\xbe\""),
    T("\"\xf0\x9f\xbf\xbe\""), T("\"\xf4\x8f\xbf\xbe\""),
};

static const text_t  halves[] = {       /* refused only by the strict check */
    T("\"\\ud800\""), T("\"\\udbff\""), T("\"\\udc00\""), T("\"\\udfff\""),
    T("\"\\ud83dx\""), T("\"\\ud83d\\n\""), T("\"\\ud83d\\u0041\""),
    T("\"\\ud83d\\ud83d\\ude00\""), T("\"\\ude00\\ud83d\""),
    T("\"\\ud83d\\ude00\\ude00\""), T("\"\\\\\\ud83d\""),
    T("\"\\ud83d\xc3\xa9\""), T("[\"\\uDd1ea\"]"), T("{\"\\ud83d\":1}"),
    T("\"\\ud83d\\ue000\""), T("\"\\ud83d\\ud7ff\""), T("\"\\ud83d0123456\""),
};


/* Checks a copy, so that any read beyond the text is noticed. */
static int
check(text_t text, llmgw_json_error_t *error)
{
    int            rc, strict;
    char          *copy;
    llmgw_json_t   value;

    copy = malloc(text.len + (text.len == 0));
    assert_non_null(copy);
    memcpy(copy, text.bytes, text.len);

    rc = llmgw_json_check(copy, text.len, &value);

    error->reason = NULL;
    strict = llmgw_json_check_strict(copy, text.len, &value, error);
    assert_true(strict == 0 || error->at <= text.len);
    assert_true(rc == 0 || strict != 0);
    assert_int_equal(strict == 0, error->reason == NULL);

    free(copy);

    return rc;
}


static void
assert_accepted(text_t text)
{
    llmgw_json_error_t  error;

    if (check(text, &error) != 0 || error.reason != NULL) {
        fail_msg("refused: %.*s", (int) text.len, text.bytes);
    }
}


static void
json_is_accepted(void **state)
{
    size_t  i;

    for (i = 0; i < COUNT(accepted); i++) {
        assert_accepted(accepted[i]);
    }

    for (i = 0; i < COUNT(decided); i++) {
        assert_accepted(decided[i]);
    }
}


/* JSON stays JSON in an array, as a member's value, and behind spaces. */
static void
json_within_json_is_accepted(void **state)
{
    int                       n;
    char                      outer[256];
    size_t                    i, k;
    text_t                    text;

    static const char *const  forms[][2] = {
        { "[", "]" }, { "[0,", ",0]" }, { "{\"k\":", "}" }, { " ", "\n" },
        { "{\"k\":[1,{\"l\":", "}],\"m\":[]}" }
    };

    text.bytes = outer;

    for (i = 0; i < COUNT(accepted); i++) {
        for (k = 0; k < COUNT(forms); k++) {
            n = snprintf(outer, sizeof(outer), "%s%.*s%s", forms[k][0],
                         (int) accepted[i].len, accepted[i].bytes,
                         forms[k][1]);
            text.len = (size_t) n;
            assert_accepted(text);
        }
    }
}


static void
other_text_is_refused_where_it_is_wrong(void **state)
{
    size_t              i;
    llmgw_json_error_t  error;

    for (i = 0; i < COUNT(refused); i++) {

        if (check(refused[i].text, &error) == 0) {
            fail_msg("accepted: %s", refused[i].text.bytes);
        }

        if (error.at != refused[i].at
            || strstr(error.reason, refused[i].reason) != error.reason)
        {
            fail_msg("%s: byte %zu, %s", refused[i].text.bytes, error.at,
                     error.reason);
        }
    }
}


static void
half_a_surrogate_pair_is_refused_by_the_strict_check(void **state)
{
    size_t              i;
    llmgw_json_error_t  error;

    for (i = 0; i < COUNT(halves); i++) {
        assert_int_equal(check(halves[i], &error), 0);
        assert_non_null(error.reason);
        assert_string_equal(error.reason, "half a surrogate pair");
        assert_int_equal(halves[i].bytes[error.at], '\\');
    }
}


static void
every_cut_of_json_is_refused_at_its_end(void **state)
{
    text_t              text;
    llmgw_json_error_t  error;

    static const char   whole[] =
        "{\"a\":[1,-2.5e3,[true],\"x\\n\\\"y\"],\"b\":{\"c\":{}}}";

    text.bytes = whole;

    for (text.len = 0; text.len < sizeof(whole) - 1; text.len++) {
        assert_int_equal(check(text, &error), -1);
        assert_true(error.at == text.len || whole[error.at] == 't');
    }
}


static void
depth_has_a_limit(void **state)
{
    char                both[2 * LLMGW_JSON_MAX_DEPTH + 2];
    text_t              text;
    llmgw_json_error_t  error;

    text.bytes = both;
    text.len = 2 * LLMGW_JSON_MAX_DEPTH;
    memset(both, '[', LLMGW_JSON_MAX_DEPTH);
    memset(both + LLMGW_JSON_MAX_DEPTH, ']', LLMGW_JSON_MAX_DEPTH);
    assert_accepted(text);

    text.len += 2;
    memset(both, '[', LLMGW_JSON_MAX_DEPTH + 1);
    memset(both + LLMGW_JSON_MAX_DEPTH + 1, ']', LLMGW_JSON_MAX_DEPTH + 1);
    assert_int_equal(check(text, &error), -1);
    assert_int_equal(error.at, LLMGW_JSON_MAX_DEPTH);
    assert_string_equal(error.reason, "nested more than 64 levels deep");
}


static void
a_string_is_checked_alone(void **state)
{
    size_t                    i;
    llmgw_json_t              string;

    static const char         good[] = "\"a\\n\xc3\xa9\" and no JSON";
    static const char *const  bad[] = {
        "", "\"", "\"a", "\"\\\"", "\"\\x\"", "\"\xc3\"", "\"\n\"", "1"
    };

    assert_int_equal(llmgw_json_check_string(good, good + sizeof(good) - 1,
                                             &string), 0);
    assert_int_equal(string.kind, LLMGW_JSON_STRING);
    assert_int_equal(llmgw_json_bytes(string), 7);

    for (i = 0; i < COUNT(bad); i++) {
        assert_int_equal(llmgw_json_check_string(bad[i],
                                                 bad[i] + strlen(bad[i]),
                                                 &string), -1);
    }
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(json_is_accepted),
        cmocka_unit_test(json_within_json_is_accepted),
        cmocka_unit_test(other_text_is_refused_where_it_is_wrong),
        cmocka_unit_test(half_a_surrogate_pair_is_refused_by_the_strict_check),
        cmocka_unit_test(every_cut_of_json_is_refused_at_its_end),
        cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(a_string_is_checked_alone)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
