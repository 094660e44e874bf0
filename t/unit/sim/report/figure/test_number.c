
/* Doubles as text: Go's layout, and the way back. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sim/report/figure/number.h"


static void
text_is_as_short_as_it_can_be(void **state)
{
    size_t  i;
    char    buf[REPORT_NUMBER_BYTES];

    static const struct {
        double       value;
        const char  *text;
    } cases[] = {
        { 0, "0" }, { -0.0, "-0" }, { 1, "1" }, { -2.5, "-2.5" },
        { 600, "600" }, { 0.1, "0.1" }, { 32.84803284628095,
        "32.84803284628095" }, { 2770.841064026619, "2770.841064026619" },
        { 1.0 / 3.0, "0.3333333333333333" }, { 123456789012, "123456789012" },
        { 0.00001, "0.00001" }, { 0.000001, "0.000001" },
        { 0.0000001, "1e-7" }, { 1.25e-9, "1.25e-9" },
        { 1e20, "100000000000000000000" }, { 1e21, "1e+21" },
        { 1.5e300, "1.5e+300" }, { 5e-324, "5e-324" },
        { 9007199254740993.0, "9007199254740992" },
        { 1.7976931348623157e308, "1.7976931348623157e+308" },
        { 45.159949999999995, "45.159949999999995" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(report_number(cases[i].value, buf),
                         strlen(cases[i].text));
        assert_string_equal(buf, cases[i].text);
    }
}


static void
text_reads_back_as_the_same_double(void **state)
{
    char      buf[REPORT_NUMBER_BYTES];
    double    value;
    uint64_t  bits, i;

    bits = 1;

    for (i = 0; i < 100000; i++) {
        bits = bits * 6364136223846793005ULL + 1442695040888963407ULL;
        memcpy(&value, &bits, sizeof(value));

        if (value - value != 0) {
            continue;               /* not finite */
        }

        report_number(value, buf);
        assert_true(strtod(buf, NULL) == value);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(text_is_as_short_as_it_can_be),
        cmocka_unit_test(text_reads_back_as_the_same_double)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
