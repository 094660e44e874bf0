
/* How full a fleet is, and a live one by facts that may be old or missing. */

#include "core/flow/saturation.h"
#include "t/unit/core/policy/pick_scene.h"


#define NOW     100000
#define NPEERS  3

typedef struct {
    scene_t              scene;
    llmgw_facts_t        facts[NPEERS];
    llmgw_fleet_t        fleet;
    llmgw_saturation_t   saturation;
    llmgw_candidate_t    candidates[NPEERS];
    uint32_t             peers[NPEERS];
    int                  is_known;
} live_t;


static void
live_init(live_t *live, llmgw_saturation_kind_t kind)
{
    memset(live, 0, sizeof(*live));
    scene_init(&live->scene, NPEERS);

    live->fleet = (llmgw_fleet_t) { &live->scene.pool, live->facts, NOW };
    live->saturation = (llmgw_saturation_t) {
        .kind = kind, .queue_depth = 5, .kv_utilization = 0.8,
        .max_concurrency = 4
    };
}


static void
tell(live_t *live, uint32_t i, uint16_t told, uint32_t waiting,
    uint16_t kv_permille)
{
    live->facts[i].reported_ms = NOW;
    live->facts[i].waiting = waiting;
    live->facts[i].kv_permille = kv_permille;
    live->facts[i].reported = told;
}


static double
ask(live_t *live)
{
    return llmgw_saturation_live(&live->saturation, &live->fleet, NOW,
                                 live->candidates, live->peers,
                                 &live->is_known);
}


static void
fleet_is_as_full_as_its_mean(void **state)
{
    llmgw_candidate_t   candidates[2] = { { 0 } };
    llmgw_saturation_t  saturation = {
        .queue_depth = 5, .kv_utilization = 0.8, .max_concurrency = 10
    };

    candidates[0].queue_depth = 4;
    candidates[0].kv_utilization = 0.2;
    candidates[0].in_flight = 7;
    candidates[1].kv_utilization = 0.5;
    candidates[1].in_flight = 8;

    assert_true(llmgw_saturation(&saturation, candidates, 2) == 0);
    assert_true(llmgw_saturation(&saturation, candidates, 0) == 0);

    saturation.kind = LLMGW_SATURATION_UTILIZATION;
    assert_true(llmgw_saturation(&saturation, candidates, 2)
                == (4.0 / 5.0 + 0.5 / 0.8) / 2);
    assert_true(llmgw_saturation(&saturation, candidates, 0) == 1);

    saturation.kind = LLMGW_SATURATION_CONCURRENCY;
    assert_true(llmgw_saturation(&saturation, candidates, 2) == 15.0 / 20.0);
    assert_true(llmgw_saturation(&saturation, candidates, 0) == 1);
}


static void
facts_that_nobody_tells_hold_nobody(void **state)
{
    live_t  live;

    live_init(&live, LLMGW_SATURATION_UTILIZATION);

    /* the gateway's own load does not count as the replica's queue */
    live.scene.counts[0].in_flight = 100;
    assert_true(ask(&live) == 0);
    assert_false(live.is_known);

    tell(&live, 0, LLMGW_FACT_RUNNING, 0, 0);
    assert_true(ask(&live) == 0);
    assert_false(live.is_known);

    /* only KV is known, of one replica: it stands for the others */
    tell(&live, 1, LLMGW_FACT_KV, 0, 400);
    assert_true(ask(&live) == 0.4 / 0.8);
    assert_true(live.is_known);

    tell(&live, 1, LLMGW_FACT_KV | LLMGW_FACT_WAITING, 10, 400);
    assert_true(ask(&live) == 10.0 / 5);

    /* facts that are old are unknown */
    live.fleet.clock_ms += LLMGW_FACTS_MS;
    assert_true(ask(&live) == 0);
    assert_false(live.is_known);
}


static void
own_attempts_are_always_known(void **state)
{
    live_t  live;

    live_init(&live, LLMGW_SATURATION_CONCURRENCY);
    live.scene.counts[0].in_flight = 4;
    live.scene.counts[1].in_flight = 2;

    assert_true(ask(&live) == 0.5);
    assert_true(live.is_known);
}


/* The pick reports that there is no replica, so no request is held. */
static void
fleet_without_replicas_holds_nobody(void **state)
{
    uint32_t  i;
    live_t    live;

    live_init(&live, LLMGW_SATURATION_CONCURRENCY);

    for (i = 0; i < NPEERS; i++) {
        live.scene.peers[i].state = LLMGW_PEER_UNUSABLE;
    }

    assert_true(ask(&live) == 0);
    assert_true(live.is_known);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(fleet_is_as_full_as_its_mean),
        cmocka_unit_test(facts_that_nobody_tells_hold_nobody),
        cmocka_unit_test(own_attempts_are_always_known),
        cmocka_unit_test(fleet_without_replicas_holds_nobody)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
