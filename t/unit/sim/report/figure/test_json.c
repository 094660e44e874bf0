
/* The writer of JSON: layout, commas, escapes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "sim/report/figure/json.h"


static void
fill(report_json_t *j)
{
    report_json_object(j, NULL);
    report_json_int(j, "n", -3);
    report_json_array(j, "list");
    report_json_double(j, NULL, 0.1);
    report_json_object(j, NULL);
    report_json_bool(j, "yes", 1);
    report_json_end(j);
    report_json_array(j, NULL);
    report_json_end(j);
    report_json_end(j);
    report_json_object(j, "empty");
    report_json_end(j);
    report_json_double(j, "not_finite", INFINITY);
    report_json_string(j, "text", "a\"b\\c\n\t<\001\xc3\xa9");
    report_json_end(j);
}


static void
expect(int indent, const char *text)
{
    FILE           *out;
    char           *got;
    size_t          size;
    report_json_t   j;

    out = open_memstream(&got, &size);
    report_json_init(&j, out, indent);
    fill(&j);
    fclose(out);

    assert_string_equal(got, text);
    free(got);
}


static void
members_stand_indented_in_their_order(void **state)
{
    expect(2,
           "{\n  \"n\": -3,\n  \"list\": [\n    0.1,\n    {\n"
           "      \"yes\": true\n    },\n    []\n  ],\n  \"empty\": {},\n"
           "  \"not_finite\": null,\n"
           "  \"text\": \"a\\\"b\\\\c\\n\\t\\u003c\\u0001\xc3\xa9\"\n}");
}


static void
without_indent_all_is_on_one_line(void **state)
{
    expect(0,
           "{\"n\":-3,\"list\":[0.1,{\"yes\":true},[]],"
           "\"empty\":{},\"not_finite\":null,"
           "\"text\":\"a\\\"b\\\\c\\n\\t\\u003c\\u0001\xc3\xa9\"}");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(members_stand_indented_in_their_order),
        cmocka_unit_test(without_indent_all_is_on_one_line)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
