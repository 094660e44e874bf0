
/*
 * Steps of one replica, added up by hand: chunks, budgets, preemption, caps,
 * deadlines, disaggregation, faults.
 */

#include "t/unit/sim/model/scene.h"


static void
a_request_takes_its_prompt_and_a_step_a_token(void **state)
{
    scene_t           s;
    model_request_t  *a;

    scene_init(&s, 100);
    scene_start(&s, 0);
    a = scene_arrive(&s, scene_request(&s, 20, 4, 0), 50);
    scene_run(&s, MODEL_NEVER - 1);

    /* 1000 + 20 x 10, then three steps of 1100 */
    assert_int_equal(a->ttft_us, 1200);
    assert_int_equal(a->e2e_us, 1200 + 3 * 1100);
    assert_int_equal(a->itl_count, 3);
    assert_int_equal(s.ends[0], MODEL_COMPLETED);
    assert_int_equal(s.end_us[0], 50 + 4500);
    assert_int_equal(model_replica_ended(s.replica), 4550);
    assert_int_equal(scene_counters(&s).output_tokens, 4);
    assert_int_equal(scene_facts(&s).free_blocks, 100);
    scene_done(&s);
}


/* A request is gone when its last step begins, so another step may begin. */
static void
a_request_ends_at_the_start_of_its_last_step(void **state)
{
    scene_t           s;
    model_request_t  *b;

    scene_init(&s, 100);
    scene_start(&s, 0);
    scene_arrive(&s, scene_request(&s, 20, 1, 0), 0);
    scene_run(&s, 0);
    assert_int_equal(s.nended, 1);
    assert_int_equal(s.end_us[0], 1200);

    b = scene_arrive(&s, scene_request(&s, 10, 1, 0), 10);
    scene_run(&s, 10);
    assert_int_equal(b->ttft_us, 1100);
    scene_done(&s);
}


/* An arrival is an event, even if the request is not queued at the end. */
static void
the_last_event_may_be_an_arrival(void **state)
{
    scene_t  s;

    scene_init(&s, 100);
    s.config.latency.options.alpha[0] = 500;
    scene_start(&s, 0);
    scene_arrive(&s, scene_request(&s, 20, 1, 0), 70);
    assert_int_equal(model_replica_next(s.replica), 570);
    assert_int_equal(model_replica_ended(s.replica), 70);
    scene_done(&s);
}


static void
prompts_are_computed_in_chunks(void **state)
{
    scene_t           s;
    model_request_t  *a, *b, *c;

    scene_init(&s, 100);
    s.config.long_prefill_threshold = 40;
    scene_start(&s, 0);
    a = scene_arrive(&s, scene_request(&s, 100, 2, 0), 0);
    b = scene_arrive(&s, scene_request(&s, 50, 2, 0), 0);
    c = scene_arrive(&s, scene_request(&s, 30, 2, 0), 0);
    scene_run(&s, MODEL_NEVER - 1);

    /*
     * Of 100 tokens a step: a 40, b 40, c 20 until 2000; a 40, b 10, c 10 until
     * 3600; a 20, b and c one each until 5000; a one until 6100.
     */
    assert_int_equal(b->ttft_us, 3600);
    assert_int_equal(c->ttft_us, 3600);
    assert_int_equal(a->ttft_us, 3600 + 1400);
    assert_int_equal(b->e2e_us, 5000);
    assert_int_equal(a->e2e_us, 6100);
    scene_done(&s);
}


/* The prompt before it takes the rest of the budget, so it gets no token. */
static void
a_request_behind_the_budget_waits(void **state)
{
    scene_t           s;
    model_request_t  *a, *b;

    scene_init(&s, 100);
    s.config.max_batched_tokens = 20;
    s.config.long_prefill_threshold = 20;
    scene_start(&s, 1);
    a = scene_request(&s, 60, 1, 0);
    b = scene_request(&s, 8, 3, 8);
    scene_arrive(&s, scene_request(&s, 8, 1, 8), 0);
    scene_run(&s, 0);                   /* b's prompt is cached now */

    scene_arrive(&s, a, 2000);
    scene_run(&s, 2000);
    assert_int_equal(scene_facts(&s).batch_size, 1);
    s.config.long_prefill_threshold = 12;
    scene_arrive(&s, b, 2100);
    scene_run(&s, 3200);                /* a 12, b none: its prompt is there */
    assert_int_equal(b->has_first_token, 1);
    s.config.long_prefill_threshold = 20;
    scene_run(&s, 4320);                /* a takes 20, b waits */
    assert_int_equal(s.tokens[1], 1);
    scene_run(&s, MODEL_NEVER - 1);
    assert_int_equal(b->itl_count, 2);

    /* 3200 + 1120 | a 20: 1200, not b's | a 8, b 1: 1180 | b: 1100 */
    assert_int_equal(b->ttft_us, 4320 - 2100);
    assert_int_equal(b->e2e_us, 4320 - 2100 + 1180 + 1100);
    scene_done(&s);
}


static void
a_cached_prompt_takes_no_time(void **state)
{
    scene_t           s;
    model_request_t  *b, *c;

    scene_init(&s, 100);
    scene_start(&s, 0);
    scene_arrive(&s, scene_request(&s, 16, 1, 16), 0);
    scene_run(&s, 0);

    b = scene_arrive(&s, scene_request(&s, 18, 1, 16), 5000);
    scene_run(&s, 5000);
    assert_int_equal(b->ttft_us, 1020);
    assert_int_equal(scene_counters(&s).hits, 4);
    assert_int_equal(scene_counters(&s).prompt_blocks, 8);
    assert_int_equal(scene_counters(&s).prompt_hits, 4);

    /* wholly cached: nothing is computed, and no block is held */
    c = scene_arrive(&s, scene_request(&s, 16, 3, 16), 9000);
    scene_run(&s, 9000);
    assert_int_equal(c->ttft_us, 1000);
    assert_int_equal(scene_facts(&s).free_blocks, 100);
    scene_run(&s, 10000);
    assert_int_equal(scene_facts(&s).free_blocks, 99);
    scene_run(&s, MODEL_NEVER - 1);
    assert_int_equal(c->e2e_us, 1000 + 2 * 1100);
    assert_int_equal(scene_counters(&s).prompt_blocks, 12);
    assert_int_equal(scene_counters(&s).prompt_hits, 8);
    scene_done(&s);
}


/* Two requests grow until the cache is full: the later one starts anew. */
static void
the_last_one_is_preempted(void **state)
{
    scene_t           s;
    model_request_t  *a, *b;

    scene_init(&s, 4);
    scene_start(&s, 0);
    a = scene_arrive(&s, scene_request(&s, 8, 4, 0), 0);
    b = scene_arrive(&s, scene_request(&s, 7, 3, 0), 0);
    scene_run(&s, 0);
    assert_int_equal(scene_facts(&s).free_blocks, 0);

    scene_run(&s, 1150);                /* a needs a fifth block */
    assert_int_equal(s.preempted[1], 1);
    assert_int_equal(b->state, MODEL_REQUEST_QUEUED);
    assert_int_equal(scene_facts(&s).batch_size, 1);

    scene_run(&s, MODEL_NEVER - 1);
    assert_int_equal(a->e2e_us, 1150 + 3 * 1100);
    assert_int_equal(a->preemptions, 0);
    assert_int_equal(b->preemptions, 1);
    assert_int_equal(scene_counters(&s).preemptions, 1);

    /* b waits for blocks until a's last step, and its first 4 are cached */
    assert_int_equal(b->scheduled_us, 1150 + 3 * 1100);
    assert_int_equal(b->ttft_us, 1150 + 3 * 1100 + 1030);
    scene_done(&s);
}


static void
the_least_urgent_one_is_preempted(void **state)
{
    scene_t           s;
    model_request_t  *a, *b;

    scene_init(&s, 4);
    s.config.preemption = MODEL_PREEMPT_PRIORITY;
    scene_start(&s, 0);
    a = scene_request(&s, 7, 9, 0);
    b = scene_request(&s, 8, 2, 0);
    a->priority = 7;
    scene_arrive(&s, a, 0);
    scene_arrive(&s, b, 0);
    scene_run(&s, 1150);                /* b, behind a, needs a block */

    assert_int_equal(s.preempted[0], 1);
    assert_int_equal(s.preempted[1], 0);
    assert_int_equal(b->e2e_us, 2250);
    scene_done(&s);
}


/* A request alone preempts itself again and again, and gets no token. */
static void
one_that_outgrows_the_cache_preempts_itself(void **state)
{
    scene_t           s;
    model_request_t  *a;

    scene_init(&s, 2);
    scene_start(&s, 0);
    a = scene_arrive(&s, scene_request(&s, 7, 4, 0), 0);
    scene_run(&s, 20000);
    assert_true(a->preemptions > 3);
    assert_int_equal(s.nended, 0);
    model_replica_remove(s.replica, a);
    scene_check(&s);
    scene_done(&s);
}


static void
a_length_is_capped(void **state)
{
    scene_t           s;
    model_request_t  *a, *b, *c;

    scene_init(&s, 100);
    s.config.max_model_len = 24;
    scene_start(&s, 0);
    a = scene_request(&s, 20, 10, 0);
    a->max_output_tokens = 0;           /* no maximum is given */
    b = scene_request(&s, 20, 5, 0);
    c = scene_request(&s, 24, 1, 0);
    c->max_output_tokens = 0;
    scene_arrive(&s, a, 0);
    scene_arrive(&s, b, 0);
    scene_arrive(&s, c, 0);
    scene_run(&s, MODEL_NEVER - 1);

    assert_int_equal(b->scheduled_us, 0);
    assert_ptr_equal(s.ended[0], b);
    assert_int_equal(s.ends[0], MODEL_UNSERVABLE);
    assert_ptr_equal(s.ended[1], c);
    assert_int_equal(s.ends[1], MODEL_UNSERVABLE);
    assert_ptr_equal(s.ended[2], a);
    assert_int_equal(s.ends[2], MODEL_LENGTH_CAPPED);
    assert_int_equal(a->itl_count, 3);  /* 20 + 3 are 24 - 1 */
    assert_int_equal(scene_counters(&s).unservable, 2);
    assert_int_equal(scene_counters(&s).length_capped, 1);
    scene_done(&s);
}


static void
what_never_fits_is_refused(void **state)
{
    scene_t  s;

    scene_init(&s, 4);
    scene_start(&s, 0);
    scene_arrive(&s, scene_request(&s, 17, 1, 0), 0);
    scene_arrive(&s, scene_request(&s, 16, 1, 0), 0);
    scene_run(&s, MODEL_NEVER - 1);
    assert_int_equal(s.ends[0], MODEL_UNSERVABLE);
    assert_int_equal(s.ends[1], MODEL_COMPLETED);
    assert_int_equal(scene_counters(&s).kv_failures, 1);
    scene_done(&s);
}


static void
deadlines_strike_after_the_step_of_their_time(void **state)
{
    scene_t           s;
    model_request_t  *a, *b, *c, *d;

    scene_init(&s, 100);
    s.config.max_seqs = 2;
    s.config.latency.options.alpha[0] = 10;
    scene_start(&s, 0);
    a = scene_request(&s, 20, 2, 0);
    b = scene_request(&s, 20, 9, 0);
    c = scene_request(&s, 20, 9, 0);
    d = scene_request(&s, 20, 9, 0);
    a->deadline_us = 1410;              /* when its last step begins */
    b->deadline_us = 1500;
    c->deadline_us = 1200;
    d->deadline_us = 10;                /* it is not queued before that */
    scene_arrive(&s, a, 0);
    scene_arrive(&s, b, 0);
    scene_arrive(&s, c, 0);
    scene_arrive(&s, d, 0);
    scene_run(&s, MODEL_NEVER - 1);

    assert_ptr_equal(s.ended[0], d);
    assert_int_equal(s.ends[0], MODEL_PAST_DUE);
    assert_ptr_equal(s.ended[1], c);
    assert_int_equal(s.ends[1], MODEL_TIMED_OUT_QUEUED);
    assert_int_equal(s.end_us[1], 1200);
    assert_ptr_equal(s.ended[2], a);
    assert_int_equal(s.ends[2], MODEL_COMPLETED);
    assert_ptr_equal(s.ended[3], b);
    assert_int_equal(s.ends[3], MODEL_TIMED_OUT_RUNNING);
    assert_int_equal(s.end_us[3], 1500);
    assert_int_equal(scene_counters(&s).timed_out, 3);
    assert_int_equal(scene_facts(&s).free_blocks, 100);
    scene_done(&s);
}


/* The step that was due comes, though no request is left; then others run. */
static void
an_empty_step_does_not_lose_work(void **state)
{
    scene_t           s;
    model_request_t  *a, *b;

    scene_init(&s, 100);
    scene_start(&s, 0);
    a = scene_request(&s, 20, 9, 0);
    a->deadline_us = 100;
    scene_arrive(&s, a, 0);
    scene_run(&s, 100);
    assert_int_equal(s.nended, 1);
    assert_int_equal(model_replica_next(s.replica), 1200);

    b = scene_arrive(&s, scene_request(&s, 20, 1, 0), 300);
    scene_run(&s, MODEL_NEVER - 1);
    assert_int_equal(b->scheduled_us, 1200);

    a = scene_request(&s, 20, 9, 0);
    a->deadline_us = 9100;
    scene_arrive(&s, a, 9000);
    scene_run(&s, MODEL_NEVER - 1);
    assert_int_equal(model_replica_ended(s.replica), 10200);
    b = scene_arrive(&s, scene_request(&s, 20, 1, 0), 20000);
    scene_run(&s, MODEL_NEVER - 1);
    assert_int_equal(b->scheduled_us, 20000);
    scene_done(&s);
}


static void
a_prompt_from_elsewhere_only_decodes(void **state)
{
    scene_t           s;
    model_request_t  *a, *b;

    scene_init(&s, 6);
    scene_start(&s, 0);
    a = scene_request(&s, 16, 3, 0);
    b = scene_request(&s, 12, 3, 0);
    assert_int_equal(model_replica_reserve(s.replica, a), 0);
    assert_int_equal(scene_facts(&s).free_blocks, 2);
    assert_int_equal(model_replica_reserve(s.replica, b), -1);
    assert_int_equal(scene_facts(&s).free_blocks, 2);
    scene_check(&s);

    assert_int_equal(model_replica_arrive_decode(s.replica, a, 500), 0);
    scene_run(&s, MODEL_NEVER - 1);
    assert_int_equal(a->scheduled_us, 500);
    assert_int_equal(a->has_first_token, 0);
    assert_int_equal(a->itl_sum_us, 2 * 1100);
    assert_int_equal(scene_counters(&s).input_tokens, 0);

    /* a request that is not queued gives its blocks back */
    assert_int_equal(model_replica_reserve(s.replica, b), 0);
    model_replica_remove(s.replica, b);
    assert_int_equal(scene_facts(&s).free_blocks, 6);
    scene_check(&s);
    scene_done(&s);
}


/*
 * Request a is preempted for want of blocks, by itself, and starts anew; there
 * are blocks enough for b, which waits behind a.
 */
static model_request_t *
scene_stick(scene_t *s, int64_t deadline_us)
{
    model_request_t  *a, *b;

    scene_init(s, 6);
    s->config.max_seqs = 1;
    scene_start(s, 0);
    a = scene_request(s, 5, 12, 0);             /* 4 blocks */
    b = scene_request(s, 12, 3, 0);             /* 3 */
    b->deadline_us = deadline_us;
    assert_int_equal(model_replica_reserve(s->replica, b), 0);
    scene_arrive(s, a, 0);
    scene_run(s, 0);
    assert_int_equal(model_replica_arrive_decode(s->replica, b, 0), 0);

    return b;
}


static void
a_replica_that_preempts_for_ever_is_stuck(void **state)
{
    scene_t           s;
    uint64_t          before;
    model_request_t  *b;

    b = scene_stick(&s, 0);
    assert_int_equal(model_replica_stuck(s.replica), 0);
    scene_run(&s, 1000000);
    before = model_replica_stuck(s.replica);
    assert_true(before > 1);
    scene_run(&s, 2000000);
    assert_true(model_replica_stuck(s.replica) > before);
    assert_int_equal(s.nended, 0);

    model_replica_remove(s.replica, b);
    assert_int_equal(model_replica_stuck(s.replica), 0);
    scene_run(&s, MODEL_NEVER - 1);
    assert_int_equal(s.nended, 1);
    assert_int_equal(s.ends[0], MODEL_COMPLETED);
    assert_int_equal(model_replica_stuck(s.replica), 0);
    scene_done(&s);
}


static void
a_replica_whose_requests_have_deadlines_is_not_stuck(void **state)
{
    scene_t  s;

    scene_stick(&s, 3000000);
    scene_run(&s, 2999999);
    assert_int_equal(s.nended, 0);
    assert_true(scene_counters(&s).preemptions > 100);
    assert_int_equal(model_replica_stuck(s.replica), 0);
    scene_run(&s, MODEL_NEVER - 1);
    assert_int_equal(s.nended, 2);
    assert_int_equal(s.ends[0], MODEL_TIMED_OUT_QUEUED);
    assert_int_equal(s.ends[1], MODEL_COMPLETED);
    scene_done(&s);
}


static size_t  nlost;

static void
lost(void *data, model_request_t *request)
{
    nlost++;
}


static void
crashes_stalls_and_slows(void **state)
{
    scene_t           s;
    model_request_t  *a;

    scene_init(&s, 100);
    s.config.max_seqs = 1;
    scene_start(&s, 0);
    scene_arrive(&s, scene_request(&s, 20, 9, 20), 0);
    scene_arrive(&s, scene_request(&s, 20, 9, 0), 0);
    scene_run(&s, 1200);
    assert_int_equal(model_replica_tokens(s.replica, &s.requests[0]), 2);
    assert_int_equal(model_replica_step_end(s.replica), 2300);
    scene_arrive(&s, scene_request(&s, 20, 9, 0), 1300);
    model_replica_crash(s.replica, lost, NULL);
    assert_int_equal(nlost, 3);
    assert_int_equal(s.nended, 0);
    assert_int_equal(model_replica_next(s.replica), MODEL_NEVER);
    assert_int_equal(model_replica_cached(s.replica, s.hashes[0], 5), 0);
    scene_check(&s);

    model_replica_stall(s.replica, 5000);
    model_replica_slow(s.replica, 2.5);
    a = scene_arrive(&s, scene_request(&s, 20, 2, 20), 4000);
    scene_run(&s, MODEL_NEVER - 1);
    assert_int_equal(a->ttft_us, 1000 + 3000);
    assert_int_equal(a->e2e_us, 4000 + 2750);
    scene_done(&s);
}


static void
count_gap(void *data, int64_t gap_us, uint64_t count)
{
    uint64_t  *counts = data;

    counts[gap_us == 1100 ? 0 : gap_us == 1200 ? 1 : 2] += count;
}


/* Only gaps of completed requests count, and none before a preemption. */
static void
gaps_are_counted(void **state)
{
    scene_t           s;
    uint64_t          counts[3] = { 0 };
    model_request_t  *c;

    scene_init(&s, 100);
    scene_start(&s, 0);
    scene_arrive(&s, scene_request(&s, 20, 5, 0), 0);
    scene_arrive(&s, scene_request(&s, 20, 3, 0), 0);
    c = scene_request(&s, 20, 9, 0);
    c->deadline_us = 1601;              /* one step with three, no more */
    scene_arrive(&s, c, 0);
    scene_run(&s, MODEL_NEVER - 1);
    model_replica_gaps(s.replica, count_gap, counts);

    /* three: 1300 for two of them; two: 1200; one: two steps of 1100 */
    assert_int_equal(counts[2], 2);
    assert_int_equal(counts[1], 2);
    assert_int_equal(counts[0], 2);
    scene_done(&s);
}


/* A long run keeps each gap once, and how often it came. */
static void
many_steps_are_folded(void **state)
{
    int               i;
    scene_t           s;
    uint64_t          counts[3] = { 0 };
    model_request_t  *a, *b;

    scene_init(&s, 30000);
    s.config.max_model_len = 0;
    scene_start(&s, 0);
    a = scene_arrive(&s, scene_request(&s, 20, 40001, 0), 0);
    b = scene_arrive(&s, scene_request(&s, 20, 20001, 0), 0);

    for (i = 0; i < 4; i++) {           /* some requests come and go */
        scene_arrive(&s, scene_request(&s, 20, 1, 0), 30000000 + i * 9000);
    }

    while (model_replica_next(s.replica) != MODEL_NEVER) {
        assert_int_equal(model_replica_step(s.replica), 0);
    }

    model_replica_gaps(s.replica, count_gap, counts);

    /* 20,000 steps of both, 20,000 of one; prompts lengthen four of them */
    assert_int_equal(a->itl_count + b->itl_count, 60000);
    assert_int_equal(counts[0] + counts[1] + counts[2], 60000);
    assert_int_equal(counts[2], 4);
    assert_int_equal(counts[1], 2 * 20000);
    assert_int_equal(counts[0], 20000 - 4);
    scene_done(&s);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_request_takes_its_prompt_and_a_step_a_token),
        cmocka_unit_test(a_request_ends_at_the_start_of_its_last_step),
        cmocka_unit_test(the_last_event_may_be_an_arrival),
        cmocka_unit_test(prompts_are_computed_in_chunks),
        cmocka_unit_test(a_request_behind_the_budget_waits),
        cmocka_unit_test(a_cached_prompt_takes_no_time),
        cmocka_unit_test(the_last_one_is_preempted),
        cmocka_unit_test(the_least_urgent_one_is_preempted),
        cmocka_unit_test(one_that_outgrows_the_cache_preempts_itself),
        cmocka_unit_test(a_length_is_capped),
        cmocka_unit_test(what_never_fits_is_refused),
        cmocka_unit_test(deadlines_strike_after_the_step_of_their_time),
        cmocka_unit_test(an_empty_step_does_not_lose_work),
        cmocka_unit_test(a_prompt_from_elsewhere_only_decodes),
        cmocka_unit_test(a_replica_that_preempts_for_ever_is_stuck),
        cmocka_unit_test(a_replica_whose_requests_have_deadlines_is_not_stuck),
        cmocka_unit_test(crashes_stalls_and_slows),
        cmocka_unit_test(gaps_are_counted),
        cmocka_unit_test(many_steps_are_folded)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
