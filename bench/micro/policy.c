
/*
 * Micro-benchmark of policies that read the fleet: what a choice costs as
 * nginx makes it.  bench/measure/micro.py builds and runs it.
 *
 * A choice consists of ngx_http_llmgw_choice_rank(), the claim, and
 * ngx_http_llmgw_choice_note(): candidates made of peers and facts, what of the
 * prompt each replica has, a rank for each, their order, the draw with the
 * lease, and the record in the prefix index.  Also measured is the part of it
 * under the zone's lock.
 *
 * The prompt has 64 blocks that all replicas have cached, so every match looks
 * at all blocks and all replicas; each choice depends on the counts of the one
 * before.  Slots, shares and the index are as in a zone; all replicas report.
 */

#include <string.h>

#include "core/admission/admission.h"
#include "core/flow/flow.h"
#include "core/policy/facts.h"
#include "core/policy/rank.h"
#include "core/policy/ranked.h"
#include "core/prefix/shared_index.h"
#include "bench/micro/micro.h"


#define NBLOCKS  64
#define LRU      2000
#define TRIES    20000
#define QUEUED   1000
#define HELD     256            /* leases at any time */
#define NROWS    64
#define SLOT     512            /* bytes of a slot in nginx */
#define NOW_MS   100000

typedef struct {
    llmgw_admission_t       *shared;
    llmgw_admission_view_t   view;
    llmgw_pick_peer_t       *peers;
    llmgw_place_t           *places;
    llmgw_facts_t           *facts;
    uint64_t                *owners;
    llmgw_prefix_shared_t   *index;
    llmgw_breaker_conf_t     breaker;
    llmgw_ranker_t           ranker;
    llmgw_cold_t            *cold;
    llmgw_scoring_t          scoring;
    llmgw_ranked_t           ranked;
    llmgw_candidate_t       *candidates;
    uint32_t                *indexes;   /* by candidate: its peer */
    uint32_t                *matched;
    uint64_t                *scratch;
    double                  *ranks;
    double                  *scores;
    uint64_t                 blocks[NBLOCKS];
    uint64_t                 random;
    llmgw_lease_t            leases[HELD];
    uint32_t                 nleases;
} fleet_t;


static void
fleet_alloc(fleet_t *fleet, uint32_t n)
{
    llmgw_prefix_size_t     size = { .replicas = n, .blocks = LRU };
    llmgw_admission_size_t  zone = { NROWS, n, SLOT, 0, 0 };

    memset(fleet, 0, sizeof(*fleet));
    fleet->peers = micro_must(calloc(n, sizeof(llmgw_pick_peer_t)));
    fleet->places = micro_must(calloc(n, sizeof(llmgw_place_t)));
    fleet->facts = micro_must(calloc(n, sizeof(llmgw_facts_t)));
    fleet->owners = micro_must(calloc(n, sizeof(uint64_t)));
    fleet->candidates = micro_must(calloc(n, sizeof(llmgw_candidate_t)));
    fleet->indexes = micro_must(calloc(n, sizeof(uint32_t)));
    fleet->matched = micro_must(calloc(n, sizeof(uint32_t)));
    fleet->ranks = micro_must(calloc(n, sizeof(double)));
    fleet->scores = micro_must(calloc(n, sizeof(double)));

    fleet->shared = llmgw_admission_init(
        micro_must(calloc(1, llmgw_admission_bytes(&zone))), &zone);
    fleet->index = llmgw_prefix_shared_init(
        micro_must(calloc(1, llmgw_prefix_shared_bytes(&size))), &size);
    fleet->cold = llmgw_cold_init(
        micro_must(calloc(1, llmgw_cold_bytes(n))), n);
    fleet->scratch = micro_must(calloc(
        llmgw_prefix_scratch(llmgw_prefix_shared_index(fleet->index)),
        sizeof(uint64_t)));
}


/* A replica whose report is fresh, with the prompt in its cache. */
static void
fleet_join(fleet_t *fleet, uint32_t i)
{
    char           id[16];
    llmgw_slot_t  *slot;

    (void) snprintf(id, sizeof(id), "replica-%04u", i);

    fleet->places[i].slot = llmgw_slots_attach(fleet->shared, id, strlen(id),
                                               NOW_MS);
    slot = llmgw_slot(fleet->shared, fleet->places[i].slot);
    fleet->places[i].generation = slot->generation;
    fleet->owners[i] = i + 1;

    fleet->peers[i] = (llmgw_pick_peer_t) {
        .counts = &slot->counts, .breaker = &slot->breaker, .weight = 1,
        .max_capacity = 1000, .state = LLMGW_PEER_ALIVE
    };
    fleet->facts[i] = (llmgw_facts_t) {
        .reported_ms = NOW_MS, .replica = fleet->places[i].slot,
        .waiting = i % 7, .running = i % 11,
        .kv_permille = (uint16_t) (i % 13 * 1000 / 13),
        .reported = LLMGW_FACT_WAITING | LLMGW_FACT_RUNNING | LLMGW_FACT_KV
    };

    (void) llmgw_prefix_shared_record(fleet->index, fleet->places[i].slot,
                                      fleet->owners[i], fleet->blocks,
                                      NBLOCKS);
}


static void
fleet_init(fleet_t *fleet, uint32_t n, const char *weights)
{
    char      error[128];
    uint32_t  i;

    fleet_alloc(fleet, n);

    fleet->ranker.policy = LLMGW_RANK_WEIGHTED;
    fleet->breaker.enabled = 1;

    if (llmgw_weighted_parse(&fleet->ranker.weighted, llmgw_scorers, weights,
                             strlen(weights), error, sizeof(error)) != 0)
    {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }

    for (i = 0; i < NBLOCKS; i++) {
        fleet->blocks[i] = (i + 1) * 0x9e3779b97f4a7c15ull;
    }

    for (i = 0; i < n; i++) {
        fleet_join(fleet, i);
    }

    fleet->view.pick.peers = fleet->peers;
    fleet->view.pick.npeers = n;
    fleet->view.pick.breaker_conf = &fleet->breaker;
    fleet->view.pick.ranked = &fleet->ranked;
    fleet->view.places = fleet->places;

    fleet->scoring.candidates = fleet->candidates;
    fleet->scoring.blocks = fleet->blocks;
    fleet->scoring.nblocks = NBLOCKS;
    fleet->scoring.matched = fleet->matched;
    fleet->scoring.cold = fleet->cold;
}


static void
fleet_done(fleet_t *fleet)
{
    free(fleet->peers);
    free(fleet->places);
    free(fleet->facts);
    free(fleet->owners);
    free(fleet->candidates);
    free(fleet->indexes);
    free(fleet->matched);
    free(fleet->ranks);
    free(fleet->scores);
    free(fleet->scratch);
    free(fleet->shared);
    free(fleet->index);
    free(fleet->cold);
}


static void
fleet_match(fleet_t *fleet)
{
    uint32_t  i, slot;

    (void) llmgw_prefix_shared_match(fleet->index, fleet->blocks, NBLOCKS,
                                     fleet->matched, fleet->scratch);

    for (i = 0; i < fleet->view.pick.npeers; i++) {
        slot = fleet->places[i].slot;

        if (llmgw_prefix_owner(fleet->index, slot) != fleet->owners[i]) {
            fleet->matched[slot] = 0;
        }
    }

    for (i = 0; i < fleet->scoring.n; i++) {
        fleet->candidates[i].cached =
            fleet->matched[fleet->candidates[i].replica];
    }
}


static void
fleet_rank(fleet_t *fleet, const llmgw_claim_t *claim)
{
    llmgw_fleet_t        facts = { &fleet->view.pick, fleet->facts, NOW_MS };
    llmgw_pick_key_t     key;
    llmgw_peer_state_t   state;

    key = llmgw_claim_key(claim, NOW_MS, fleet->random);

    fleet->scoring.n = llmgw_facts_candidates(&facts, &key,
                                              fleet->candidates, fleet->indexes,
                                              &state);

    if (llmgw_rank_needs(&fleet->ranker) != 0) {
        fleet_match(fleet);
    }

    llmgw_rank(&fleet->ranker, &fleet->scoring, fleet->ranks, fleet->scores);

    llmgw_ranked_init(&fleet->ranked, state, fleet->indexes, fleet->ranks,
                      fleet->scoring.n, &fleet->random);
}


/* Ends the oldest lease and begins a new one: what is done under the lock. */
static uint32_t
fleet_claim(fleet_t *fleet, llmgw_claim_t *claim)
{
    llmgw_lease_t             *lease;
    llmgw_admission_end_t      end;
    llmgw_admission_self_t     self = { fleet->shared, 0, 0 };
    llmgw_admission_answer_t   answer;

    lease = &fleet->leases[fleet->nleases++ % HELD];

    llmgw_admission_end(&self, &fleet->breaker, lease, LLMGW_VERDICT_SUCCESS,
                        NOW_MS, &end);
    llmgw_admission_claim(&self, &fleet->view, claim, lease, NOW_MS,
                          fleet->random, &answer);

    return answer.picked.peer;
}


static void
fleet_note(fleet_t *fleet, uint32_t peer)
{
    uint32_t  chosen;

    chosen = llmgw_ranked_position(&fleet->ranked, peer);

    if (llmgw_rank_needs(&fleet->ranker) == 0) {
        return;
    }

    (void) llmgw_prefix_shared_record(fleet->index, fleet->places[peer].slot,
                                      fleet->owners[peer], fleet->blocks,
                                      NBLOCKS);

    if ((llmgw_rank_needs(&fleet->ranker) & LLMGW_NEEDS_COLD)
        && llmgw_scoring_is_cold(&fleet->scoring))
    {
        llmgw_cold_note(fleet->cold, fleet->candidates,
                        fleet->scoring.n, chosen);
    }
}


static uint64_t
run_choices(void *data, size_t n)
{
    fleet_t   *fleet = data;
    size_t     i;
    uint32_t   peer;
    uint64_t   sum;

    sum = 0;

    for (i = 0; i < n; i++) {
        llmgw_claim_t  claim = { .entry = LLMGW_QUEUE_NONE };

        fleet->random += 0x9e3779b97f4a7c15ull;
        fleet_rank(fleet, &claim);
        peer = fleet_claim(fleet, &claim);
        fleet_note(fleet, peer);
        sum += peer;
    }

    return sum;
}


/* The claim alone, with ranks made once. */
static uint64_t
run_claims(void *data, size_t n)
{
    fleet_t   *fleet = data;
    size_t     i;
    uint64_t   sum;

    sum = 0;

    for (i = 0; i < n; i++) {
        llmgw_claim_t  claim = { .entry = LLMGW_QUEUE_NONE };

        fleet->ranked.is_drawn = 0;
        fleet->ranked.ndraws = 0;
        sum += fleet_claim(fleet, &claim);
    }

    return sum;
}


static void
measure_policies(uint32_t n)
{
    char           what[64];
    fleet_t        fleet;
    llmgw_claim_t  claim = { .entry = LLMGW_QUEUE_NONE };

    fleet_init(&fleet, n, "blis");
    (void) snprintf(what, sizeof(what), "policy: weighted blis, %u", n);
    micro_measure(what, run_choices, &fleet, TRIES / (n / 10));

    fleet_rank(&fleet, &claim);
    (void) snprintf(what, sizeof(what), "policy: of it under the lock, %u", n);
    micro_measure(what, run_claims, &fleet, TRIES / (n / 10));
    fleet_done(&fleet);

    fleet_init(&fleet, n, "no-hit-lru:1,load-balance:1");
    (void) snprintf(what, sizeof(what), "policy: no-hit-lru, load-balance, %u",
                    n);
    micro_measure(what, run_choices, &fleet, TRIES / (n / 10));

    fleet.ranker.policy = LLMGW_RANK_LEAST_LOADED;
    (void) snprintf(what, sizeof(what), "policy: least-loaded, %u", n);
    micro_measure(what, run_choices, &fleet, TRIES / (n / 10));
    fleet_done(&fleet);
}


/* New prompts: each record evicts as many old blocks from the index. */
static uint64_t
run_records(void *data, size_t n)
{
    fleet_t          *fleet = data;
    size_t            i;
    uint32_t          b;
    static uint64_t   prompt;

    for (i = 0; i < n; i++) {
        prompt++;

        for (b = 0; b < NBLOCKS; b++) {
            fleet->blocks[b] = (prompt * NBLOCKS + b) * 0x9e3779b97f4a7c15ull;
        }

        (void) llmgw_prefix_shared_record(
            fleet->index, (uint32_t) (prompt % fleet->view.pick.npeers),
            fleet->owners[prompt % fleet->view.pick.npeers], fleet->blocks,
            NBLOCKS);
    }

    return fleet->blocks[0];
}


static uint64_t
run_flow(void *data, size_t n)
{
    size_t                i;
    double                ceiling;
    uint32_t              entry, victim, request;
    uint64_t              sum;
    llmgw_flow_arrival_t  arrival = { 0 };

    sum = 0;

    for (i = 0; i < n; i++) {
        request = llmgw_flow_take(data, llmgw_flow_next(data, &ceiling));

        arrival.request = request;
        arrival.priority = (int32_t) (request % 5) - 2;
        arrival.tenant = request * 0x9e3779b97f4a7c15ull;
        arrival.deadline_us = (int64_t) i * 97 % 10007;

        (void) llmgw_flow_enqueue(data, &arrival, &entry, &victim);
        sum += entry;
    }

    return sum;
}


static void
measure_flow(const char *what, llmgw_flow_order_t order,
    llmgw_flow_fairness_t fairness)
{
    void                  *flow;
    uint32_t               i, entry, victim;
    llmgw_flow_conf_t      conf = { .order = order, .fairness = fairness,
                                    .usage_limit = 1 };
    llmgw_flow_arrival_t   arrival = { 0 };

    flow = llmgw_flow_init(micro_must(calloc(1, llmgw_flow_bytes(QUEUED))),
                           QUEUED, &conf);

    for (i = 0; i < QUEUED; i++) {
        arrival.request = i;
        arrival.tenant = i;
        (void) llmgw_flow_enqueue(flow, &arrival, &entry, &victim);
    }

    micro_measure(what, run_flow, flow, TRIES);
    free(flow);
}


int
main(void)
{
    fleet_t  fleet;

    measure_policies(10);
    measure_policies(100);
    measure_policies(1000);

    fleet_init(&fleet, 100, "blis");
    micro_measure("policy: record 64 new blocks, all lists full", run_records,
                  &fleet, TRIES);
    fleet_done(&fleet);

    measure_flow("flow: out and in, 1000 wait, fifo", LLMGW_FLOW_FIFO,
                 LLMGW_FLOW_GLOBAL_STRICT);
    measure_flow("flow: the same, priority, round robin",
                 LLMGW_FLOW_PRIORITY, LLMGW_FLOW_ROUND_ROBIN);
    measure_flow("flow: the same, slo-deadline", LLMGW_FLOW_SLO_DEADLINE,
                 LLMGW_FLOW_GLOBAL_STRICT);

    return 0;
}
