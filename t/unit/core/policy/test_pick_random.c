
/*
 * The pick in random pools, compared with a reference that is written from
 * pick.h alone, without regard to speed.
 */

#include "t/unit/core/policy/pick_scene.h"


static int
naive_is_excluded(const scene_t *s, uint32_t i)
{
    size_t  k;

    for (k = 0; k < s->key.nexcluded; k++) {
        if (s->excluded[k] == i) {
            return 1;
        }
    }

    return 0;
}


static int
naive_is_pushed(const scene_t *s, uint32_t i)
{
    size_t  k;

    for (k = 0; k < s->told.npeers; k++) {
        if (s->pushed[k] == i) {
            return 1;
        }
    }

    return 0;
}


static int
naive_has_capacity(const scene_t *s, uint32_t i)
{
    return s->fulls[i].until_ms <= s->key.now_ms
           && (s->peers[i].max_capacity == 0
               || s->counts[i].in_flight < s->peers[i].max_capacity);
}


/* As the drawing in breaker.h says. */
static int
naive_is_admitted(const scene_t *s, uint32_t i)
{
    const llmgw_breaker_t  *breaker = s->peers[i].breaker;

    if (breaker == NULL || breaker->state == LLMGW_BREAKER_CLOSED) {
        return 1;
    }

    if (breaker->state == LLMGW_BREAKER_OPEN) {
        return s->key.now_ms >= breaker->since_ms + breaker->cooldown_ms;
    }

    return breaker->probing < s->breaker_conf.probes
           || s->key.now_ms
              >= breaker->since_ms + s->breaker_conf.max_cooldown_ms;
}


static int
naive_eligible(const scene_t *s, uint32_t i, uint8_t wanted)
{
    return s->peers[i].state == wanted && !naive_is_excluded(s, i)
           && naive_has_capacity(s, i) && !naive_is_pushed(s, i)
           && naive_is_admitted(s, i);
}


static uint64_t
naive_load(const scene_t *s, uint32_t i)
{
    return (uint64_t) s->counts[i].in_flight + s->peers[i].foreign;
}


/* By the paper: load + 1 <= ceil(c (T + 1) w / W), all in whole numbers. */
static int
naive_is_below(const scene_t *s, uint32_t i, uint8_t wanted)
{
    uint32_t  k;
    uint64_t  total, weight, bound;

    if (s->pool.load_factor_permille == 0
        || naive_load(s, i) < s->pool.min_load)
    {
        return 1;
    }

    total = 1;
    weight = 0;

    for (k = 0; k < s->pool.npeers; k++) {
        if (s->peers[k].state == wanted && naive_is_admitted(s, k)) {
            total += naive_load(s, k);
            weight += s->peers[k].weight;
        }
    }

    bound = s->pool.load_factor_permille * total * s->peers[i].weight;
    bound = (bound + 1000 * weight - 1) / (1000 * weight);

    return naive_load(s, i) + 1 <= bound;
}


/* Whether peer i is in the least loaded class of the eligible ones. */
static int
naive_is_least(const scene_t *s, uint32_t i, uint8_t wanted)
{
    uint32_t  k;

    for (k = 0; k < s->pool.npeers; k++) {
        if (naive_eligible(s, k, wanted)
            && naive_load(s, k) * s->peers[i].weight
               < naive_load(s, i) * s->peers[k].weight)
        {
            return 0;
        }
    }

    return naive_eligible(s, i, wanted);
}


/*
 * Returns 1 if the pick is right; 0 if it rightly chose no peer of that state,
 * so that the next state is tried.
 */
static int
naive_agrees(const scene_t *s, llmgw_pick_rc_t rc, uint8_t wanted)
{
    size_t    k;
    uint32_t  i;

    for (k = 0; k < s->norder; k++) {
        i = s->order[k];

        if (naive_eligible(s, i, wanted) && naive_is_below(s, i, wanted)) {
            assert_int_equal(rc, LLMGW_PICK_OK);
            assert_int_equal(s->picked.peer, i);
            assert_int_equal(s->picked.route, k == 0 ? LLMGW_ROUTE_AFFINITY
                                                     : LLMGW_ROUTE_SPILL);
            return 1;
        }
    }

    for (i = 0; i < s->pool.npeers; i++) {
        if (naive_is_least(s, i, wanted)) {
            assert_int_equal(rc, LLMGW_PICK_OK);
            assert_int_equal(s->picked.route, LLMGW_ROUTE_LEAST_CONN);
            assert_true(naive_is_least(s, s->picked.peer, wanted));
            return 1;
        }
    }

    return 0;
}


/* When its circuit may be forced: a peer that is being probed comes first. */
static uint64_t
naive_rank(const scene_t *s, uint32_t i)
{
    const llmgw_breaker_t  *breaker = &s->breakers[i];

    return breaker->state == LLMGW_BREAKER_HALF_OPEN
           ? 0 : breaker->since_ms + breaker->cooldown_ms;
}


/* How many peers of that state are not excluded, and match both flags. */
static int
naive_count(const scene_t *s, uint8_t wanted, int has_capacity, int is_admitted)
{
    int       n;
    uint32_t  i;

    n = 0;

    for (i = 0; i < s->pool.npeers; i++) {
        n += s->peers[i].state == wanted && !naive_is_excluded(s, i)
             && naive_has_capacity(s, i) == has_capacity
             && !(has_capacity && naive_is_pushed(s, i))
             && naive_is_admitted(s, i) == is_admitted;
    }

    return n;
}


/* The same, of those with capacity that pushed the request back. */
static int
naive_count_pushed(const scene_t *s, uint8_t wanted, int is_admitted)
{
    int       n;
    uint32_t  i;

    n = 0;

    for (i = 0; i < s->pool.npeers; i++) {
        n += s->peers[i].state == wanted && !naive_is_excluded(s, i)
             && naive_has_capacity(s, i) && naive_is_pushed(s, i)
             && naive_is_admitted(s, i) == is_admitted;
    }

    return n;
}


static void
assert_names_first_open(const scene_t *s, uint8_t wanted)
{
    uint32_t  i, picked;

    picked = s->picked.peer;

    assert_int_equal(s->peers[picked].state, wanted);
    assert_false(naive_is_excluded(s, picked));
    assert_true(naive_has_capacity(s, picked));
    assert_false(naive_is_pushed(s, picked));
    assert_false(naive_is_admitted(s, picked));

    for (i = 0; i < s->pool.npeers; i++) {
        if (s->peers[i].state == wanted && !naive_is_excluded(s, i)
            && naive_has_capacity(s, i) && !naive_is_pushed(s, i)
            && !naive_is_admitted(s, i))
        {
            assert_true(naive_rank(s, picked) <= naive_rank(s, i));
        }
    }
}


/*
 * The refusal where a peer is merely full: SKIPPABLE if others could use one
 * that this request may not.
 */
static llmgw_pick_rc_t
naive_wait(const scene_t *s, int with_suspects)
{
    uint32_t  i;

    for (i = 0; i < s->pool.npeers; i++) {
        if ((s->peers[i].state == ALIVE
             || (with_suspects && s->peers[i].state == SUSPECT))
            && (naive_is_excluded(s, i) || naive_is_pushed(s, i))
            && naive_has_capacity(s, i)
            && naive_is_admitted(s, i))
        {
            return LLMGW_PICK_SKIPPABLE;
        }
    }

    return LLMGW_PICK_FULL;
}


/* The refusal where no peer is eligible, and no live one is merely full. */
static llmgw_pick_rc_t
naive_refusal(const scene_t *s)
{
    uint32_t         i;
    llmgw_pick_rc_t  rc;

    if (naive_count(s, SUSPECT, 0, 1)) {
        return naive_wait(s, 1);
    }

    if (naive_count_pushed(s, SUSPECT, 1)) {
        return LLMGW_PICK_PUSHED;
    }

    if (naive_count(s, ALIVE, 1, 0) || naive_count(s, SUSPECT, 1, 0)) {
        return LLMGW_PICK_OPEN;
    }

    if (naive_count(s, ALIVE, 0, 0) || naive_count(s, SUSPECT, 0, 0)
        || naive_count_pushed(s, ALIVE, 0)
        || naive_count_pushed(s, SUSPECT, 0))
    {
        return LLMGW_PICK_FULL_OPEN;
    }

    rc = LLMGW_PICK_NONE;

    for (i = 0; i < s->pool.npeers; i++) {
        if (s->peers[i].state != UNUSABLE) {
            rc = LLMGW_PICK_EXCLUDED;
        }
    }

    return rc;
}


static void
assert_agrees(const scene_t *s, llmgw_pick_rc_t rc)
{
    if (naive_agrees(s, rc, ALIVE)) {
        return;
    }

    if (naive_count(s, ALIVE, 0, 1)) {
        assert_int_equal(rc, naive_wait(s, 0));
        return;
    }

    if (naive_count_pushed(s, ALIVE, 1)) {
        assert_int_equal(rc, LLMGW_PICK_PUSHED);
        return;
    }

    if (naive_agrees(s, rc, SUSPECT)) {
        return;
    }

    assert_int_equal(rc, naive_refusal(s));

    if (rc == LLMGW_PICK_OPEN) {
        assert_names_first_open(s, naive_count(s, ALIVE, 1, 0) ? ALIVE
                                                               : SUSPECT);
    }
}


/* A circuit with times around now: some cooldowns end at this millisecond. */
static void
breaker_randomise(scene_t *s, uint32_t i, uint64_t open, uint64_t *seed)
{
    llmgw_breaker_t  *breaker = &s->breakers[i];

    s->peers[i].breaker = next_random(seed) % 8 != 0 ? breaker : NULL;

    breaker->state = LLMGW_BREAKER_CLOSED;
    breaker->cooldown_ms = 500 + next_random(seed) % 3;
    breaker->probing = (uint32_t) (next_random(seed) % 3);
    breaker->since_ms = s->key.now_ms - next_random(seed) % 502;

    if (next_random(seed) % 100 < open) {
        breaker->state = LLMGW_BREAKER_OPEN;

    } else if (next_random(seed) % 200 < open) {
        breaker->state = LLMGW_BREAKER_HALF_OPEN;
        breaker->since_ms = s->key.now_ms - 3999 - next_random(seed) % 2;
    }
}


/* Each pool has its own shares of live, full and open peers. */
static void
scene_randomise(scene_t *s, uint64_t *seed)
{
    size_t    i;
    uint64_t  dead, suspect, full, open, heavy;

    dead = next_random(seed) % 101;
    suspect = next_random(seed) % 101;
    full = next_random(seed) % 101;
    open = next_random(seed) % 2 * (next_random(seed) % 101);
    heavy = 1 + next_random(seed) % 40;

    for (i = 0; i < s->pool.npeers; i++) {
        s->peers[i].state = next_random(seed) % 100 < dead ? UNUSABLE
                            : next_random(seed) % 100 < suspect ? SUSPECT
                                                                : ALIVE;

        s->counts[i].in_flight = (uint32_t) (next_random(seed) % heavy);
        s->peers[i].foreign = (uint32_t) (next_random(seed) % 8 / 5);

        s->peers[i].max_capacity = next_random(seed) % 100 < full
                                   ? 1 + s->counts[i].in_flight / 2 : 0;
        s->fulls[i].until_ms = next_random(seed) % 150 < full
                                    ? s->key.now_ms + next_random(seed) % 2
                                    : 0;

        breaker_randomise(s, (uint32_t) i, open, seed);
    }

    s->breaker_conf.probes = 1 + (uint32_t) (next_random(seed) % 2);
    s->key.now_ms = 5000;
    s->key.nexcluded = 0;

    while (next_random(seed) % 3 != 0 && s->key.nexcluded < PEERS_MAX) {
        scene_exclude(s, (uint32_t) (next_random(seed) % s->pool.npeers));
    }

    s->told = (llmgw_pushed_t) { .peers = s->pushed };

    while (next_random(seed) % 3 != 0 && s->told.npeers < PEERS_MAX) {
        s->pushed[s->told.npeers++] = (uint32_t) (next_random(seed)
                                                  % s->pool.npeers);
    }

    s->key.pushed = next_random(seed) % 2 ? &s->told : NULL;
    s->told.npeers = s->key.pushed ? s->told.npeers : 0;
    s->pool.min_load = (uint32_t) (next_random(seed) % 12);
    s->pool.load_factor_permille = (uint32_t) (next_random(seed) % 5) * 450;
}


static void
random_pools_agree_with_the_reference(void **state)
{
    int              i, seen[LLMGW_PICK_NONE + 1] = { 0 };
    int              routes[LLMGW_ROUTE_LEAST_CONN + 1] = { 0 };
    size_t           k, n;
    scene_t          s;
    uint64_t         seed;
    llmgw_pick_rc_t  rc;

    static const size_t  sizes[] = { 1, 2, 3, 8, 30, PEERS_MAX };

    seed = 5;

    for (k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        n = sizes[k];
        scene_init(&s, n);

        for (i = 0; i < (int) n; i++) {
            s.peers[i].weight = 1 + (uint32_t) (next_random(&seed) % 4);
        }

        for (i = 0; i < 5000; i++) {
            scene_randomise(&s, &seed);
            scene_set_key(&s, next_random(&seed));
            s.key.random = next_random(&seed);

            rc = llmgw_pick(&s.pool, &s.key, &s.picked);
            assert_agrees(&s, rc);

            seen[rc]++;
            routes[s.picked.route] += rc == LLMGW_PICK_OK;
        }

        scene_done(&s);
    }

    for (i = 0; i <= LLMGW_PICK_NONE; i++) {
        assert_in_range(seen[i], 100, 30000);
    }

    for (i = 0; i <= LLMGW_ROUTE_LEAST_CONN; i++) {
        assert_in_range(routes[i], 100, 30000);
    }
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(random_pools_agree_with_the_reference)
    };

    return cmocka_run_group_tests_name("pick random", tests, NULL, NULL);
}
