
/* Trace context: what is accepted, and what is passed on. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/trace.h"


#define ID    "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"


static int
parse(llmgw_trace_t *trace, const char *text)
{
    return llmgw_trace_parse(trace, text, strlen(text));
}


static void
trace_and_flags_are_handed_on(void **state)
{
    char           text[LLMGW_TRACE_PARENT_BYTES];
    llmgw_trace_t  trace;

    assert_true(parse(&trace, "00-" ID "-" SPAN "-01"));
    assert_string_equal(trace.id, ID);

    llmgw_trace_format(&trace, 0x1234, text);
    assert_string_equal(text, "00-" ID "-0000000000001234-01");

    assert_true(parse(&trace, "00-" ID "-" SPAN "-00"));
    llmgw_trace_format(&trace, UINT64_MAX, text);
    assert_string_equal(text, "00-" ID "-ffffffffffffffff-00");
}


static void
unknown_flags_are_left_out(void **state)
{
    char           text[LLMGW_TRACE_PARENT_BYTES];
    llmgw_trace_t  trace;

    assert_true(parse(&trace, "00-" ID "-" SPAN "-fd"));
    llmgw_trace_format(&trace, 1, text);
    assert_string_equal(text + 53, "01");
}


static void
later_version_is_read_as_far_as_it_is_known(void **state)
{
    llmgw_trace_t  trace;

    assert_true(parse(&trace, "01-" ID "-" SPAN "-01"));
    assert_true(parse(&trace, "cc-" ID "-" SPAN "-01-what-will-be"));
    assert_false(parse(&trace, "cc-" ID "-" SPAN "-01.what-will-be"));
    assert_false(parse(&trace, "ff-" ID "-" SPAN "-01"));
}


static void
what_is_not_valid_is_no_trace(void **state)
{
    static const char *const  wrong[] = {
        "", "00", "00-" ID "-" SPAN, "00-" ID "-" SPAN "-0",
        "00-" ID "-" SPAN "-01-", "00-" ID "-" SPAN "-011",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" ID "-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
        "00-0af7651916cd43dd8448eb211c80319g-" SPAN "-01",
        "00_" ID "-" SPAN "-01", "00-" ID "_" SPAN "-01",
        "00-" ID "-" SPAN "_01", "0x-" ID "-" SPAN "-01",
        " 00-" ID "-" SPAN "-01", "00-" ID "-" SPAN "-0x",
    };
    size_t         i;
    llmgw_trace_t  trace = { "untouched", 7 };

    for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        assert_false(parse(&trace, wrong[i]));
        assert_string_equal(trace.id, "untouched");
        assert_int_equal(trace.flags, 7);
    }
}


static void
every_prefix_is_refused(void **state)
{
    const char     *whole = "00-" ID "-" SPAN "-01";
    size_t          len;
    llmgw_trace_t   trace;

    for (len = 0; len < strlen(whole); len++) {
        assert_false(llmgw_trace_parse(&trace, whole, len));
    }
}


static void
tracestate_is_cut_between_its_members(void **state)
{
    char  text[2 * LLMGW_TRACE_STATE_MAX];

    memset(text, 'x', sizeof(text));
    text[100] = ',';
    text[400] = ',';

    assert_int_equal(llmgw_trace_state_len(text, LLMGW_TRACE_STATE_MAX),
                     LLMGW_TRACE_STATE_MAX);
    assert_int_equal(llmgw_trace_state_len(text, LLMGW_TRACE_STATE_MAX + 1),
                     400);

    text[LLMGW_TRACE_STATE_MAX] = ',';
    assert_int_equal(llmgw_trace_state_len(text, sizeof(text)),
                     LLMGW_TRACE_STATE_MAX);

    memset(text, 'x', sizeof(text));
    assert_int_equal(llmgw_trace_state_len(text, sizeof(text)), 0);
}


static void
tracestate_ends_with_no_blank(void **state)
{
    char  text[LLMGW_TRACE_STATE_MAX + 2];

    assert_int_equal(llmgw_trace_state_len("a=b, c=d", 8), 8);
    assert_int_equal(llmgw_trace_state_len("a=b\t ", 5), 3);
    assert_int_equal(llmgw_trace_state_len(" \t", 2), 0);

    memset(text, 'x', sizeof(text));
    memcpy(text + 100, " ,", 2);
    assert_int_equal(llmgw_trace_state_len(text, sizeof(text)), 100);
}


static void
tracestate_of_other_bytes_is_dropped(void **state)
{
    assert_int_equal(llmgw_trace_state_len("a=b,c=d", 7), 7);
    assert_int_equal(llmgw_trace_state_len("a=b\n", 4), 0);
    assert_int_equal(llmgw_trace_state_len("a=\xc3\xbc", 4), 0);
    assert_int_equal(llmgw_trace_state_len("", 0), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(trace_and_flags_are_handed_on),
        cmocka_unit_test(unknown_flags_are_left_out),
        cmocka_unit_test(later_version_is_read_as_far_as_it_is_known),
        cmocka_unit_test(what_is_not_valid_is_no_trace),
        cmocka_unit_test(every_prefix_is_refused),
        cmocka_unit_test(tracestate_is_cut_between_its_members),
        cmocka_unit_test(tracestate_ends_with_no_blank),
        cmocka_unit_test(tracestate_of_other_bytes_is_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
