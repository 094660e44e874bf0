
/*
 * Chooses a replica: core's policies rank the gateway's view.
 *
 * Up to three rankers, each with its own memory: the main one, and those that
 * choose where prompts and where answers are computed, if they have scorers of
 * their own.
 */

#include <stdlib.h>

#include "sim/fleet/fleet_inner.h"
#include "sim/fleet/policy/scorers.h"


#define ROUTE_INDEX_BLOCKS  10000       /* for each replica, as in BLIS */

/* The defaults of nginx's llmgw_hash; 64 bytes of text are some 16 tokens. */
#define ROUTE_VNODES        150
#define ROUTE_KEY_TOKENS    16


/* --- setting up */

/*
 * How many blocks the index needs: those of all prompts, each of which is sent
 * at most twice.
 */
static uint32_t
route_index_total(const fleet_t *f)
{
    size_t    i;
    uint64_t  total, most;

    most = (uint64_t) f->config->replicas * ROUTE_INDEX_BLOCKS;

    if (most > LLMGW_PREFIX_MAX_NODES) {
        most = LLMGW_PREFIX_MAX_NODES;
    }

    if (f->work->sessions != NULL) {
        return (uint32_t) most;
    }

    for (i = 0, total = 1; i < f->work->n && total < most; i++) {
        total += 2 * (uint64_t) work_at(f->work, i)->input_tokens
                 / (uint64_t) f->config->model.block_tokens;
    }

    return (uint32_t) (total < most ? total : most);
}


static int
route_init_index(fleet_t *f, fleet_ranker_t *ranker)
{
    void                 *memory;
    llmgw_prefix_size_t   size;

    size.replicas = f->config->replicas;
    size.blocks = ROUTE_INDEX_BLOCKS;
    size.total = route_index_total(f);
    memory = fleet_alloc(f, 1, llmgw_prefix_bytes(&size));

    if (memory == NULL) {
        return -1;
    }

    ranker->index = llmgw_prefix_init(memory, &size);

    if (f->matched == NULL) {
        f->matched = fleet_alloc(f, size.replicas, sizeof(uint32_t));
        f->scratch = fleet_alloc(f, llmgw_prefix_scratch(ranker->index),
                                 sizeof(uint64_t));
    }

    return f->failed ? -1 : 0;
}


static int
route_init_ring(fleet_t *f, fleet_ranker_t *ranker)
{
    ranker->ring = fleet_ring(f->config->replicas, ROUTE_VNODES);
    ranker->peers = fleet_alloc(f, f->config->replicas,
                                sizeof(llmgw_pick_peer_t));

    return ranker->ring == NULL || f->failed ? -1 : 0;
}


static int
route_init_ranker(fleet_t *f, fleet_ranker_t *ranker,
    const fleet_policy_t *policy)
{
    void              *memory;
    uint32_t           i, n;
    unsigned           needs;
    llmgw_weighted_t  *weighted;

    n = f->config->replicas;
    ranker->policy = *policy;
    weighted = &ranker->policy.ranker.weighted;

    for (i = 0; i < weighted->n; i++) {

        if (f->config->routing.signal == FLEET_SIGNAL_EFFECTIVE
            && weighted->weights[i].scorer == &llmgw_scorer_queue_depth)
        {
            weighted->weights[i].scorer = &fleet_effective_depth;
        }
    }

    if (policy->ranker.policy == LLMGW_RANK_AFFINITY
        && route_init_ring(f, ranker) != 0)
    {
        return -1;
    }

    needs = llmgw_rank_needs(&policy->ranker);

    if (needs & LLMGW_NEEDS_COLD) {
        memory = fleet_alloc(f, 1, llmgw_cold_bytes(n));

        if (memory == NULL) {
            return -1;
        }

        ranker->cold = llmgw_cold_init(memory, n);
    }

    return needs & LLMGW_NEEDS_MATCHED ? route_init_index(f, ranker) : 0;
}


int
route_init(fleet_t *f)
{
    uint32_t                n = f->config->replicas;
    const fleet_routing_t  *conf = &f->config->routing;

    f->ranks = fleet_alloc(f, n, sizeof(double));
    f->scores = fleet_alloc(f, n, sizeof(double));

    if (f->failed || route_init_ranker(f, &f->rankers[0], &conf->policy) != 0
        || (conf->has_prefill
            && route_init_ranker(f, &f->rankers[1], &conf->prefill) != 0)
        || (conf->has_decode
            && route_init_ranker(f, &f->rankers[2], &conf->decode) != 0))
    {
        return -1;
    }

    return 0;
}


static int
route_policy_reads_cache(const fleet_policy_t *policy)
{
    return (llmgw_rank_needs(&policy->ranker) & LLMGW_NEEDS_CACHED) != 0;
}


int
route_reads_cache(const fleet_config_t *config)
{
    const fleet_routing_t  *conf = &config->routing;

    return route_policy_reads_cache(&conf->policy)
           || (conf->has_prefill && route_policy_reads_cache(&conf->prefill))
           || (conf->has_decode && route_policy_reads_cache(&conf->decode))
           || (fleet_has_pools(config)
               && config->pools.split == FLEET_SPLIT_PREFIX);
}


/* --- choosing */

static void
route_rank(fleet_t *f, const fleet_ranker_t *ranker,
    const llmgw_scoring_t *scoring, const fleet_request_t *r)
{
    uint64_t  key;

    if (ranker->ring == NULL) {
        fleet_policy_rank(&ranker->policy, scoring, f->ranks, f->scores);
        return;
    }

    key = fleet_key(work_at(f->work, r->index), ROUTE_KEY_TOKENS,
                    (uint32_t) f->config->model.block_tokens);
    fleet_ring_rank(ranker->ring, ranker->peers, key, scoring, f->ranks);
}


/* The request goes to the chosen candidate: updates the policy's memory. */
static void
route_note(fleet_ranker_t *ranker, const llmgw_scoring_t *scoring,
    uint32_t chosen)
{
    unsigned  needs;

    ranker->policy.ranker.turn++;
    needs = llmgw_rank_needs(&ranker->policy.ranker);

    if (needs & LLMGW_NEEDS_MATCHED) {
        llmgw_prefix_record(ranker->index,
                            scoring->candidates[chosen].replica,
                            scoring->blocks, scoring->nblocks);
    }

    if (needs & LLMGW_NEEDS_COLD && llmgw_scoring_is_cold(scoring)) {
        llmgw_cold_note(ranker->cold, scoring->candidates, scoring->n,
                        chosen);
    }
}


/*
 * Chooses one of the candidates, of which there must be one; returns its
 * position.
 */
uint32_t
route_choose(fleet_t *f, fleet_ranker_t *ranker,
    const fleet_choice_t *choice, fleet_request_t *r)
{
    unsigned         needs;
    uint32_t         i, chosen;
    llmgw_scoring_t  scoring;

    needs = llmgw_rank_needs(&ranker->policy.ranker);
    scoring = (llmgw_scoring_t) {
        .candidates = choice->list,
        .n = choice->n,
        .nblocks = fleet_prompt_blocks(f, r),
        .blocks = r->hashes,
        .matched = f->matched,
        .cold = ranker->cold
    };

    if (needs & LLMGW_NEEDS_CACHED) {
        for (i = 0; i < choice->n; i++) {
            choice->list[i].cached = view_cached(f, choice->list[i].replica,
                                                 r);
        }
    }

    if (needs & LLMGW_NEEDS_MATCHED) {
        llmgw_prefix_match(ranker->index, r->hashes, scoring.nblocks,
                           f->matched, f->scratch);
    }

    route_rank(f, ranker, &scoring, r);

    if (f->config->checks) {
        check_ranks(f, &ranker->policy.ranker, choice->n);
    }

    chosen = fleet_policy_best(f->ranks, choice->n, NULL);
    record_choice(f, ranker, &scoring, r, chosen);
    route_note(ranker, &scoring, chosen);

    return chosen;
}


void
route_reject(fleet_t *f, fleet_request_t *r)
{
    f->result->rejected_routing++;
    fleet_over(f, r, FLEET_REJECTED_ROUTING, "");
}


/* Sends a whole request to the replica. */
void
route_send(fleet_t *f, fleet_request_t *r, uint32_t replica)
{
    fleet_outcome_t       *outcome = fleet_outcome(f, r->index);
    const work_request_t  *w = work_at(f->work, r->index);

    outcome->status = FLEET_IN_INSTANCE;
    outcome->was_injected = 1;
    outcome->replica = replica;
    fleet_fill(f, r, &r->call);
    fleet_send(f, r, &r->call, replica);

    if (f->evict != NULL) {
        evict_track(f->evict, r->index, admit_priority(f, w),
                          outcome->gw_dispatch_us);
    }
}


void
route_decide(fleet_t *f, uint32_t index)
{
    uint32_t          chosen;
    fleet_choice_t    choice;
    fleet_request_t  *r = fleet_request(f, index);

    fleet_hash(f, r);

    if (fleet_has_pools(f->config)) {
        split_route(f, r);
        return;
    }

    choice = view_read(f, work_at(f->work, index), 0);

    if (choice.n == 0) {
        route_reject(f, r);
        return;
    }

    chosen = route_choose(f, &f->rankers[0], &choice, r);
    record_tell(f, FLEET_DECISION_ROUTING);
    fleet_outcome(f, index)->route_us = f->loop.clock_us;
    route_send(f, r, choice.list[chosen].replica);
}
