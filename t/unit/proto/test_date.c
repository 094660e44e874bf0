
/* Days, months and times: proto/date.h. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/date.h"


static void
dates_are_those_of_the_calendar(void **state)
{
    char      date[LLMGW_DATE_BYTES];
    uint64_t  ms;

    llmgw_date_write(date, 0);
    assert_string_equal(date, "1970-01-01T00:00:00.000Z");
    llmgw_date_write(date, 1709251199999ull);
    assert_string_equal(date, "2024-02-29T23:59:59.999Z");
    llmgw_date_write(date, UINT64_MAX);
    assert_string_equal(date, "9999-12-31T23:59:59.999Z");

    assert_int_equal(llmgw_date_read("2024-02-29", 10, &ms), 0);
    assert_int_equal(ms, 1709164800000ull);
    assert_int_equal(llmgw_date_read("2024-02-29T23:59Z", 17, &ms), 0);
    assert_int_equal(ms, 1709251140000ull);
    assert_int_equal(llmgw_date_read("2023-02-29", 10, &ms), -1);
    assert_int_equal(llmgw_date_read("1969-12-31", 10, &ms), -1);
    assert_int_equal(llmgw_date_read("2024-02-00", 10, &ms), -1);
    assert_int_equal(llmgw_date_read("2024-02-1", 9, &ms), -1);
    assert_int_equal(llmgw_date_read("2024-02-29T24:00Z", 17, &ms), -1);
    assert_int_equal(llmgw_date_read("2024/02/29", 10, &ms), -1);
}


/* Each day of two centuries, compared with a count of days. */
static void
periods_follow_each_other(void **state)
{
    char      date[LLMGW_DATE_BYTES];
    uint32_t  day, month, last;
    uint64_t  ms, back;

    last = llmgw_period_number(LLMGW_PERIOD_MONTH, 0);
    assert_int_equal(last, 1970 * 12);

    for (day = 0; day < 200 * 365; day++) {
        ms = day * LLMGW_DAY_MS;
        assert_int_equal(llmgw_period_number(LLMGW_PERIOD_DAY, ms + 1), day);
        assert_int_equal(llmgw_period_end_ms(LLMGW_PERIOD_DAY, ms),
                         ms + LLMGW_DAY_MS);
        llmgw_date_write(date, ms);
        assert_int_equal(llmgw_date_read(date, 10, &back), 0);
        assert_int_equal(back, ms);

        month = llmgw_period_number(LLMGW_PERIOD_MONTH, ms);
        assert_int_equal(month - last, memcmp(date + 8, "01", 2) == 0
                                       && day > 0);
        back = llmgw_period_end_ms(LLMGW_PERIOD_MONTH, ms);
        assert_int_equal(llmgw_period_number(LLMGW_PERIOD_MONTH, back - 1),
                         month);
        assert_int_equal(llmgw_period_number(LLMGW_PERIOD_MONTH, back),
                         month + 1);
        last = month;
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(dates_are_those_of_the_calendar),
        cmocka_unit_test(periods_follow_each_other)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
