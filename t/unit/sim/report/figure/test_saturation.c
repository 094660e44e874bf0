
/* Detectors of saturation over made-up runs. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "sim/report/figure/saturation.h"


#define N  200


static char             ids[N][16];
static report_served_t  served[N];
static size_t           verdicts;


/*
 * Makes a run with a request every 100 ms; the i-th takes e2e_us + i *
 * more_us.
 */
static void
make(int64_t e2e_us, int64_t more_us)
{
    size_t  i;

    for (i = 0; i < N; i++) {
        snprintf(ids[i], sizeof(ids[i]), "request_%zu", i);
        served[i].id = ids[i];
        served[i].arrival_us = (int64_t) i * 100000;
        served[i].e2e_us = e2e_us + (int64_t) i * more_us;
    }
}


static void
count(void *data, int64_t at_us, report_detector_t detector,
    const report_verdict_t *verdict)
{
    size_t  i;

    for (i = 1; i < verdict->nsignals; i++) {
        assert_true(strcmp(verdict->signals[i - 1].name,
                           verdict->signals[i].name) < 0);
    }

    verdicts++;
}


static void
label(report_level_t labels[REPORT_DETECTORS])
{
    const char           *error;
    report_saturation_t   s;

    report_saturation_init(&s);
    assert_int_equal(report_saturation_select(&s, "all", &error), 0);
    s.drift_window_us = 1000000;

    assert_int_equal(report_saturation_run(&s, served, N, labels), 1);
}


static void
a_steady_run_is_stable(void **state)
{
    report_level_t  labels[REPORT_DETECTORS];

    make(300000, 0);
    label(labels);

    assert_int_equal(labels[REPORT_COMPOSITE], REPORT_STABLE);
    assert_int_equal(labels[REPORT_THRESHOLD], REPORT_STABLE);
    assert_int_equal(labels[REPORT_BACKLOG_DRIFT], REPORT_STABLE);
}


static void
latency_that_keeps_rising_is_overload(void **state)
{
    report_level_t  labels[REPORT_DETECTORS];

    make(6000000, 60000);
    label(labels);

    assert_int_equal(labels[REPORT_COMPOSITE], REPORT_OVERLOADED);
    assert_int_equal(labels[REPORT_THRESHOLD], REPORT_OVERLOADED);
    assert_true(labels[REPORT_BACKLOG_DRIFT] != REPORT_STABLE);
}


static void
a_trace_has_each_event_for_each_detector(void **state)
{
    const char           *error;
    report_level_t        labels[REPORT_DETECTORS];
    report_saturation_t   s;

    make(300000, 0);
    report_saturation_init(&s);
    assert_int_equal(report_saturation_select(&s, "threshold, composite",
                                              &error), 0);
    s.verdict = count;
    verdicts = 0;

    assert_int_equal(report_saturation_run(&s, served, N, labels), 1);
    assert_int_equal(verdicts, 2 * 2 * N);
    assert_int_equal(report_saturation_run(&s, served, 0, labels), 0);
}


static void
unknown_detectors_are_refused(void **state)
{
    size_t                i;
    const char           *error;
    report_saturation_t   s;

    static const char *const  wrong[] = {
        "", ",", "composit", "composite,all", "threshold;composite"
    };

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        report_saturation_init(&s);
        assert_int_equal(report_saturation_select(&s, wrong[i], &error), -1);
        assert_non_null(error);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_steady_run_is_stable),
        cmocka_unit_test(latency_that_keeps_rising_is_overload),
        cmocka_unit_test(a_trace_has_each_event_for_each_detector),
        cmocka_unit_test(unknown_detectors_are_refused)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
