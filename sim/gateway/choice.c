
/*
 * How a gateway chooses if its policy reads the fleet, as in nginx
 * (ngx_http_llmgw_module/choice/): it has its own facts, prefix index and list
 * of cold requests, ranks the replicas, and core's pick draws from the ranks.
 *
 * Facts of all replicas are read again when a claim needs them and they have
 * the greatest age of the settings.  A replica that is down or hangs reports
 * nothing, so its facts expire.
 */

#include <stdlib.h>

#include "core/policy/facts.h"
#include "core/policy/ranked.h"
#include "sim/gateway/gateway_inner.h"


#define CHOICE_BLOCKS  2000     /* for each replica; the default of
                                   llmgw_prefix_index */
#define CHOICE_NODES   (1 << 22)    /* for all replicas: some 200 MB */

struct choice_s {
    fleet_policy_t         policy;
    llmgw_prefix_index_t  *index;
    llmgw_cold_t          *cold;
    llmgw_scoring_t        scoring;
    llmgw_ranked_t         ranked;
    llmgw_facts_t         *facts;
    llmgw_candidate_t     *candidates;
    uint32_t              *peers;
    uint32_t              *lives;       /* by replica: the process whose
                                           prefixes are known */
    uint32_t              *matched;
    uint64_t              *scratch;
    double                *ranks;
    double                *scores;
    uint64_t               random;
    int64_t                read_us;
};


static int
choice_init_index(gateway_t *g, choice_t *choice)
{
    void                 *memory;
    uint32_t              n = g->fleet->replicas;
    llmgw_prefix_size_t   size = { .replicas = n, .blocks = CHOICE_BLOCKS };

    size.total = n > CHOICE_NODES / CHOICE_BLOCKS ? CHOICE_NODES : 0;
    memory = gateway_alloc(g, 1, llmgw_prefix_bytes(&size));

    if (memory == NULL) {
        return -1;
    }

    choice->index = llmgw_prefix_init(memory, &size);
    choice->matched = gateway_alloc(g, n, sizeof(uint32_t));
    choice->scratch = gateway_alloc(g, llmgw_prefix_scratch(choice->index),
                                    sizeof(uint64_t));

    memory = gateway_alloc(g, 1, llmgw_cold_bytes(n));

    if (memory == NULL) {
        return -1;
    }

    choice->cold = llmgw_cold_init(memory, n);

    return 0;
}


/* 0, and NULL in *made if the ring chooses; or -1. */
int
choice_init(gateway_t *g, choice_t **made)
{
    uint32_t   i, n = g->fleet->replicas;
    choice_t  *choice;

    *made = NULL;

    if (g->config->policy.ranker.policy == LLMGW_RANK_AFFINITY) {
        return 0;
    }

    choice = *made = gateway_alloc(g, 1, sizeof(choice_t));

    if (choice == NULL) {
        return -1;
    }

    choice->policy = g->config->policy;
    choice->facts = gateway_alloc(g, n, sizeof(llmgw_facts_t));
    choice->candidates = gateway_alloc(g, n, sizeof(llmgw_candidate_t));
    choice->peers = gateway_alloc(g, n, sizeof(uint32_t));
    choice->lives = gateway_alloc(g, n, sizeof(uint32_t));
    choice->ranks = gateway_alloc(g, n, sizeof(double));
    choice->scores = gateway_alloc(g, n, sizeof(double));
    choice->read_us = -g->config->facts_us;

    for (i = 0; !g->failed && i < n; i++) {
        choice->facts[i].replica = i;
        choice->lives[i] = g->nodes[i].life;
    }

    if (llmgw_rank_needs(&choice->policy.ranker) != 0) {
        (void) choice_init_index(g, choice);
    }

    return g->failed ? -1 : 0;
}


void
choice_done(choice_t *choice)
{
    if (choice == NULL) {
        return;
    }

    free(choice->index);
    free(choice->cold);
    free(choice->facts);
    free(choice->candidates);
    free(choice->peers);
    free(choice->lives);
    free(choice->matched);
    free(choice->scratch);
    free(choice->ranks);
    free(choice->scores);
    free(choice);
}


static void
choice_update(gateway_t *g, front_t *front, uint32_t i)
{
    uint32_t             foreign;
    llmgw_slot_t        *slot;
    llmgw_facts_t        before, *facts = &front->choice->facts[i];
    model_facts_t        model;
    const node_truth_t  *node = &g->nodes[i];

    if (!node->is_up || node->is_dead || node->hangs) {
        return;
    }

    before = *facts;
    model_replica_facts(node->model, &model);
    slot = llmgw_slot(front->shared, front->places[i].slot);

    *facts = (llmgw_facts_t) {
        .reported_ms = gateway_ms(g),
        .replica = i,
        .active = node->active,
        .running = model.batch_size,
        .waiting = model.queue_depth + model.pending,
        .kv_permille = (uint16_t) ((uint64_t) (model.total_blocks
                                               - model.free_blocks) * 1000
                                   / model.total_blocks),
        .reported = LLMGW_FACT_RUNNING | LLMGW_FACT_WAITING | LLMGW_FACT_KV
    };

    foreign = llmgw_high_water_foreign(&slot->high, slot->counts.in_flight,
                                       facts->active, gateway_ms(g));
    llmgw_facts_update(facts, &before, slot->counts.in_flight, foreign);
}


/*
 * Forgets the prefixes of a replica that has a new process, whose cache is
 * empty.
 */
static void
choice_forget(gateway_t *g, choice_t *choice, uint32_t i)
{
    if (choice->lives[i] != g->nodes[i].life) {
        choice->lives[i] = g->nodes[i].life;
        llmgw_prefix_forget(choice->index, i);
        llmgw_cold_forget(choice->cold, i);
    }
}


static void
choice_match(gateway_t *g, choice_t *choice)
{
    uint32_t  i;

    for (i = 0; i < g->fleet->replicas; i++) {
        choice_forget(g, choice, i);
    }

    llmgw_prefix_match(choice->index, choice->scoring.blocks,
                       choice->scoring.nblocks, choice->matched,
                       choice->scratch);

    for (i = 0; i < choice->scoring.n; i++) {
        choice->candidates[i].cached =
            choice->matched[choice->candidates[i].replica];
    }

    choice->scoring.matched = choice->matched;
    choice->scoring.cold = choice->cold;
}


/*
 * Ranks the replicas for the stream's claim; the view's pick draws from the
 * ranks.
 */
void
choice_rank(gateway_t *g, front_t *front, uint32_t stream,
    const llmgw_claim_t *claim, uint64_t random)
{
    uint32_t             i;
    choice_t            *choice = front->choice;
    llmgw_fleet_t        fleet;
    llmgw_pick_key_t     key;
    llmgw_peer_state_t   state;

    if (choice == NULL) {
        return;
    }

    if (g->loop.clock_us - choice->read_us >= g->config->facts_us) {
        choice->read_us = g->loop.clock_us;

        for (i = 0; i < g->fleet->replicas; i++) {
            choice_update(g, front, i);
        }
    }

    key = llmgw_claim_key(claim, gateway_ms(g), random);
    fleet = (llmgw_fleet_t) { &front->view.pick, choice->facts,
                              gateway_ms(g) };

    choice->random = random;
    choice->scoring.candidates = choice->candidates;
    choice->scoring.n = llmgw_facts_candidates(&fleet, &key,
                                               choice->candidates,
                                               choice->peers, &state);
    choice->scoring.blocks = gateway_stream(g, stream)->hashes;
    choice->scoring.nblocks = work_at(g->work, stream)->input_tokens
                              / (uint32_t) g->fleet->model.block_tokens;

    if (choice->index != NULL) {
        choice_match(g, choice);
    }

    fleet_policy_rank(&choice->policy, &choice->scoring, choice->ranks,
                      choice->scores);
    llmgw_ranked_init(&choice->ranked, state, choice->peers, choice->ranks,
                      choice->scoring.n, &choice->random);
    front->view.pick.ranked = &choice->ranked;
}


/* The claim that was ranked last was given that replica. */
void
choice_note(front_t *front, uint32_t replica)
{
    uint32_t   position;
    choice_t  *choice = front->choice;

    if (choice == NULL) {
        return;
    }

    choice->policy.ranker.turn++;

    if (choice->index == NULL) {
        return;
    }

    llmgw_prefix_record(choice->index, replica, choice->scoring.blocks,
                        choice->scoring.nblocks);
    position = llmgw_ranked_position(&choice->ranked, replica);

    if (position != UINT32_MAX
        && (llmgw_rank_needs(&choice->policy.ranker) & LLMGW_NEEDS_COLD)
        && llmgw_scoring_is_cold(&choice->scoring))
    {
        llmgw_cold_note(choice->cold, choice->candidates,
                        choice->scoring.n, position);
    }
}
