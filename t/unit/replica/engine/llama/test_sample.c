
/* How the next token is chosen. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "replica/engine/llama/sample.h"


#define N  6

static const float  logits[N] = { 1, 3, 2, 3, -1, 0 };


static sample_params_t
plain(float temperature)
{
    sample_params_t  p;

    memset(&p, 0, sizeof(p));
    p.temperature = temperature;
    p.top_p = 1;
    p.repeat_penalty = 1;
    p.seed = 42;

    return p;
}


static uint32_t
draw(const sample_params_t *p, const uint32_t *before, size_t nbefore,
    uint64_t position)
{
    uint32_t        id;
    sample_room_t   room;
    sample_input_t  input;

    memset(&input, 0, sizeof(input));
    input.logits = logits;
    input.before = before;
    input.nbefore = nbefore;
    input.position = position;

    assert_int_equal(sample_room_init(&room, N), 0);
    id = sample_token(p, &room, &input);
    assert_int_equal(id, sample_token(p, &room, &input));
    sample_room_done(&room);

    return id;
}


/* Counts how often each token comes in n draws. */
static void
count(const sample_params_t *p, unsigned n, unsigned counts[N])
{
    unsigned  i;

    memset(counts, 0, N * sizeof(counts[0]));

    for (i = 0; i < n; i++) {
        counts[draw(p, NULL, 0, i)]++;
    }
}


static void
test_greedy_takes_the_first_of_the_largest(void **state)
{
    sample_params_t  p = plain(0);

    assert_int_equal(draw(&p, NULL, 0, 0), 1);
}


static void
test_draws_follow_the_probabilities(void **state)
{
    double           sum;
    unsigned         i, counts[N];
    sample_params_t  p = plain(1);

    for (sum = 0, i = 0; i < N; i++) {
        sum += exp(logits[i]);
    }

    count(&p, 20000, counts);

    for (i = 0; i < N; i++) {
        assert_true(fabs(counts[i] / 20000. - exp(logits[i]) / sum) < .015);
    }
}


static void
test_the_draw_depends_on_seed_and_position_alone(void **state)
{
    unsigned         i, equal;
    sample_params_t  p = plain(1), other = plain(1);

    other.seed = 43;

    for (equal = 0, i = 0; i < 200; i++) {
        assert_int_equal(draw(&p, NULL, 0, i), draw(&p, NULL, 0, i));
        equal += draw(&p, NULL, 0, i) == draw(&other, NULL, 0, i);
    }

    assert_true(equal > 0 && equal < 150);
}


static void
test_tails_are_cut(void **state)
{
    unsigned         counts[N];
    sample_params_t  p = plain(1);

    p.top_k = 3;
    count(&p, 2000, counts);
    assert_true(counts[1] > 0 && counts[3] > 0 && counts[2] > 0);
    assert_int_equal(counts[0] + counts[4] + counts[5], 0);

    p.top_k = 1;                /* of two equally likely ones the first */
    count(&p, 100, counts);
    assert_int_equal(counts[1], 100);

    p = plain(1);
    p.top_p = .7f;              /* two tokens have .75 of all */
    count(&p, 2000, counts);
    assert_int_equal(counts[1] + counts[3], 2000);
    assert_true(counts[3] > 800);

    p.top_p = 0;                /* the likeliest always stays */
    count(&p, 100, counts);
    assert_int_equal(counts[1], 100);

    p = plain(1);
    p.min_p = .2f;              /* e^-1 of the best: .37; e^-2: .14 */
    count(&p, 2000, counts);
    assert_true(counts[2] > 0);
    assert_int_equal(counts[0] + counts[4] + counts[5], 0);
}


static void
test_temperature_flattens(void **state)
{
    unsigned         cold[N], hot[N];
    sample_params_t  p = plain(.2f);

    count(&p, 2000, cold);
    p.temperature = 5;
    count(&p, 2000, hot);
    assert_true(cold[4] == 0 && hot[4] > 100);
}


static void
test_penalties_look_at_the_text(void **state)
{
    sample_params_t        p = plain(0);
    static const uint32_t  before[] = { 1, 1, 3, 5 };

    p.presence_penalty = 1.5f;
    assert_int_equal(draw(&p, before, 1, 0), 3);
    assert_int_equal(draw(&p, before, 4, 0), 2);

    p = plain(0);
    p.frequency_penalty = .4f;  /* twice: 2.2; once: 2.6 */
    assert_int_equal(draw(&p, before, 4, 0), 3);

    p = plain(0);
    p.repeat_penalty = 2;       /* however often it came */
    assert_int_equal(draw(&p, before, 4, 0), 2);
}


static void
test_bias_and_bans(void **state)
{
    sample_room_t          room;
    sample_input_t         input;
    sample_params_t        p = plain(0);
    sample_bias_t          bias[] = { { 4, 10 }, { 99, 100 } };
    static const uint32_t  banned[] = { 4, 1 };

    p.bias = bias;
    p.nbias = 2;
    assert_int_equal(draw(&p, NULL, 0, 0), 4);

    memset(&input, 0, sizeof(input));
    input.logits = logits;
    input.banned = banned;
    input.nbanned = 2;
    assert_int_equal(sample_room_init(&room, N), 0);
    assert_int_equal(sample_token(&p, &room, &input), 3);
    p.temperature = 100;

    for (input.position = 0; input.position < 500; input.position++) {
        assert_int_not_equal(sample_token(&p, &room, &input), 4);
    }

    sample_room_done(&room);
}


static void
test_what_is_no_number_never_comes(void **state)
{
    sample_room_t    room;
    sample_input_t   input;
    sample_params_t  p = plain(1);
    float            bad[N] = { NAN, -INFINITY, 1, NAN, 1, -INFINITY };

    memset(&input, 0, sizeof(input));
    input.logits = bad;
    assert_int_equal(sample_room_init(&room, N), 0);

    for (input.position = 0; input.position < 200; input.position++) {
        assert_int_equal(sample_token(&p, &room, &input) % 2, 0);
        assert_int_not_equal(sample_token(&p, &room, &input), 0);
    }

    sample_room_done(&room);
}


static void
test_logprobs_are_the_model_s_own(void **state)
{
    double             sum;
    unsigned           i;
    sample_room_t      room;
    sample_params_t    p = plain(7);
    sample_logprobs_t  out;

    for (sum = 0, i = 0; i < N; i++) {
        sum += exp(logits[i]);
    }

    p.top = 3;
    p.presence_penalty = 2;
    assert_int_equal(sample_room_init(&room, N), 0);
    sample_logprobs(&p, &room, logits, 5, &out);
    sample_room_done(&room);

    assert_float_equal(out.logprob, -log(sum), 1e-5);
    assert_int_equal(out.ntop, 3);
    assert_int_equal(out.top[0].id, 1);
    assert_int_equal(out.top[1].id, 3);
    assert_int_equal(out.top[2].id, 2);
    assert_float_equal(out.top[2].logprob, 2 - log(sum), 1e-5);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_greedy_takes_the_first_of_the_largest),
        cmocka_unit_test(test_draws_follow_the_probabilities),
        cmocka_unit_test(test_the_draw_depends_on_seed_and_position_alone),
        cmocka_unit_test(test_tails_are_cut),
        cmocka_unit_test(test_temperature_flattens),
        cmocka_unit_test(test_penalties_look_at_the_text),
        cmocka_unit_test(test_bias_and_bans),
        cmocka_unit_test(test_what_is_no_number_never_comes),
        cmocka_unit_test(test_logprobs_are_the_model_s_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
