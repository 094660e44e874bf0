
/* Hedge: the budget over short and long runs, and the saturated pool. */

#include "core/admission/hedge.h"
#include "t/unit/core/policy/pick_scene.h"


/* A slow request; returns 1 if it was hedged. */
static int
slow_request(llmgw_hedge_budget_t *budget, uint32_t permille)
{
    llmgw_hedge_note_request(budget, permille);

    if (!llmgw_hedge_may_hedge(budget, permille)) {
        return 0;
    }

    llmgw_hedge_note_hedge(budget);

    return 1;
}


/* --- budget */

static void
first_requests_are_hedged_on_loan(void **state)
{
    int                   i;
    llmgw_hedge_budget_t  budget = { 0 };

    assert_true(slow_request(&budget, 50));
    assert_true(slow_request(&budget, 50));

    /* 40 requests pay for two; the 60th has earned the third */
    for (i = 3; i < 60; i++) {
        assert_false(slow_request(&budget, 50));
    }

    assert_true(slow_request(&budget, 50));
    assert_false(slow_request(&budget, 50));
}


static void
all_slow_stays_within_the_budget(void **state)
{
    size_t                k;
    uint64_t              n, hedges;
    llmgw_hedge_budget_t  budget;

    static const uint32_t  budgets[] = { 1, 7, 50, 333, 999, 1000, 1500 };

    for (k = 0; k < sizeof(budgets) / sizeof(budgets[0]); k++) {
        budget = (llmgw_hedge_budget_t) { 0 };
        hedges = 0;

        for (n = 1; n <= 20000; n++) {
            hedges += (uint64_t) slow_request(&budget, budgets[k]);

            if (hedges > LLMGW_HEDGE_LOAN) {
                assert_in_range(hedges * 1000, 0, n * budgets[k]);
            }
        }

        /* and no more than two hedges of it are unused */
        assert_in_range(hedges * 1000,
                        budgets[k] < 1000 ? n * budgets[k] - 2 * 1000 : n - 1,
                        n * 1000);
    }
}


static void
few_slow_starts_are_all_hedged(void **state)
{
    int                   i, slow, hedged;
    uint64_t              seed;
    llmgw_hedge_budget_t  budget = { 0 };

    slow = 0;
    hedged = 0;
    seed = 11;

    for (i = 0; i < 100000; i++) {
        if (next_random(&seed) % 100 < 3) {
            slow++;
            hedged += slow_request(&budget, 50);

        } else {
            llmgw_hedge_note_request(&budget, 50);
        }
    }

    assert_in_range(slow, 2800, 3200);
    assert_in_range(hedged, slow * 98 / 100, slow);
}


static void
calm_saves_up_to_the_burst(void **state)
{
    int                   i, hedges;
    llmgw_hedge_budget_t  budget = { 0 };

    for (i = 0; i < 100000; i++) {
        llmgw_hedge_note_request(&budget, 50);
    }

    hedges = 0;

    while (llmgw_hedge_may_hedge(&budget, 50)) {
        llmgw_hedge_note_hedge(&budget);
        hedges++;
    }

    assert_int_equal(hedges, LLMGW_HEDGE_BURST);
}


static void
extreme_budgets_do_no_harm(void **state)
{
    int                   i;
    llmgw_hedge_budget_t  budget = { 0 };

    assert_false(llmgw_hedge_may_hedge(&budget, 0));
    assert_true(llmgw_hedge_may_hedge(&budget, 1));

    for (i = 0; i < 100; i++) {
        llmgw_hedge_note_hedge(&budget);        /* without asking first */
    }

    assert_false(llmgw_hedge_may_hedge(&budget, 1));

    llmgw_hedge_note_request(&budget, UINT32_MAX);
    llmgw_hedge_note_request(&budget, UINT32_MAX);
    assert_int_equal(budget.credit_permille,
                     1000 * (LLMGW_HEDGE_BURST - LLMGW_HEDGE_LOAN));
}


/* --- saturation */

static void
assert_saturated_from(scene_t *s, uint32_t in_flight)
{
    s->counts[0].in_flight = in_flight - 1;
    assert_false(llmgw_hedge_is_saturated(&s->pool, s->key.now_ms));

    s->counts[0].in_flight = in_flight;
    assert_true(llmgw_hedge_is_saturated(&s->pool, s->key.now_ms));
}


static void
limit(scene_t *s, uint32_t max_capacity)
{
    size_t  i;

    for (i = 0; i < s->pool.npeers; i++) {
        s->peers[i].max_capacity = max_capacity;
    }
}


static void
pool_is_saturated_at_nine_tenths(void **state)
{
    scene_t  s;

    scene_init(&s, 2);

    limit(&s, 1);
    s.counts[1].in_flight = 1;
    assert_saturated_from(&s, 1);       /* 2 of 2 */

    limit(&s, 50);
    s.counts[1].in_flight = 45;
    assert_saturated_from(&s, 45);      /* 90 of 100 */

    scene_done(&s);
}


static void
unlimited_peer_keeps_a_pool_from_saturation(void **state)
{
    scene_t  s;

    scene_init(&s, 3);

    limit(&s, 2);
    s.counts[0].in_flight = 2;
    s.counts[1].in_flight = 2;
    s.counts[2].in_flight = 1000;
    s.peers[2].max_capacity = 0;
    assert_false(llmgw_hedge_is_saturated(&s.pool, s.key.now_ms));

    s.fulls[2].until_ms = s.key.now_ms + 1;
    assert_true(llmgw_hedge_is_saturated(&s.pool, s.key.now_ms));

    s.counts[0].in_flight = 0;
    assert_false(llmgw_hedge_is_saturated(&s.pool, s.key.now_ms));

    scene_done(&s);
}


static void
peers_marked_full_have_no_places(void **state)
{
    scene_t  s;

    scene_init(&s, 2);

    limit(&s, 10);
    s.counts[0].in_flight = 8;
    assert_false(llmgw_hedge_is_saturated(&s.pool, s.key.now_ms));

    s.fulls[1].until_ms = s.key.now_ms + 1;
    assert_true(llmgw_hedge_is_saturated(&s.pool, s.key.now_ms));

    s.counts[0].in_flight = 7;
    assert_false(llmgw_hedge_is_saturated(&s.pool, s.key.now_ms));

    scene_done(&s);
}


static void
only_living_peers_that_are_let_have_places(void **state)
{
    scene_t  s;

    scene_init(&s, 4);

    limit(&s, 10);
    s.peers[1].state = SUSPECT;
    s.peers[2].state = UNUSABLE;
    s.peers[3].breaker = &s.breakers[3];
    s.breakers[3].state = LLMGW_BREAKER_OPEN;
    s.breakers[3].since_ms = s.key.now_ms;
    s.breakers[3].cooldown_ms = 1;
    assert_saturated_from(&s, 9);

    s.key.now_ms++;
    assert_false(llmgw_hedge_is_saturated(&s.pool, s.key.now_ms));

    s.pool.npeers = 0;
    assert_true(llmgw_hedge_is_saturated(&s.pool, s.key.now_ms));

    scene_done(&s);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(first_requests_are_hedged_on_loan),
        cmocka_unit_test(all_slow_stays_within_the_budget),
        cmocka_unit_test(few_slow_starts_are_all_hedged),
        cmocka_unit_test(calm_saves_up_to_the_burst),
        cmocka_unit_test(extreme_budgets_do_no_harm),
        cmocka_unit_test(pool_is_saturated_at_nine_tenths),
        cmocka_unit_test(unlimited_peer_keeps_a_pool_from_saturation),
        cmocka_unit_test(peers_marked_full_have_no_places),
        cmocka_unit_test(only_living_peers_that_are_let_have_places)
    };

    return cmocka_run_group_tests_name("hedge", tests, NULL, NULL);
}
