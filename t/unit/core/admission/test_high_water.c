
/* High water: what is remembered, how long, and what counts as foreign. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/admission/high_water.h"


#define CHANGES  20000
#define MANY     1000000


/* How many of MANY attempts count as our own, and not as foreign. */
static uint32_t
own(const llmgw_high_water_t *high, uint32_t in_flight, uint64_t now_ms)
{
    return MANY - llmgw_high_water_foreign(high, in_flight, MANY, now_ms);
}


static void
nothing_noted_is_the_count_of_now(void **state)
{
    llmgw_high_water_t  high = { 0 };

    assert_int_equal(own(&high, 0, 0), 0);
    assert_int_equal(own(&high, 7, 0), 7);
    assert_int_equal(own(&high, 7, 123456789), 7);
}


static void
count_is_remembered_for_two_seconds(void **state)
{
    uint64_t            start_ms;
    llmgw_high_water_t  high;

    for (start_ms = 10000; start_ms < 10500; start_ms += 50) {
        high = (llmgw_high_water_t) { 0 };

        llmgw_high_water_note(&high, 9, start_ms);

        assert_int_equal(own(&high, 8, start_ms), 9);
        assert_int_equal(own(&high, 0, start_ms + 2000), 9);
        assert_int_equal(own(&high, 1, start_ms + 2500), 1);

        /* also if other counts are noted meanwhile */
        llmgw_high_water_note(&high, 3, start_ms + 1200);
        assert_int_equal(own(&high, 0, start_ms + 2000), 9);
        assert_int_equal(own(&high, 0, start_ms + 2500), 3);
        llmgw_high_water_note(&high, 1, start_ms + 2600);
        assert_int_equal(own(&high, 0, start_ms + 2600), 3);
        assert_int_equal(own(&high, 0, start_ms + 3700), 1);
    }
}


/*
 * A count that was high for long counts as the highest for 2 s after it falls.
 */
static void
long_stand_is_known_when_it_falls(void **state)
{
    llmgw_high_water_t  high = { 0 };

    llmgw_high_water_note(&high, 2, 1000);
    llmgw_high_water_note(&high, 40, 100000);

    assert_int_equal(own(&high, 0, 101999), 40);
    assert_int_equal(own(&high, 0, 102500), 0);
}


static void
clock_that_lags_loses_nothing(void **state)
{
    llmgw_high_water_t  high = { 0 };

    llmgw_high_water_note(&high, 5, 5000);
    llmgw_high_water_note(&high, 6, 4400);

    assert_int_equal(own(&high, 0, 4400), 6);
    assert_int_equal(own(&high, 0, 6900), 6);
}


static void
foreign_is_what_we_cannot_have_caused(void **state)
{
    llmgw_high_water_t  high = { 0 };

    llmgw_high_water_note(&high, 10, 5000);

    assert_int_equal(llmgw_high_water_foreign(&high, 2, 14, 5100), 4);
    assert_int_equal(llmgw_high_water_foreign(&high, 2, 10, 5100), 0);
    assert_int_equal(llmgw_high_water_foreign(&high, 2, 0, 5100), 0);
    assert_int_equal(llmgw_high_water_foreign(&high, 12, 14, 5100), 2);
    assert_int_equal(llmgw_high_water_foreign(&high, 2, 14, 9000), 12);
    assert_int_equal(llmgw_high_water_foreign(&high, 0, UINT32_MAX, 9000),
                     UINT32_MAX);
}


/* Random counts: not below the highest of 2 s, not above that of 2.5 s. */
static void
random_life_agrees_with_its_history(void **state)
{
    int                 i, k;
    uint32_t            count, least, most, answer;
    uint64_t            now_ms;
    llmgw_high_water_t  high = { 0 };

    static uint32_t  counts[CHANGES];
    static uint64_t  until_ms[CHANGES];     /* the count stood till then */

    count = 0;
    now_ms = 50;
    srandom(7);

    for (i = 0; i < CHANGES; i++) {
        counts[i] = count;
        now_ms += (uint64_t) random() % (random() % 50 == 0 ? 3000 : 120);
        until_ms[i] = now_ms;

        least = count;
        most = count;

        for (k = i; k >= 0 && until_ms[k] + 2500 > now_ms; k--) {
            most = counts[k] > most ? counts[k] : most;

            if (until_ms[k] + 2000 >= now_ms) {
                least = counts[k] > least ? counts[k] : least;
            }
        }

        answer = own(&high, count, now_ms);
        assert_in_range(answer, least, most);

        if (count > 0 && random() % 100 < 2 + 2 * (long) count) {
            llmgw_high_water_note(&high, count, now_ms);
            count -= 1 + (uint32_t) random() % count;

        } else {
            count++;
        }
    }
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(nothing_noted_is_the_count_of_now),
        cmocka_unit_test(count_is_remembered_for_two_seconds),
        cmocka_unit_test(long_stand_is_known_when_it_falls),
        cmocka_unit_test(clock_that_lags_loses_nothing),
        cmocka_unit_test(foreign_is_what_we_cannot_have_caused),
        cmocka_unit_test(random_life_agrees_with_its_history)
    };

    return cmocka_run_group_tests_name("high water", tests, NULL, NULL);
}
