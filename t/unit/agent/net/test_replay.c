
/* Counters of datagrams that have been received, by sender and epoch. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/replay.h"


#define S  1000000ULL


static void
take(replay_t *r, uint64_t epoch, uint64_t counter, int expected)
{
    assert_int_equal(replay_take(r, "a", epoch, counter, S), expected);
}


static void
each_number_is_had_once_in_any_order(void **state)
{
    uint64_t   i;
    replay_t  *r;

    r = replay_create();
    take(r, 5, 0, 0);
    take(r, 5, 2000, 1);
    take(r, 5, 2000, 0);

    /* At the window's end, and one counter beyond it. */
    take(r, 5, 2000 - REPLAY_WINDOW, 0);
    take(r, 5, 2001 - REPLAY_WINDOW, 1);
    take(r, 5, 2001 - REPLAY_WINDOW, 0);

    for (i = 1999; i > 2001 - REPLAY_WINDOW; i--) {
        take(r, 5, i, 1);
        take(r, 5, i, 0);
    }

    take(r, 5, 2001, 1);
    take(r, 5, 2001 - REPLAY_WINDOW, 0);

    /* Jumps by less than the window, by its length, and by more. */
    take(r, 5, 2500, 1);
    take(r, 5, 2499, 1);
    take(r, 5, 2001, 0);
    take(r, 5, 2500 + REPLAY_WINDOW, 1);
    take(r, 5, 2501, 1);
    take(r, 5, 2500, 0);
    take(r, 5, UINT64_MAX - 2, 1);
    take(r, 5, UINT64_MAX, 1);
    take(r, 5, UINT64_MAX - 1, 1);
    take(r, 5, UINT64_MAX, 0);
    take(r, 5, 1, 0);
    replay_destroy(r);
}


/* Random counters, compared with a set of all that were received. */
static void
random_numbers_are_had_as_a_set_says(void **state)
{
    uint64_t          i, counter, top;
    replay_t         *r;
    static uint8_t    had[20000];
    unsigned short    seed[3] = { 1, 2, 3 };

    r = replay_create();
    top = 0;

    for (i = 0; i < 200000; i++) {
        counter = 1 + i / 20 + nrand48(seed) % 3000;
        take(r, 5, counter,
             !had[counter] && counter + REPLAY_WINDOW > top);

        if (counter + REPLAY_WINDOW > top) {
            had[counter] = 1;
        }

        top = counter > top ? counter : top;
    }

    replay_destroy(r);
}


static void
restarted_sender_counts_anew_and_its_past_is_over(void **state)
{
    replay_t  *r;

    r = replay_create();
    take(r, 5, 10, 1);
    take(r, 6, 1, 1);
    take(r, 6, 1, 0);

    /* The epoch before: datagrams still on the way are accepted, once each. */
    take(r, 5, 9, 1);
    take(r, 5, 10, 0);
    take(r, 5, 9, 0);

    /* With a third epoch, the first one is forgotten: it is refused. */
    take(r, 7, 1, 1);
    take(r, 5, 11, 0);
    take(r, 6, 1, 0);
    take(r, 6, 2, 1);
    take(r, 7, 1, 0);
    replay_destroy(r);
}


static void
lower_epoch_is_let_in_after_silence_alone(void **state)
{
    replay_t  *r;

    r = replay_create();
    take(r, 5, 1, 1);
    take(r, 4, 1, 1);       /* clock set back once: accepted */
    take(r, 3, 1, 0);

    assert_int_equal(replay_take(r, "a", 3, 1, S + REPLAY_SILENCE_US - 1), 0);
    assert_int_equal(replay_take(r, "a", 3, 1, S + REPLAY_SILENCE_US), 1);
    assert_int_equal(replay_take(r, "a", 3, 1, S + REPLAY_SILENCE_US), 0);
    assert_int_equal(replay_take(r, "a", 5, 1, S + REPLAY_SILENCE_US), 0);
    assert_int_equal(replay_take(r, "a", 2, 1, S + REPLAY_SILENCE_US), 0);
    replay_destroy(r);
}


static void
senders_are_apart_and_the_longest_silent_makes_room(void **state)
{
    char       id[16];
    size_t     i;
    replay_t  *r;

    r = replay_create();

    for (i = 0; i < REPLAY_MAX_SENDERS; i++) {
        snprintf(id, sizeof(id), "m%zu", i);
        assert_int_equal(replay_take(r, id, 5, 1, S + i), 1);
    }

    assert_int_equal(replay_count(r), REPLAY_MAX_SENDERS);
    assert_int_equal(replay_take(r, "m0", 5, 2, 2 * S), 1);

    assert_int_equal(replay_take(r, "x", 5, 1, 2 * S), 1);
    assert_int_equal(replay_count(r), REPLAY_MAX_SENDERS);
    assert_int_equal(replay_take(r, "m0", 5, 2, 2 * S), 0);
    assert_int_equal(replay_take(r, "m2", 5, 1, 2 * S), 0);
    assert_int_equal(replay_take(r, "m1", 5, 1, 2 * S), 1);
    replay_destroy(r);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(each_number_is_had_once_in_any_order),
        cmocka_unit_test(random_numbers_are_had_as_a_set_says),
        cmocka_unit_test(restarted_sender_counts_anew_and_its_past_is_over),
        cmocka_unit_test(lower_epoch_is_let_in_after_silence_alone),
        cmocka_unit_test(senders_are_apart_and_the_longest_silent_makes_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
