
/* Plots: ticks, marks for the edges of what is drawn, escapes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sim/report/compare/svg.h"


static void
ticks_are_round_and_not_too_many(void **state)
{
    double  max, step, mantissa;

    for (max = 1e-6; max < 1e9; max *= 1.37) {
        step = report_svg_step(max, 6);
        mantissa = step / pow(10, floor(log10(step) + 1e-9));
        assert_true(max / step <= 6 + 1e-9);
        assert_true(max / step > 2);
        assert_true(fabs(mantissa - 1) < 1e-9 || fabs(mantissa - 2) < 1e-9
                    || fabs(mantissa - 5) < 1e-9);
    }

    assert_true(report_svg_step(0, 6) == 1);
}


/* No number in it may be none, whatever the data. */
static void
nothing_and_one_point_can_be_drawn(void **state)
{
    FILE             *out;
    char             *text;
    size_t            size;
    double            one = 5, none[2] = { NAN, 0.5 }, zero = 0;
    report_chart_t    chart = { "a < b", "d", "x", "y", 1, 0 };
    report_cells_t    cells = { "c", "d", "x", 0, 1, 1, &zero, 0, NULL };
    report_series_t   series[2] = { { "s&t", &one, &one, 1 },
                                    { "empty", NULL, NULL, 0 } };
    const char       *names[2] = { "p", "q" };

    cells.row_names = names;
    out = open_memstream(&text, &size);
    report_svg_lines(out, &chart, series, 2);
    chart.x_log = 0;
    report_svg_lines(out, &chart, &series[1], 1);
    report_svg_bars(out, &chart, names, 1, names, 2, none);
    report_svg_cells(out, &cells);
    fclose(out);

    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    assert_null(strstr(text, "a < b"));
    assert_non_null(strstr(text, "a &lt; b"));
    assert_non_null(strstr(text, "s&amp;t"));
    assert_non_null(strstr(text, "<title>q: 0.5</title>"));
    assert_null(strstr(text, "<title>p: "));
    free(text);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(ticks_are_round_and_not_too_many),
        cmocka_unit_test(nothing_and_one_point_can_be_drawn)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
