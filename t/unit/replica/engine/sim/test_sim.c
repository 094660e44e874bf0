
/* The simulated engine's pace and the heap of its streams, on made-up time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/sim_token.h"
#include "replica/engine/engine.h"
#include "replica/engine/sim/due.h"
#include "replica/engine/sim/faults.h"


#define MS  1000ULL


static uint64_t
hash(const char *prompt)
{
    return sim_token_hash((const uint8_t *) prompt, strlen(prompt));
}


static faults_t
faults(void)
{
    faults_t  f;

    memset(&f, 0, sizeof(f));
    f.token_delay_ms = 50;
    f.gate = FAULTS_NO_GATE;

    return f;
}


/*
 * Golden: every replica of every version must generate these words, since
 * other versions may be in the same fleet during an update.
 */
static void
tokens_are_what_they_always_were(void **state)
{
    char    text[512], token[SIM_TOKEN_BYTES];
    size_t  len;
    int     i;

    assert_true(hash("") == 0xcbf29ce484222325ULL);
    assert_true(hash("foobar") == 0x85944171f73967e8ULL);
    assert_true(sim_token_hash((const uint8_t *) "a\0b", 3)
                != sim_token_hash((const uint8_t *) "a\0c", 3));

    for (len = 0, i = 0; i < 20; i++) {
        len += sim_token(hash("hello"), i, token);
        strcpy(text + len - strlen(token), token);
    }

    assert_string_equal(text,
        " pipoto zumu hujivum ziku hasepus tosor havat tafuto papu zovora "
        "salabel rohut sigoga digupi higo jefi kahur lujon bukoka temul");

    (void) sim_token(hash("hello"), INT32_MAX, token);
    assert_string_equal(token, " jifagos");
}


static void
neighbouring_tokens_differ_and_are_words(void **state)
{
    int          i, p;
    char         prompt[32], token[SIM_TOKEN_BYTES];
    char         last[SIM_TOKEN_BYTES];
    size_t       len;
    const char  *c;

    for (p = 0; p < 20; p++) {
        snprintf(prompt, sizeof(prompt), "prompt %d", p);
        strcpy(last, "");

        for (i = 0; i < 5000; i++) {
            len = sim_token(hash(prompt), i, token);
            assert_int_equal(len, strlen(token));
            assert_in_range(len, 5, 8);
            assert_int_equal(token[0], ' ');

            for (c = token + 1; *c != '\0'; c++) {
                assert_in_range(*c, 'a', 'z');
            }

            assert_string_not_equal(token, last);
            strcpy(last, token);
        }
    }
}


/* A mix-up of streams has to be noticed: few words may coincide by chance. */
static void
different_prompts_say_different_things(void **state)
{
    int   i, same;
    char  a[SIM_TOKEN_BYTES], b[SIM_TOKEN_BYTES];

    same = 0;

    for (i = 0; i < 10000; i++) {
        (void) sim_token(hash("one"), i, a);
        (void) sim_token(hash("two"), i, b);
        same += (strcmp(a, b) == 0);
    }

    assert_true(same < 20);
}


static void
requests_fail_by_chance_or_all_of_them(void **state)
{
    faults_t  f;

    f = faults();
    assert_false(faults_reject(&f, 0));

    f.error_rate = 0.25;
    assert_true(faults_reject(&f, 0.2499));
    assert_false(faults_reject(&f, 0.25));

    f.error_rate = 1;
    assert_true(faults_reject(&f, 0.999999));

    f.error_rate = 0;
    f.reject_all = 1;
    assert_true(faults_reject(&f, 0.999999));
}


static void
the_first_token_has_its_own_delay_where_one_is_set(void **state)
{
    faults_t  f;

    f = faults();
    assert_int_equal(faults_delay_us(&f, 1), 50 * MS);

    f.first_token_delay_ms = 200;
    assert_int_equal(faults_delay_us(&f, 1), 200 * MS);
    assert_int_equal(faults_delay_us(&f, 0), 50 * MS);

    f.token_delay_ms = 0;
    assert_int_equal(faults_delay_us(&f, 0), 0);
}


static void
a_schedule_with_every_token_late_does_not_drift(void **state)
{
    int       i;
    uint64_t  due_us, now_us;

    due_us = 50 * MS;

    for (i = 0; i < 10000; i++) {
        now_us = due_us + (uint64_t) (i * 7919 % 49999);
        due_us = faults_pace_us(due_us, now_us, 50 * MS) + 50 * MS;
    }

    assert_int_equal(due_us, 10001 * 50 * MS);
}


static void
a_stall_is_not_followed_by_a_burst(void **state)
{
    uint64_t  due_us, now_us;

    now_us = 1000 * MS;

    /* The token is late by just less than the delay, then by the delay. */

    due_us = faults_pace_us(now_us - 50 * MS + 1, now_us, 50 * MS) + 50 * MS;
    assert_int_equal(due_us, now_us + 1);

    due_us = faults_pace_us(now_us - 50 * MS, now_us, 50 * MS) + 50 * MS;
    assert_int_equal(due_us, now_us + 50 * MS);

    due_us = faults_pace_us(1, now_us, 50 * MS) + 50 * MS;
    assert_int_equal(due_us, now_us + 50 * MS);

    /* The delay is shorter than the usual lateness of a loop. */

    due_us = faults_pace_us(now_us - 5 * MS, now_us, 1 * MS);
    assert_int_equal(due_us, now_us - 5 * MS);
    due_us = faults_pace_us(now_us - 20 * MS, now_us, 1 * MS);
    assert_int_equal(due_us, now_us);

    /* Without a delay each stream is due now. */

    assert_int_equal(faults_pace_us(5, now_us, 0), now_us);
}


static void
faults_have_bounds_and_death_its_count(void **state)
{
    faults_t  f;

    f = faults();
    f.error_rate = 1;
    f.token_delay_ms = ENGINE_DELAY_MAX_MS;
    f.first_token_delay_ms = ENGINE_DELAY_MAX_MS;
    f.die_after_tokens = INT32_MAX;
    assert_null(faults_error(&f));

    f.error_rate = 1.0001;
    assert_string_equal(faults_error(&f), "error_rate");
    f.error_rate = 0.0 / 0.0;
    assert_string_equal(faults_error(&f), "error_rate");
    f.error_rate = 0;
    f.token_delay_ms++;
    assert_string_equal(faults_error(&f), "token_delay_ms");
    f.token_delay_ms = 0;
    f.first_token_delay_ms++;
    assert_string_equal(faults_error(&f), "first_token_delay_ms");
    f.first_token_delay_ms = 0;
    f.die_after_tokens = -1;
    assert_string_equal(faults_error(&f), "die_after_tokens");
    f.die_after_tokens = 0;
    f.gate = FAULTS_NO_GATE - 1;
    assert_string_equal(faults_error(&f), "gate");

    f.die_after_tokens = 0;
    assert_false(faults_kill(&f, INT32_MAX));
    f.die_after_tokens = 3;
    assert_false(faults_kill(&f, 2));
    assert_true(faults_kill(&f, 3));
}


static void
a_gate_holds_its_token_and_all_later_ones(void **state)
{
    faults_t  f;

    f = faults();
    assert_false(faults_hold(&f, 0));
    assert_false(faults_hold(&f, INT32_MAX));

    f.gate = 0;
    assert_true(faults_hold(&f, 0));
    f.gate = 3;
    assert_false(faults_hold(&f, 2));
    assert_true(faults_hold(&f, 3));
    assert_true(faults_hold(&f, INT32_MAX));

    f.stall = 1;
    assert_true(faults_hold(&f, 0));
    f.gate = FAULTS_NO_GATE;
    assert_true(faults_hold(&f, 0));
}


/* The heap compared with a linear search, over random operations. */
static void
the_heap_always_has_the_earliest_first(void **state)
{
    int          i;
    size_t       j, k;
    uint64_t     least;
    due_heap_t   heap;
    due_item_t   items[200];
    char         is_in[200];

    memset(&heap, 0, sizeof(heap));
    memset(is_in, 0, sizeof(is_in));
    srandom(7);

    for (i = 0; i < 50000; i++) {
        j = (size_t) random() % 200;

        if (!is_in[j]) {
            items[j].at_us = (uint64_t) random() % 1000;
            assert_int_equal(due_push(&heap, &items[j]), 0);
            is_in[j] = 1;

        } else if (random() % 2) {
            due_move(&heap, &items[j], (uint64_t) random() % 1000);

        } else {
            due_remove(&heap, &items[j]);
            is_in[j] = 0;
        }

        least = DUE_NEVER;

        for (k = 0; k < 200; k++) {
            if (is_in[k] && items[k].at_us < least) {
                least = items[k].at_us;
            }
        }

        assert_true(heap.n == 0 ? least == DUE_NEVER
                                : due_first(&heap)->at_us == least);
    }

    due_done(&heap);
    assert_null(due_first(&heap));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(tokens_are_what_they_always_were),
        cmocka_unit_test(neighbouring_tokens_differ_and_are_words),
        cmocka_unit_test(different_prompts_say_different_things),
        cmocka_unit_test(requests_fail_by_chance_or_all_of_them),
        cmocka_unit_test(the_first_token_has_its_own_delay_where_one_is_set),
        cmocka_unit_test(a_schedule_with_every_token_late_does_not_drift),
        cmocka_unit_test(a_stall_is_not_followed_by_a_burst),
        cmocka_unit_test(faults_have_bounds_and_death_its_count),
        cmocka_unit_test(a_gate_holds_its_token_and_all_later_ones),
        cmocka_unit_test(the_heap_always_has_the_earliest_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
