
/* Facts: what a decision reads of reports that are new, old or not there. */

#include "core/policy/facts.h"
#include "t/unit/core/policy/pick_scene.h"


#define NOW      100000
#define WAITING  LLMGW_FACT_WAITING
#define ALL      (LLMGW_FACT_RUNNING | LLMGW_FACT_WAITING | LLMGW_FACT_KV)

typedef struct {
    scene_t              scene;
    llmgw_facts_t        facts[PEERS_MAX];
    llmgw_fleet_t        fleet;
    llmgw_candidate_t    candidates[PEERS_MAX];
    uint32_t             peers[PEERS_MAX];
    llmgw_peer_state_t   state;
} facts_scene_t;


static void
facts_init(facts_scene_t *f, uint32_t n)
{
    uint32_t  i;

    memset(f, 0, sizeof(*f));
    scene_init(&f->scene, n);

    for (i = 0; i < n; i++) {
        f->facts[i].replica = 100 + i;
    }

    f->fleet = (llmgw_fleet_t) { &f->scene.pool, f->facts, NOW };
}


static void
tell(facts_scene_t *f, uint32_t i, uint64_t heard_ms, uint32_t running,
    uint32_t waiting, uint16_t kv_permille)
{
    f->facts[i].reported_ms = heard_ms;
    f->facts[i].running = running;
    f->facts[i].waiting = waiting;
    f->facts[i].kv_permille = kv_permille;
    f->facts[i].reported = ALL;
}


static uint32_t
candidates(facts_scene_t *f)
{
    return llmgw_facts_candidates(&f->fleet, &f->scene.key, f->candidates,
                                  f->peers, &f->state);
}


static void
assert_reads(const facts_scene_t *f, uint32_t i, int32_t queue_depth,
    int32_t batch_size, double kv_utilization)
{
    assert_int_equal(f->candidates[i].queue_depth, queue_depth);
    assert_int_equal(f->candidates[i].batch_size, batch_size);
    assert_true(f->candidates[i].kv_utilization == kv_utilization);
}


static void
known_facts_read_as_they_were_told(void **state)
{
    facts_scene_t  f;

    facts_init(&f, 2);
    tell(&f, 0, NOW, 3, 4, 500);
    tell(&f, 1, NOW - LLMGW_FACTS_MS + 1, 0, 0, 1000);

    assert_int_equal(candidates(&f), 2);
    assert_int_equal(f.candidates[0].replica, 100);
    assert_int_equal(f.candidates[1].replica, 101);
    assert_reads(&f, 0, 4, 3, 0.5);
    assert_reads(&f, 1, 0, 0, 1);

    scene_done(&f.scene);
}


static void
queue_and_batch_follow_what_is_in_flight_since(void **state)
{
    facts_scene_t  f;

    facts_init(&f, 3);
    tell(&f, 0, NOW, 8, 4, 0);
    tell(&f, 1, NOW, 8, 4, 0);
    tell(&f, 2, NOW, 8, 4, 0);

    f.facts[0].in_flight = f.facts[1].in_flight = f.facts[2].in_flight = 12;
    f.scene.counts[0].in_flight = 17;
    f.scene.counts[1].in_flight = 10;
    f.scene.counts[2].in_flight = 1;

    (void) candidates(&f);
    assert_int_equal(f.candidates[0].in_flight, 17);
    assert_reads(&f, 0, 4 + 5, 8, 0);
    assert_reads(&f, 1, 4 - 2, 8, 0);
    assert_reads(&f, 2, 0, 8 + 4 - 11, 0);

    /* the running requests include other gateways' */
    f.facts[2].running = 3;
    (void) candidates(&f);
    assert_reads(&f, 2, 0, 0, 0);

    /* replicas report no queue, but running requests */
    f.facts[0].reported = LLMGW_FACT_RUNNING;
    f.facts[1].reported = LLMGW_FACT_RUNNING;
    f.facts[2].reported = LLMGW_FACT_RUNNING;
    (void) candidates(&f);
    assert_reads(&f, 0, 17, 8 + 5, 0);
    assert_reads(&f, 1, 10, 8 - 2, 0);
    assert_reads(&f, 2, 1, 0, 0);

    scene_done(&f.scene);
}


static void
what_was_in_flight_is_taken_when_a_report_is_new(void **state)
{
    llmgw_facts_t  before = { 0 }, facts = { .reported_ms = 1, .active = 9 };

    /* all are our own: two have ended since, or two are on their way */
    llmgw_facts_update(&facts, &before, 7, 0);
    assert_int_equal(facts.in_flight, 9);
    llmgw_facts_update(&facts, &before, 11, 0);
    assert_int_equal(facts.in_flight, 9);

    /* four are other gateways' */
    llmgw_facts_update(&facts, &before, 5, 4);
    assert_int_equal(facts.in_flight, 5);

    /* the same report, read again */
    before = facts;
    llmgw_facts_update(&facts, &before, 8, 1);
    assert_int_equal(facts.in_flight, 5);

    /* six of ours are on their way */
    facts.reported_ms = 2;
    facts.active = 2;
    llmgw_facts_update(&facts, &before, 8, 1);
    assert_int_equal(facts.in_flight, 2);
}


static void
unknown_facts_read_as_the_mean_of_the_known(void **state)
{
    facts_scene_t  f;

    facts_init(&f, 5);
    tell(&f, 0, NOW, 2, 1, 100);
    tell(&f, 1, NOW, 5, 4, 300);
    tell(&f, 2, NOW - LLMGW_FACTS_MS, 90, 90, 990);
    tell(&f, 3, NOW, 90, 10, 990);
    f.facts[3].reported = WAITING;

    (void) candidates(&f);
    assert_reads(&f, 0, 1, 2, 0.1);
    assert_reads(&f, 2, 5, 4, (0.1 + 0.3) / 2);
    assert_reads(&f, 3, 10, 4, (0.1 + 0.3) / 2);
    assert_reads(&f, 4, 5, 4, (0.1 + 0.3) / 2);

    scene_done(&f.scene);
}


static void
load_stands_for_a_queue_that_nobody_tells(void **state)
{
    facts_scene_t  f;

    facts_init(&f, 2);
    f.scene.counts[0].in_flight = 3;
    f.scene.peers[1].foreign = 4;
    f.scene.counts[1].in_flight = 1;

    (void) candidates(&f);
    assert_int_equal(f.candidates[0].in_flight, 3);
    assert_reads(&f, 0, 3, 0, 0);
    assert_int_equal(f.candidates[1].in_flight, 1);
    assert_reads(&f, 1, 5, 0, 0);

    scene_done(&f.scene);
}


static void
absurd_reports_stay_counts(void **state)
{
    facts_scene_t  f;

    facts_init(&f, 1);
    tell(&f, 0, NOW, UINT32_MAX, UINT32_MAX, 1000);
    f.scene.counts[0].in_flight = UINT32_MAX;

    (void) candidates(&f);
    assert_int_equal(f.candidates[0].in_flight, INT32_MAX);
    assert_reads(&f, 0, INT32_MAX, INT32_MAX, 1);

    scene_done(&f.scene);
}


static void
candidates_are_alive_then_suspect_then_tried(void **state)
{
    facts_scene_t  f;

    facts_init(&f, 4);
    f.scene.peers[0].state = SUSPECT;
    f.scene.peers[1].state = UNUSABLE;

    assert_int_equal(candidates(&f), 2);
    assert_int_equal(f.state, ALIVE);
    assert_int_equal(f.peers[0], 2);
    assert_int_equal(f.peers[1], 3);

    scene_exclude(&f.scene, 3);
    assert_int_equal(candidates(&f), 1);
    assert_int_equal(f.peers[0], 2);

    scene_exclude(&f.scene, 2);
    assert_int_equal(candidates(&f), 1);
    assert_int_equal(f.state, SUSPECT);
    assert_int_equal(f.peers[0], 0);

    scene_exclude(&f.scene, 0);
    assert_int_equal(candidates(&f), 2);
    assert_int_equal(f.state, ALIVE);

    /* a replica that cannot resume the stream is no candidate, tried or not */
    f.scene.key.resumes = 1;
    f.scene.key.resume_group = 7;
    assert_int_equal(candidates(&f), 0);

    scene_done(&f.scene);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(known_facts_read_as_they_were_told),
        cmocka_unit_test(queue_and_batch_follow_what_is_in_flight_since),
        cmocka_unit_test(what_was_in_flight_is_taken_when_a_report_is_new),
        cmocka_unit_test(unknown_facts_read_as_the_mean_of_the_known),
        cmocka_unit_test(load_stands_for_a_queue_that_nobody_tells),
        cmocka_unit_test(absurd_reports_stay_counts),
        cmocka_unit_test(candidates_are_alive_then_suspect_then_tried),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
