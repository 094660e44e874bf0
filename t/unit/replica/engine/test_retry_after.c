
/* Retry-After in seconds and as each form of a date. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "replica/engine/retry_after.h"


/* Sun, 06 Nov 1994 08:49:37 GMT */
#define NOW  784111777


static void
seconds_and_dates_are_read_and_bounded(void **state)
{
    size_t  i;

    static const struct {
        const char  *value;
        int64_t      ms;
    } cases[] = {
        { "7", 7000 }, { " 7 \r\n", 7000 }, { "0", 0 }, { "10", 10000 },
        { "11", 10000 }, { "99999999999999999999999999", 10000 },
        { "Sun, 06 Nov 1994 08:49:40 GMT", 3000 },
        { "Sunday, 06-Nov-94 08:49:40 GMT", 3000 },
        { "Sun Nov  6 08:49:40 1994", 3000 },
        { "Sun, 06 Nov 1994 08:49:30 GMT", 0 },
        { "Sun, 06 Nov 2044 08:49:30 GMT", 10000 },
        { "", -1 }, { "  ", -1 }, { "-1", -1 }, { "1.5", -1 }, { "soon", -1 },
        { "7 7777777777777777777777777777777777777777777777777777777777777777",
          -1 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (retry_after_ms(cases[i].value, strlen(cases[i].value), NOW)
            != cases[i].ms)
        {
            fail_msg("\"%s\"", cases[i].value);
        }
    }
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(seconds_and_dates_are_read_and_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
