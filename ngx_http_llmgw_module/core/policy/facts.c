
/* Facts.  facts.h describes the values that a decision reads. */

#include "core/policy/facts.h"


/* Sums over the candidates with known facts. */
typedef struct {
    uint32_t  nwaiting;
    uint32_t  nrunning;
    uint32_t  nkv;
    int64_t   waiting;
    int64_t   running;
    int64_t   kv_permille;
} sums_t;


static int32_t
clamp(int64_t n)
{
    return (int32_t) (n < 0 ? 0 : n > INT32_MAX ? INT32_MAX : n);
}


/* Rounded; 0 if n is 0. */
static int64_t
mean(int64_t sum, uint32_t n)
{
    return n == 0 ? 0 : (sum + n / 2) / n;
}


void
llmgw_facts_update(llmgw_facts_t *facts, const llmgw_facts_t *before,
    uint32_t in_flight, uint32_t foreign)
{
    if (facts->reported_ms == before->reported_ms) {
        facts->in_flight = before->in_flight;
        return;
    }

    facts->in_flight = foreign != 0 && in_flight < facts->active
                       ? in_flight : facts->active;
}


static uint32_t
facts_in_flight(const llmgw_pick_peer_t *peer)
{
    return peer->counts == NULL
           ? 0 : __atomic_load_n(&peer->counts->in_flight, __ATOMIC_RELAXED);
}


void
llmgw_facts_carry(const llmgw_facts_t *facts, unsigned known,
    uint32_t in_flight, llmgw_candidate_t *candidate)
{
    int64_t  since, waiting;

    since = (int64_t) in_flight - facts->in_flight;

    *candidate = (llmgw_candidate_t) { .replica = facts->replica,
                                       .in_flight = clamp(in_flight) };

    if (known & LLMGW_FACT_WAITING) {
        waiting = facts->waiting + since;
        since = waiting < 0 ? waiting : 0;
        candidate->queue_depth = clamp(waiting);
    }

    if (known & LLMGW_FACT_RUNNING) {
        candidate->batch_size = clamp(facts->running + since);
    }

    if (known & LLMGW_FACT_KV) {
        candidate->kv_utilization = facts->kv_permille / 1000.0;
    }
}


/* Fills the known facts of a candidate; unknown ones need the means first. */
static void
facts_fill(const llmgw_facts_t *facts, unsigned known, uint32_t in_flight,
    llmgw_candidate_t *candidate, sums_t *sums)
{
    llmgw_facts_carry(facts, known, in_flight, candidate);

    if (known & LLMGW_FACT_WAITING) {
        sums->nwaiting++;
        sums->waiting += candidate->queue_depth;
    }

    if (known & LLMGW_FACT_RUNNING) {
        sums->nrunning++;
        sums->running += candidate->batch_size;
    }

    if (known & LLMGW_FACT_KV) {
        sums->nkv++;
        sums->kv_permille += facts->kv_permille;
    }
}


static uint32_t
facts_find(const llmgw_fleet_t *fleet, const llmgw_pick_key_t *key,
    llmgw_peer_state_t state, llmgw_candidate_t *candidates, uint32_t *peers,
    sums_t *sums)
{
    uint32_t                  i, n;
    const llmgw_pick_peer_t  *peer;

    n = 0;
    *sums = (sums_t) { 0 };

    for (i = 0; i < fleet->pool->npeers; i++) {
        peer = &fleet->pool->peers[i];

        if (peer->state == state
            && !llmgw_peer_is_excluded(fleet->pool, key, i))
        {
            facts_fill(&fleet->facts[i],
                       llmgw_facts_known(&fleet->facts[i], fleet->clock_ms),
                       facts_in_flight(peer), &candidates[n], sums);
            peers[n++] = i;
        }
    }

    return n;
}


/* Fills the unknown facts of a candidate. */
static void
facts_guess(const llmgw_fleet_t *fleet, uint32_t peer, const sums_t *sums,
    llmgw_candidate_t *candidate)
{
    unsigned  known;

    known = llmgw_facts_known(&fleet->facts[peer], fleet->clock_ms);

    if (!(known & LLMGW_FACT_WAITING)) {
        candidate->queue_depth = sums->nwaiting != 0
            ? clamp(mean(sums->waiting, sums->nwaiting))
            : clamp((int64_t) llmgw_peer_load(&fleet->pool->peers[peer]));
    }

    if (!(known & LLMGW_FACT_RUNNING)) {
        candidate->batch_size = clamp(mean(sums->running, sums->nrunning));
    }

    if (!(known & LLMGW_FACT_KV)) {
        candidate->kv_utilization =
            (double) mean(sums->kv_permille, sums->nkv) / 1000;
    }
}


static void
facts_guess_all(const llmgw_fleet_t *fleet, const sums_t *sums,
    llmgw_candidate_t *candidates, const uint32_t *peers, uint32_t n)
{
    uint32_t  i;

    if (sums->nwaiting == n && sums->nrunning == n && sums->nkv == n) {
        return;
    }

    for (i = 0; i < n; i++) {
        facts_guess(fleet, peers[i], sums, &candidates[i]);
    }
}


uint32_t
llmgw_facts_candidates(const llmgw_fleet_t *fleet,
    const llmgw_pick_key_t *key, llmgw_candidate_t *candidates,
    uint32_t *peers, llmgw_peer_state_t *state)
{
    int               k;
    sums_t            sums;
    uint32_t          n;
    llmgw_pick_key_t  wanted;

    n = 0;
    wanted = *key;

    for (k = 0; n == 0 && k < 4; k++) {
        *state = k % 2 == 0 ? LLMGW_PEER_ALIVE : LLMGW_PEER_SUSPECT;
        wanted.nexcluded = k < 2 ? key->nexcluded : 0;

        n = facts_find(fleet, &wanted, *state, candidates, peers, &sums);
    }

    facts_guess_all(fleet, &sums, candidates, peers, n);

    return n;
}
