
/*
 * Micro-benchmark of policies that read the fleet: what a choice costs, its
 * record in the prefix index included.  bench/measure/micro.py builds and runs
 * it.
 *
 * The prompt has 64 blocks that all replicas have already, so every match
 * looks at all blocks and all replicas; each choice depends on the facts of
 * the one before.
 */

#include <string.h>

#include "core/flow/flow.h"
#include "core/policy/rank.h"
#include "bench/micro/micro.h"


#define NBLOCKS  64
#define LRU      2000
#define TRIES    20000
#define QUEUED   1000

typedef struct {
    llmgw_ranker_t         ranker;
    llmgw_scoring_t        scoring;
    llmgw_candidate_t     *candidates;
    uint32_t              *matched;
    uint64_t              *scratch;
    double                *ranks;
    double                *scores;
    uint64_t               blocks[NBLOCKS];
} fleet_t;


static void
fleet_init(fleet_t *fleet, uint32_t n, const char *weights)
{
    char                 error[128];
    uint32_t             i;
    llmgw_prefix_size_t  size = { .replicas = n, .blocks = LRU };

    memset(fleet, 0, sizeof(*fleet));
    fleet->candidates = micro_must(calloc(n, sizeof(llmgw_candidate_t)));
    fleet->matched = micro_must(calloc(n, sizeof(uint32_t)));
    fleet->ranks = micro_must(calloc(n, sizeof(double)));
    fleet->scores = micro_must(calloc(n, sizeof(double)));

    fleet->ranker.policy = LLMGW_RANK_WEIGHTED;
    fleet->ranker.index = llmgw_prefix_init(
        micro_must(calloc(1, llmgw_prefix_bytes(&size))), &size);
    fleet->ranker.cold = llmgw_cold_init(
        micro_must(calloc(1, llmgw_cold_bytes(n))), n);
    fleet->scratch = micro_must(calloc(
        llmgw_prefix_scratch(fleet->ranker.index), sizeof(uint64_t)));

    if (llmgw_weighted_parse(&fleet->ranker.weighted, weights,
                             strlen(weights), error, sizeof(error)) != 0)
    {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }

    for (i = 0; i < NBLOCKS; i++) {
        fleet->blocks[i] = (i + 1) * 0x9e3779b97f4a7c15ull;
    }

    for (i = 0; i < n; i++) {
        fleet->candidates[i].replica = i;
        fleet->candidates[i].queue_depth = (int32_t) (i % 7);
        fleet->candidates[i].batch_size = (int32_t) (i % 11);
        fleet->candidates[i].kv_utilization = (double) (i % 13) / 13;
        llmgw_prefix_record(fleet->ranker.index, i, fleet->blocks, NBLOCKS);
    }

    fleet->scoring.candidates = fleet->candidates;
    fleet->scoring.n = n;
    fleet->scoring.blocks = fleet->blocks;
    fleet->scoring.nblocks = NBLOCKS;
    fleet->scoring.matched = fleet->matched;
    fleet->scoring.cold = fleet->ranker.cold;
}


static void
fleet_done(fleet_t *fleet)
{
    free(fleet->candidates);
    free(fleet->matched);
    free(fleet->ranks);
    free(fleet->scores);
    free(fleet->scratch);
    free(fleet->ranker.index);
    free(fleet->ranker.cold);
}


/* The chosen replica's queue grows, so that the next choice is another. */
static uint64_t
run_choices(void *data, size_t n)
{
    fleet_t   *fleet = data;
    size_t     i;
    uint32_t   chosen;
    uint64_t   sum;

    sum = 0;

    for (i = 0; i < n; i++) {
        if (llmgw_rank_needs(&fleet->ranker) & LLMGW_NEEDS_MATCHED) {
            llmgw_prefix_match(fleet->ranker.index, fleet->blocks, NBLOCKS,
                               fleet->matched, fleet->scratch);
        }

        llmgw_rank(&fleet->ranker, &fleet->scoring, fleet->ranks,
                   fleet->scores);
        chosen = llmgw_rank_best(fleet->ranks, fleet->scoring.n, NULL);
        llmgw_rank_note(&fleet->ranker, &fleet->scoring, chosen);

        fleet->candidates[chosen].queue_depth++;
        sum += chosen;
    }

    return sum;
}


static void
measure_policies(uint32_t n)
{
    char     what[64];
    fleet_t  fleet;

    fleet_init(&fleet, n, "default");
    (void) snprintf(what, sizeof(what), "policy: weighted default, %u", n);
    micro_measure(what, run_choices, &fleet, TRIES / (n / 10));
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


/* Prompts that nobody has seen: each record gives up as many old blocks. */
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

        llmgw_prefix_record(fleet->ranker.index,
                            (uint32_t) (prompt % fleet->scoring.n),
                            fleet->blocks, NBLOCKS);
    }

    return fleet->blocks[0];
}


static uint64_t
run_flow(void *data, size_t n)
{
    size_t                i;
    uint32_t              entry, victim, request;
    uint64_t              sum;
    llmgw_flow_arrival_t  arrival = { 0 };

    sum = 0;

    for (i = 0; i < n; i++) {
        request = llmgw_flow_dispatch(data, 0);

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

    fleet_init(&fleet, 100, "default");
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
