
/* Text that is written into growing memory. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "proto/json/check.h"
#include "replica/engine/dialect/buf.h"


static void
strings_come_back_from_their_escapes(void **state)
{
    int           rc;
    char          all[0x80];
    buf_t         json = { NULL, 0, 0, 0 }, text = { NULL, 0, 0, 0 };
    size_t        i;
    llmgw_json_t  value;

    for (i = 0; i < sizeof(all); i++) {
        all[i] = (char) i;
    }

    buf_string(&json, all, sizeof(all));
    assert_false(json.failed);
    rc = llmgw_json_check(json.data, json.len, &value);
    assert_int_equal(rc, 0);

    buf_unescape(&text, value);
    assert_int_equal(text.len, sizeof(all));
    assert_memory_equal(text.data, all, sizeof(all));

    buf_unescape(&text, llmgw_json_of("1"));
    assert_int_equal(text.len, sizeof(all));
    buf_free(&json);
    buf_free(&text);
}


static void
what_fails_once_takes_nothing_more(void **state)
{
    buf_t  buf = { NULL, 0, 0, 0 };

    buf_text(&buf, "a");
    buf_string(&buf, "\xc3", 1);
    assert_true(buf.failed);

    buf_text(&buf, "b");
    buf_number(&buf, 1);
    buf_unescape(&buf, llmgw_json_of("\"c\""));
    assert_int_equal(buf.len, 1);
    buf_free(&buf);
}


static void
numbers_and_values_are_appended(void **state)
{
    buf_t  buf = { NULL, 0, 0, 0 };

    buf_number(&buf, INT64_MIN);
    buf_value(&buf, llmgw_json_of("1e400"));
    buf_string(&buf, NULL, 0);
    assert_int_equal(buf.len, 27);
    assert_memory_equal(buf.data, "-92233720368547758081e400\"\"", 27);
    buf_free(&buf);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(strings_come_back_from_their_escapes),
        cmocka_unit_test(what_fails_once_takes_nothing_more),
        cmocka_unit_test(numbers_and_values_are_appended)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
