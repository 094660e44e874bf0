
/* Ranked candidates in the pick: draws, and what follows when none will do. */

#include "core/policy/ranked.h"
#include "t/unit/core/policy/pick_scene.h"


#define POOLS  2000

typedef struct {
    scene_t         scene;
    llmgw_ranked_t  ranked;
    uint32_t        candidates[PEERS_MAX];
    double          ranks[PEERS_MAX];       /* by position */
    uint64_t        random;
} ranked_scene_t;


static uint64_t
mix(uint64_t *seed)
{
    uint64_t  x;

    x = *seed += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;

    return x ^ x >> 27;
}


/* Makes candidates of the peers of that state; ranks[] has been filled. */
static void
rank(ranked_scene_t *r, llmgw_peer_state_t state)
{
    uint32_t  i, n;

    n = 0;

    for (i = 0; i < r->scene.pool.npeers; i++) {
        if (r->scene.peers[i].state == state) {
            r->candidates[n++] = i;
        }
    }

    llmgw_ranked_init(&r->ranked, state, r->candidates, r->ranks, n,
                      &r->random);
    r->scene.pool.ranked = &r->ranked;
}


/* A pool of n peers, of which the last has the highest rank. */
static void
ranked_init(ranked_scene_t *r, size_t n)
{
    size_t  i;

    memset(r, 0, sizeof(*r));
    scene_init(&r->scene, n);

    for (i = 0; i < n; i++) {
        r->ranks[i] = (double) i;
    }

    rank(r, ALIVE);
}


static void
fill(ranked_scene_t *r, uint32_t peer)
{
    r->scene.peers[peer].max_capacity = 1;
    r->scene.counts[peer].in_flight = 1;
}


static void
highest_rank_is_picked_whatever_the_ring_says(void **state)
{
    int             i;
    ranked_scene_t  r;

    ranked_init(&r, 5);

    for (i = 0; i < 50; i++) {
        scene_set_key(&r.scene, (uint64_t) i * 0x9e3779b97f4a7c15ull);
        rank(&r, ALIVE);
        assert_picks(&r.scene, 4, LLMGW_ROUTE_POLICY);
        assert_int_equal(r.ranked.ndraws, 0);
    }

    scene_done(&r.scene);
}


static void
draws_tell_what_each_lacked(void **state)
{
    ranked_scene_t  r;

    ranked_init(&r, 6);

    fill(&r, 5);
    scene_open(&r.scene, 4, r.scene.key.now_ms - 1);
    scene_exclude(&r.scene, 3);
    r.scene.fulls[2].until_ms = r.scene.key.now_ms + 1;

    assert_picks(&r.scene, 1, LLMGW_ROUTE_POLICY);

    assert_int_equal(r.ranked.ndraws, 4);
    assert_int_equal(r.ranked.draws[0].position, 5);
    assert_int_equal(r.ranked.draws[0].lacks, LLMGW_LACKS_CAPACITY);
    assert_int_equal(r.ranked.draws[1].position, 4);
    assert_int_equal(r.ranked.draws[1].lacks, LLMGW_LACKS_CIRCUIT);
    assert_int_equal(r.ranked.draws[2].position, 3);
    assert_int_equal(r.ranked.draws[2].lacks, LLMGW_LACKS_TRUST);
    assert_int_equal(r.ranked.draws[3].lacks, LLMGW_LACKS_CAPACITY);

    scene_done(&r.scene);
}


static void
many_draws_end_in_one_look_at_all(void **state)
{
    uint32_t        i;
    ranked_scene_t  r;

    ranked_init(&r, 60);

    for (i = 10; i < 60; i++) {
        fill(&r, i);
    }

    assert_picks(&r.scene, 9, LLMGW_ROUTE_POLICY);
    assert_int_equal(r.ranked.ndraws, LLMGW_RANKED_BEST);

    scene_done(&r.scene);
}


/* A claim that starts over is picked for twice. */
static void
second_pick_of_a_claim_has_the_same_ranks(void **state)
{
    ranked_scene_t  r;

    ranked_init(&r, 4);

    for (uint32_t i = 0; i < 4; i++) {
        scene_exclude(&r.scene, i);
    }

    assert_refuses(&r.scene, LLMGW_PICK_EXCLUDED);

    r.scene.key.nexcluded = 0;
    fill(&r, 3);
    assert_picks(&r.scene, 2, LLMGW_ROUTE_POLICY);

    scene_done(&r.scene);
}


static void
suspects_are_ranked_where_none_is_alive(void **state)
{
    uint32_t        i;
    ranked_scene_t  r;

    ranked_init(&r, 4);

    for (i = 0; i < 4; i++) {
        r.scene.peers[i].state = SUSPECT;
    }

    rank(&r, SUSPECT);
    assert_picks(&r.scene, 3, LLMGW_ROUTE_POLICY);
    assert_int_equal(r.ranked.ndraws, 0);

    scene_done(&r.scene);
}


static void
peers_that_are_no_candidates_go_by_least_load(void **state)
{
    ranked_scene_t  r;

    ranked_init(&r, 4);

    r.scene.peers[0].state = SUSPECT;
    r.scene.peers[1].state = SUSPECT;
    r.scene.counts[0].in_flight = 3;
    rank(&r, ALIVE);

    scene_open(&r.scene, 2, r.scene.key.now_ms);
    scene_open(&r.scene, 3, r.scene.key.now_ms);
    assert_picks(&r.scene, 1, LLMGW_ROUTE_LEAST_CONN);

    scene_done(&r.scene);
}


static void
forced_probe_is_not_called_the_policys(void **state)
{
    ranked_scene_t  r;

    ranked_init(&r, 2);

    scene_open(&r.scene, 0, 990);
    scene_open(&r.scene, 1, 980);

    assert_int_equal(llmgw_pick(&r.scene.pool, &r.scene.key, &r.scene.picked),
                     LLMGW_PICK_OPEN);
    assert_int_equal(r.scene.picked.peer, 1);
    assert_int_equal(r.scene.picked.route, LLMGW_ROUTE_LEAST_CONN);

    scene_done(&r.scene);
}


/* Half of the pools are full but for one peer of sixteen. */
static void
draw_pool(ranked_scene_t *r, uint64_t *seed)
{
    int        is_scarce;
    uint32_t   i;
    scene_t   *s;

    s = &r->scene;
    is_scarce = mix(seed) % 2;
    s->key.nexcluded = 0;
    r->random = mix(seed);
    s->key.random = r->random;

    for (i = 0; i < s->pool.npeers; i++) {
        s->peers[i].state = mix(seed) % 4 == 0 ? SUSPECT
                            : mix(seed) % 8 == 0 ? UNUSABLE : ALIVE;
        s->peers[i].breaker = NULL;
        s->peers[i].max_capacity = is_scarce || mix(seed) % 2;
        s->counts[i].in_flight = is_scarce ? mix(seed) % 16 != 0
                                           : (uint32_t) (mix(seed) % 3);
        r->ranks[i] = (double) (mix(seed) % 5);

        if (mix(seed) % 4 == 0) {
            scene_open(s, i, 900 + mix(seed) % 100);
        }

        if (mix(seed) % 6 == 0) {
            scene_exclude(s, i);
        }
    }
}


/* The best candidate that is eligible, found the long way; or NOBODY. */
static uint32_t
best(const ranked_scene_t *r)
{
    uint32_t  i, found;

    found = NOBODY;

    for (i = 0; i < r->ranked.n; i++) {
        if (llmgw_peer_lacks(&r->scene.pool, &r->scene.key, ALIVE,
                             r->candidates[i]) == LLMGW_LACKS_NOTHING
            && (found == NOBODY
                || llmgw_ranked_is_before(&r->ranked, i, found)))
        {
            found = i;
        }
    }

    return found == NOBODY ? NOBODY : r->candidates[found];
}


/* With many peers draws end early, with few the pool is often full. */
static void
compare_with_the_ring(size_t n, uint64_t seed)
{
    int               i, has;
    uint32_t          expected;
    llmgw_picked_t    ring, ranked;
    ranked_scene_t    r;
    llmgw_pick_rc_t   rc;

    ranked_init(&r, n);

    for (i = 0; i < POOLS; i++) {
        draw_pool(&r, &seed);

        ring = ranked = (llmgw_picked_t) { NOBODY, LLMGW_ROUTE_SPILL };
        r.scene.pool.ranked = NULL;
        rc = llmgw_pick(&r.scene.pool, &r.scene.key, &ring);

        rank(&r, ALIVE);
        expected = best(&r);
        has = llmgw_ranked_has_eligible(&r.scene.pool, &r.scene.key);
        assert_int_equal(llmgw_pick(&r.scene.pool, &r.scene.key, &ranked),
                         rc);
        assert_true(expected != NOBODY || !has);
        assert_true(has == (r.ranked.ndraws < r.ranked.nbest));

        if (rc == LLMGW_PICK_OK && expected != NOBODY) {
            assert_int_equal(ranked.peer, expected);
            assert_int_equal(ranked.route, LLMGW_ROUTE_POLICY);

        } else if (rc == LLMGW_PICK_OK) {
            assert_int_equal(ranked.route, LLMGW_ROUTE_LEAST_CONN);

        } else {
            assert_int_equal(ranked.peer, ring.peer);
        }
    }

    scene_done(&r.scene);
}


static void
codes_are_those_of_the_ring_and_the_best_is_picked(void **state)
{
    compare_with_the_ring(1, 1);
    compare_with_the_ring(3, 2);
    compare_with_the_ring(60, 3);
}


static void
position_of_a_peer_is_found(void **state)
{
    ranked_scene_t  r;

    ranked_init(&r, 7);

    r.scene.peers[0].state = UNUSABLE;
    r.scene.peers[3].state = SUSPECT;
    rank(&r, ALIVE);

    assert_int_equal(llmgw_ranked_position(&r.ranked, 1), 0);
    assert_int_equal(llmgw_ranked_position(&r.ranked, 4), 2);
    assert_int_equal(llmgw_ranked_position(&r.ranked, 6), 4);
    assert_int_equal(llmgw_ranked_position(&r.ranked, 0), UINT32_MAX);
    assert_int_equal(llmgw_ranked_position(&r.ranked, 3), UINT32_MAX);
    assert_int_equal(llmgw_ranked_position(&r.ranked, 7), UINT32_MAX);

    scene_done(&r.scene);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(highest_rank_is_picked_whatever_the_ring_says),
        cmocka_unit_test(draws_tell_what_each_lacked),
        cmocka_unit_test(many_draws_end_in_one_look_at_all),
        cmocka_unit_test(second_pick_of_a_claim_has_the_same_ranks),
        cmocka_unit_test(suspects_are_ranked_where_none_is_alive),
        cmocka_unit_test(peers_that_are_no_candidates_go_by_least_load),
        cmocka_unit_test(forced_probe_is_not_called_the_policys),
        cmocka_unit_test(codes_are_those_of_the_ring_and_the_best_is_picked),
        cmocka_unit_test(position_of_a_peer_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
