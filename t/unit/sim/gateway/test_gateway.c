
/* A workload goes through our own gateway while replicas fail. */

#include "common/rnd.h"
#include "t/unit/sim/gateway/gateway_scene.h"


#define SECOND  1000000
#define SEEDS   60


static void
all_are_served_when_nothing_fails(void **state)
{
    gateway_scene_t  scene;

    gateway_scene_init(&scene, 4);
    gateway_scene_ask(&scene, 400, 5000, 100, 20);
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 400);
    assert_int_equal(scene.counts.attempts, 400);
    assert_int_equal(scene.counts.failovers, 0);
    assert_int_equal(scene.counts.queued, 0);
    gateway_scene_done(&scene);
}


/*
 * A request alone with a prompt of 100 tokens: the first step takes 12 ms, 19
 * more take 10 ms each, and the way there and back takes 100 us each.
 */
static void
one_request_takes_what_the_model_says(void **state)
{
    gateway_scene_t  scene;

    gateway_scene_init(&scene, 1);
    gateway_scene_ask(&scene, 1, 5000, 100, 20);
    gateway_scene_run(&scene);

    assert_int_equal(scene.result.outcomes[0].ttft_us, 12200);
    assert_int_equal(scene.result.outcomes[0].e2e_us, 12200 + 19 * 10000);
    assert_int_equal(scene.result.outcomes[0].itl_count, 19);
    assert_int_equal(scene.result.outcomes[0].itl_sum_us, 190000);
    gateway_scene_done(&scene);
}


static void
same_seed_gives_the_same(void **state)
{
    fleet_outcome_t   *first;
    gateway_scene_t    scene;
    gateway_counts_t   counts;

    gateway_scene_init(&scene, 6);
    gateway_scene_fault(&scene, GATEWAY_CRASH, 0, 1, 0, SECOND)->every_us
        = SECOND;
    gateway_scene_ask(&scene, 600, 5000, 100, 40);
    gateway_scene_run(&scene);

    counts = scene.counts;
    first = calloc(scene.result.n, sizeof(fleet_outcome_t));
    memcpy(first, scene.result.outcomes,
           scene.result.n * sizeof(fleet_outcome_t));

    gateway_scene_run(&scene);
    assert_memory_equal(&counts, &scene.counts, sizeof(counts));
    assert_memory_equal(first, scene.result.outcomes,
                        scene.result.n * sizeof(fleet_outcome_t));
    assert_true(counts.faults > 1);

    free(first);
    gateway_scene_done(&scene);
}


static void
crash_of_two_of_sixteen_loses_no_stream(void **state)
{
    gateway_scene_t  scene;

    gateway_scene_init(&scene, 16);
    gateway_scene_ask(&scene, 3000, 2000, 200, 100);
    gateway_scene_fault(&scene, GATEWAY_CRASH, 3, 2, 3 * SECOND, 0);
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 3000);
    assert_int_equal(scene.counts.lost, 0);
    assert_true(scene.counts.failovers > 20);
    assert_true(scene.counts.resumed_tokens > 0);
    assert_true(scene.counts.failed[LLMGW_CAUSE_RESET] > 20);
    gateway_scene_done(&scene);
}


/*
 * No connection is reset: streams move when gossip declares the machines dead.
 */
static void
machines_that_die_silently_lose_no_stream(void **state)
{
    gateway_scene_t  scene;

    gateway_scene_init(&scene, 16);
    gateway_scene_ask(&scene, 3000, 2000, 200, 100);
    gateway_scene_fault(&scene, GATEWAY_DIE, 3, 2, 3 * SECOND, 0);
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 3000);
    assert_true(scene.counts.failed[LLMGW_CAUSE_MEMBER_DEAD] > 20);
    assert_int_equal(scene.counts.failed[LLMGW_CAUSE_RESET], 0);

    /* if gossip is silent, the streams' timers move them */
    scene.config.gossip.detect_us = 600 * (int64_t) SECOND;
    gateway_scene_run(&scene);
    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 3000);
    assert_true(scene.counts.failed[LLMGW_CAUSE_TOKEN_TIMEOUT] > 20);
    gateway_scene_done(&scene);
}


static void
replica_that_hangs_loses_no_stream(void **state)
{
    gateway_scene_t  scene;

    gateway_scene_init(&scene, 8);
    gateway_scene_ask(&scene, 2000, 3000, 200, 100);
    gateway_scene_fault(&scene, GATEWAY_STALL, 5, 1, 2 * SECOND,
                        20 * (int64_t) SECOND);
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 2000);
    assert_true(scene.counts.failed[LLMGW_CAUSE_TOKEN_TIMEOUT] > 0);
    assert_true(scene.counts.failed[LLMGW_CAUSE_MEMBER_STALLED] > 0);
    gateway_scene_done(&scene);
}


static void
restart_mends_a_replica_that_hangs(void **state)
{
    size_t            i, n;
    gateway_scene_t   scene;

    gateway_scene_init(&scene, 4);
    gateway_scene_ask(&scene, 3000, 5000, 100, 20);
    gateway_scene_fault(&scene, GATEWAY_STALL, 2, 1, SECOND, 0);
    gateway_scene_fault(&scene, GATEWAY_CRASH, 2, 1, 6 * SECOND, SECOND);
    gateway_scene_run(&scene);
    n = 0;

    for (i = 0; i < scene.result.n; i++) {
        n += scene.result.outcomes[i].replica == 2
             && scene.result.outcomes[i].route_us > 8 * SECOND;
    }

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 3000);
    assert_true(n > 100);
    gateway_scene_done(&scene);
}


static void
circuit_opens_on_a_replica_that_is_too_slow(void **state)
{
    gateway_scene_t  scene;

    gateway_scene_init(&scene, 4);
    gateway_scene_ask(&scene, 1000, 5000, 200, 20);
    scene.config.first_token_us = SECOND / 2;
    scene.config.token_us = SECOND / 2;
    gateway_scene_fault(&scene, GATEWAY_SLOW, 1, 1, 0, 3 * SECOND)->factor
        = 1000;
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 1000);
    assert_true(scene.counts.circuits_opened > 0);
    gateway_scene_done(&scene);
}


/*
 * Two places, each held by a request for 210 ms or so; one comes every 20 ms.
 */
static void
queue_is_first_in_first_out_within_exact_capacity(void **state)
{
    size_t            i;
    int64_t           before;
    gateway_scene_t   scene;

    gateway_scene_init(&scene, 2);
    scene.config.capacity = 1;
    gateway_scene_ask(&scene, 60, 20000, 16, 20);
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 60);
    assert_int_equal(scene.counts.capacity_peak, 1);
    assert_true(scene.counts.queued >= 50);
    assert_true(scene.counts.queue_peak > 10);
    before = 0;

    for (i = 0; i < 60; i++) {
        assert_true(scene.result.outcomes[i].route_us >= before);
        before = scene.result.outcomes[i].route_us;
    }

    gateway_scene_done(&scene);
}


static void
queue_refuses_when_it_is_full_and_when_it_takes_too_long(void **state)
{
    gateway_scene_t  scene;

    gateway_scene_init(&scene, 1);
    scene.config.capacity = 1;
    scene.config.queue_size = 5;
    gateway_scene_ask(&scene, 20, 1000, 16, 20);
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 6);
    assert_int_equal(gateway_scene_count(&scene, FLEET_GATEWAY_REJECTED), 14);
    assert_int_equal(scene.counts.queue_peak, 5);

    /* each takes 200 ms: the third one in the queue would start after 600 */
    scene.config.queue_us = 500000;
    gateway_scene_run(&scene);
    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 3);
    assert_int_equal(gateway_scene_count(&scene, FLEET_GATEWAY_EXPIRED), 3);
    gateway_scene_done(&scene);
}


static void
hedges_are_sent_within_their_budget(void **state)
{
    gateway_scene_t  scene;

    gateway_scene_init(&scene, 8);
    gateway_scene_ask(&scene, 1000, 5000, 200, 20);
    gateway_scene_fault(&scene, GATEWAY_SLOW, 2, 2, 0, 0)->factor = 30;
    scene.config.hedge_us = 50000;
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 1000);
    assert_true(scene.counts.hedges > 10);
    assert_true(scene.counts.hedges <= 50);
    assert_true(scene.counts.hedges_won > 5);
    assert_true(scene.counts.hedges_won <= scene.counts.hedges);
    gateway_scene_done(&scene);
}


static void
drain_lets_streams_end_and_takes_no_new_ones(void **state)
{
    size_t            i;
    gateway_scene_t   scene;

    gateway_scene_init(&scene, 4);
    gateway_scene_ask(&scene, 1000, 5000, 200, 50);
    gateway_scene_fault(&scene, GATEWAY_DRAIN, 1, 1, 2 * SECOND, 0);
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 1000);
    assert_int_equal(scene.counts.failovers, 0);
    assert_int_equal(scene.counts.attempts,
                     1000 + scene.counts.turned_away);

    for (i = 0; i < 1000; i++) {
        assert_false(scene.result.outcomes[i].route_us > 2100000
                     && scene.result.outcomes[i].replica == 1);
    }

    gateway_scene_done(&scene);
}


static void
rolling_update_loses_no_stream(void **state)
{
    gateway_scene_t  scene;

    gateway_scene_init(&scene, 6);
    gateway_scene_ask(&scene, 4000, 5000, 200, 100);
    scene.config.update = (gateway_update_t) {
        .is_on = 1, .at_us = SECOND, .drain_us = SECOND / 2,
        .restart_us = SECOND, .parallel = 2
    };
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 4000);
    assert_int_equal(scene.counts.updated, 6);
    assert_int_equal(scene.counts.lost, 0);

    /* half a second is less than a stream takes: some had to move */
    assert_true(scene.counts.failovers > 0);
    gateway_scene_done(&scene);
}


static void
several_gateways_share_the_replicas(void **state)
{
    gateway_scene_t  scene;

    gateway_scene_init(&scene, 4);
    scene.config.gateways = 3;
    scene.config.capacity = 8;
    scene.config.gossip.delay_us = 50000;
    gateway_scene_ask(&scene, 1500, 4000, 100, 20);
    gateway_scene_fault(&scene, GATEWAY_CRASH, 0, 1, 2 * SECOND, SECOND);
    gateway_scene_run(&scene);

    /* each gateway counts its own: the replica refuses what is too much */
    assert_int_equal(scene.counts.capacity_peak, 8);
    assert_true(scene.counts.turned_away > 0);
    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 1500);
    assert_int_equal(scene.counts.news_max_us, 50000);
    gateway_scene_done(&scene);
}


/* Agents ping each other over datagrams, some of which are lost. */
static void
news_come_by_gossip(void **state)
{
    gateway_scene_t  scene;

    gateway_scene_init(&scene, 8);
    scene.config.gateways = 3;
    scene.config.gossip = (gateway_gossip_t) {
        .kind = GATEWAY_GOSSIP_SWIM, .delay_us = 500, .jitter_us = 1000,
        .loss_permille = 50, .period_us = 500000
    };
    gateway_scene_ask(&scene, 4000, 4000, 100, 50);
    gateway_scene_fault(&scene, GATEWAY_CRASH, 0, 1, 2 * SECOND, SECOND);
    gateway_scene_fault(&scene, GATEWAY_DRAIN, 1, 1, 2 * SECOND, SECOND);
    gateway_scene_run(&scene);

    /* an agent's report reaches gateways at once */
    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 4000);
    assert_in_range(scene.counts.news_max_us, 500, SECOND);
    assert_int_equal(scene.counts.failed[LLMGW_CAUSE_MEMBER_DEAD], 0);

    /* the death of a machine is noticed by pings, and by nothing else */
    gateway_scene_fault(&scene, GATEWAY_DIE, 2, 2, 4 * SECOND, 0);
    gateway_scene_run(&scene);
    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 4000);
    assert_in_range(scene.counts.news_max_us, 2 * SECOND, 9 * SECOND);
    assert_true(scene.counts.failed[LLMGW_CAUSE_MEMBER_DEAD] > 0);
    gateway_scene_done(&scene);
}


/*
 * Much is lost, so members that are well are suspected; that does not count as
 * news of the crash, which was long before.
 */
static void
false_suspicions_are_no_news(void **state)
{
    gateway_scene_t  scene;

    gateway_scene_init(&scene, 8);
    scene.config.gossip = (gateway_gossip_t) {
        .kind = GATEWAY_GOSSIP_SWIM, .delay_us = 500, .jitter_us = 1000,
        .loss_permille = 400, .period_us = 500000
    };
    gateway_scene_ask(&scene, 3000, 20000, 100, 20);
    gateway_scene_fault(&scene, GATEWAY_CRASH, 0, 1, SECOND, SECOND);
    gateway_scene_run(&scene);
    assert_in_range(scene.counts.news_max_us, 500, 5 * SECOND);
    gateway_scene_done(&scene);
}


/* The only replica dies again and again while it serves the stream. */
static void
stream_has_as_many_failovers_as_in_nginx(void **state)
{
    gateway_scene_t  scene;

    gateway_scene_init(&scene, 1);
    scene.config.breaker.enabled = 0;
    gateway_scene_ask(&scene, 1, 1000, 100, 4000);

    gateway_scene_fault(&scene, GATEWAY_CRASH, 0, 1, SECOND, SECOND / 100)
        ->every_us = 2 * SECOND;
    gateway_scene_run(&scene);
    assert_int_equal(scene.counts.failovers, 8);
    assert_int_equal(gateway_scene_count(&scene, FLEET_LOST), 1);
    gateway_scene_done(&scene);
}


static void
note_progress(void *data, int64_t clock_us, size_t ended)
{
    size_t  *last = data;

    assert_true(ended > *last);
    *last = ended;
}


static void
progress_is_shown_while_it_runs(void **state)
{
    size_t           last = 0;
    fleet_watch_t    watch = { .progress = note_progress, .data = &last };
    gateway_scene_t  scene;

    gateway_scene_init(&scene, 4);
    scene.watch = &watch;
    gateway_scene_ask(&scene, 10000, 5000, 100, 20);
    gateway_scene_run(&scene);
    assert_in_range(last, 1000, 10000);
    gateway_scene_done(&scene);
}


static void
nobody_left_is_said_so(void **state)
{
    gateway_scene_t  scene;

    gateway_scene_init(&scene, 2);
    gateway_scene_ask(&scene, 50, 10000, 100, 200);
    gateway_scene_fault(&scene, GATEWAY_CRASH, 0, 2, 200000, 0);
    gateway_scene_run(&scene);

    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 0);
    assert_true(gateway_scene_count(&scene, FLEET_LOST) >= 15);
    assert_int_equal(gateway_scene_count(&scene, FLEET_LOST)
                     + gateway_scene_count(&scene, FLEET_REJECTED_ROUTING),
                     50);
    assert_int_equal(gateway_scene_count(&scene, FLEET_LOST),
                     scene.counts.lost);
    gateway_scene_done(&scene);
}


/* Requests come at 100 a second, beside the streams that run. */
static void
restart_of_the_only_replica_costs_nothing_with_a_hold(void **state)
{
    gateway_scene_t  scene;

    gateway_scene_init(&scene, 1);
    gateway_scene_ask(&scene, 300, 10000, 100, 20);
    gateway_scene_fault(&scene, GATEWAY_CRASH, 0, 1, SECOND, 2 * SECOND);
    gateway_scene_run(&scene);
    assert_true(gateway_scene_count(&scene, FLEET_REJECTED_ROUTING) > 100);

    scene.config.hold_us = 5 * SECOND;
    gateway_scene_run(&scene);
    assert_int_equal(gateway_scene_count(&scene, FLEET_COMPLETED), 300);
    assert_int_equal(scene.counts.lost, 0);
    assert_int_equal(scene.counts.overtaken, 0);
    assert_true(scene.counts.queued > 100);

    /* the hold is too short: the first to come go, the last are served */
    scene.config.hold_us = SECOND;
    gateway_scene_run(&scene);
    assert_true(gateway_scene_count(&scene, FLEET_REJECTED_ROUTING) > 50);
    assert_true(gateway_scene_count(&scene, FLEET_COMPLETED) > 150);
    gateway_scene_done(&scene);
}


/* gateway_scene_run() asserts what has to hold, whatever faults meet. */
static void
any_mix_of_faults_leaves_nothing_behind(void **state)
{
    uint32_t          k, seed;
    rnd_t             rnd;
    gateway_scene_t   scene;
    gateway_fault_t  *fault;

    for (seed = 1; seed <= SEEDS; seed++) {
        rnd.state = seed;
        gateway_scene_init(&scene, 2 + (uint32_t) rnd_below(&rnd, 6));
        scene.fleet.seed = seed;
        scene.config.gateways = 1 + (uint32_t) rnd_below(&rnd, 3);
        scene.config.capacity = (uint32_t) rnd_below(&rnd, 3) * 4;
        scene.config.queue_size = (uint32_t) rnd_below(&rnd, 2) * 50;
        scene.config.queue_us = SECOND;
        scene.config.hold_us = (int64_t) rnd_below(&rnd, 2) * SECOND / 2;
        scene.config.hedge_us = (int64_t) rnd_below(&rnd, 2) * 30000;
        scene.config.first_token_us = 2 * SECOND;
        scene.config.token_us = SECOND / 2;
        scene.config.gossip.kind = rnd_below(&rnd, 4) == 0
                                   ? GATEWAY_GOSSIP_SWIM
                                   : GATEWAY_GOSSIP_DELAY;
        scene.config.update.is_on = rnd_below(&rnd, 2) == 0;
        scene.config.update.at_us = SECOND;
        scene.config.update.drain_us = SECOND / 4;
        scene.config.update.restart_us = SECOND / 4;
        scene.config.update.parallel = 1;

        for (k = 0; k < 4; k++) {
            fault = gateway_scene_fault(&scene, (gateway_fault_kind_t)
                                        rnd_below(&rnd, 5), 0, 1, 0,
                                        1 + (int64_t) rnd_below(&rnd, SECOND));
            fault->every_us = SECOND / 2;
            fault->factor = fault->kind == GATEWAY_SLOW ? 50 : 0;
        }

        gateway_scene_ask(&scene, 500, 1 + (int64_t) rnd_below(&rnd, 10000),
                          100, 1 + (uint32_t) rnd_below(&rnd, 50));
        gateway_scene_run(&scene);

        assert_int_equal(gateway_scene_count(&scene, FLEET_IN_INSTANCE)
                         + gateway_scene_count(&scene, FLEET_IN_GATEWAY)
                         + gateway_scene_count(&scene, FLEET_NOT_ARRIVED), 0);
        gateway_scene_done(&scene);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(all_are_served_when_nothing_fails),
        cmocka_unit_test(one_request_takes_what_the_model_says),
        cmocka_unit_test(same_seed_gives_the_same),
        cmocka_unit_test(crash_of_two_of_sixteen_loses_no_stream),
        cmocka_unit_test(machines_that_die_silently_lose_no_stream),
        cmocka_unit_test(replica_that_hangs_loses_no_stream),
        cmocka_unit_test(restart_mends_a_replica_that_hangs),
        cmocka_unit_test(circuit_opens_on_a_replica_that_is_too_slow),
        cmocka_unit_test(queue_is_first_in_first_out_within_exact_capacity),
        cmocka_unit_test(
            queue_refuses_when_it_is_full_and_when_it_takes_too_long),
        cmocka_unit_test(hedges_are_sent_within_their_budget),
        cmocka_unit_test(drain_lets_streams_end_and_takes_no_new_ones),
        cmocka_unit_test(rolling_update_loses_no_stream),
        cmocka_unit_test(several_gateways_share_the_replicas),
        cmocka_unit_test(news_come_by_gossip),
        cmocka_unit_test(false_suspicions_are_no_news),
        cmocka_unit_test(stream_has_as_many_failovers_as_in_nginx),
        cmocka_unit_test(progress_is_shown_while_it_runs),
        cmocka_unit_test(nobody_left_is_said_so),
        cmocka_unit_test(restart_of_the_only_replica_costs_nothing_with_a_hold),
        cmocka_unit_test(any_mix_of_faults_leaves_nothing_behind)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
