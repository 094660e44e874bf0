
/*
 * A choice.  choice.h has the order of its parts.
 */

#include "choice/choice.h"


static ngx_int_t ngx_http_llmgw_choice_prefix(
    ngx_http_llmgw_choice_t *choice);
static ngx_int_t ngx_http_llmgw_choice_reserve(
    ngx_http_llmgw_choice_t *choice, ngx_uint_t npeers);
static ngx_int_t ngx_http_llmgw_choice_alloc(ngx_http_llmgw_choice_t *choice,
    ngx_uint_t npeers);
static void ngx_http_llmgw_choice_free(ngx_http_llmgw_choice_t *choice);
static void ngx_http_llmgw_choice_match(ngx_http_llmgw_choice_t *choice);
static void ngx_http_llmgw_choice_record(ngx_http_llmgw_choice_t *choice,
    uint32_t peer);


ngx_http_llmgw_choice_t *
ngx_http_llmgw_choice_create(ngx_http_llmgw_srv_conf_t *conf,
    ngx_http_llmgw_zone_t *zone, ngx_log_t *log)
{
    ngx_http_llmgw_choice_t  *choice;

    choice = ngx_calloc(sizeof(ngx_http_llmgw_choice_t), log);
    if (choice == NULL) {
        return NULL;
    }

    choice->conf = conf;
    choice->zone = zone;
    choice->log = log;
    choice->chosen = NGX_HTTP_LLMGW_CHOICE_NONE;
    choice->ranker.policy = conf->policy;
    choice->ranker.weighted = conf->weighted;

    if (conf->reads_prefix
        && ngx_http_llmgw_choice_prefix(choice) != NGX_OK)
    {
        ngx_http_llmgw_choice_destroy(choice);
        return NULL;
    }

    return choice;
}


static ngx_int_t
ngx_http_llmgw_choice_prefix(ngx_http_llmgw_choice_t *choice)
{
    choice->prefix = ngx_http_llmgw_prefix_create(choice->conf, choice->zone,
                                                  choice->log);
    if (choice->prefix == NULL) {
        return NGX_ERROR;
    }

    choice->matched = ngx_calloc(ngx_http_llmgw_prefix_slots(choice->prefix)
                                 * sizeof(uint32_t), choice->log);

    return choice->matched ? NGX_OK : NGX_ERROR;
}


void
ngx_http_llmgw_choice_destroy(ngx_http_llmgw_choice_t *choice)
{
    if (choice) {
        ngx_http_llmgw_choice_free(choice);
        ngx_free(choice->matched);
        ngx_http_llmgw_prefix_destroy(choice->prefix);
        ngx_free(choice);
    }
}


llmgw_ranked_t *
ngx_http_llmgw_choice_rank(ngx_http_llmgw_choice_t *choice,
    const ngx_http_llmgw_fleet_t *fleet, const llmgw_pick_key_t *key,
    const uint64_t *blocks, ngx_uint_t nblocks)
{
    llmgw_fleet_t        facts;
    llmgw_peer_state_t   state;

    /*
     * set before memory may fail: the choice is noted and logged all the same
     */
    choice->chosen = NGX_HTTP_LLMGW_CHOICE_NONE;
    choice->fleet = *fleet;
    choice->random = key->random;
    choice->ranker.turn = choice->zone->shared->turn;
    choice->scoring.n = 0;
    choice->scoring.blocks = blocks;
    choice->scoring.nblocks = nblocks;
    llmgw_ranked_init(&choice->ranked, LLMGW_PEER_ALIVE, NULL, NULL, 0, NULL);

    if (ngx_http_llmgw_choice_reserve(choice, fleet->pick.npeers) != NGX_OK) {
        return NULL;
    }

    facts.pool = &fleet->pick;
    facts.facts = fleet->facts;
    facts.clock_ms = fleet->clock_ms;

    choice->scoring.n = llmgw_facts_candidates(&facts, key,
                                               choice->candidates,
                                               choice->peers, &state);
    choice->scoring.candidates = choice->candidates;
    choice->scoring.matched = choice->matched;

    if (choice->prefix) {
        ngx_http_llmgw_choice_match(choice);
    }

    llmgw_rank(&choice->ranker, &choice->scoring, choice->ranks,
               choice->scores);

    llmgw_ranked_init(&choice->ranked, state, choice->peers, choice->ranks,
                      choice->scoring.n, &choice->random);

    return &choice->ranked;
}


/* The table may have more replicas than at the last decision. */

static ngx_int_t
ngx_http_llmgw_choice_reserve(ngx_http_llmgw_choice_t *choice,
    ngx_uint_t npeers)
{
    if (npeers <= choice->npeers) {
        return NGX_OK;
    }

    ngx_http_llmgw_choice_free(choice);

    if (ngx_http_llmgw_choice_alloc(choice, npeers + npeers / 4) == NGX_OK) {
        choice->no_memory = 0;
        return NGX_OK;
    }

    if (!choice->no_memory) {
        choice->no_memory = 1;
        ngx_log_error(NGX_LOG_ERR, choice->log, 0,
                      "llmgw: upstream \"%V\": no memory to rank %ui "
                      "replicas, the ring chooses", &choice->conf->name,
                      npeers);
    }

    return NGX_ERROR;
}


static ngx_int_t
ngx_http_llmgw_choice_alloc(ngx_http_llmgw_choice_t *choice,
    ngx_uint_t npeers)
{
    u_char  *p;

    p = ngx_alloc(npeers * (sizeof(llmgw_candidate_t) + 2 * sizeof(double)
                            + sizeof(uint32_t)),
                  choice->log);
    if (p == NULL) {
        return NGX_ERROR;
    }

    choice->npeers = npeers;
    choice->candidates = (llmgw_candidate_t *) p;
    p += npeers * sizeof(llmgw_candidate_t);
    choice->ranks = (double *) p;
    p += npeers * sizeof(double);
    choice->scores = (double *) p;
    p += npeers * sizeof(double);
    choice->peers = (uint32_t *) p;

    return NGX_OK;
}


static void
ngx_http_llmgw_choice_free(ngx_http_llmgw_choice_t *choice)
{
    ngx_free(choice->candidates);       /* and the arrays after it */

    choice->candidates = NULL;
    choice->npeers = 0;
}


/* Finds the part of the prompt that each replica has. */

static void
ngx_http_llmgw_choice_match(ngx_http_llmgw_choice_t *choice)
{
    uint32_t                 i;
    ngx_http_llmgw_fleet_t  *fleet;

    fleet = &choice->fleet;

    ngx_http_llmgw_prefix_match(choice->prefix, fleet->places, fleet->owners,
                                fleet->pick.npeers, choice->scoring.blocks,
                                choice->scoring.nblocks, choice->matched);

    for (i = 0; i < choice->scoring.n; i++) {
        choice->candidates[i].cached =
                           choice->matched[choice->candidates[i].replica];
    }

    if (choice->ranker.weighted.needs & LLMGW_NEEDS_COLD) {
        choice->scoring.cold = ngx_http_llmgw_prefix_cold(choice->prefix,
                                                          fleet->places,
                                                          fleet->owners,
                                                          fleet->pick.npeers);
    }
}


void
ngx_http_llmgw_choice_note(ngx_http_llmgw_choice_t *choice,
    llmgw_picked_t *picked)
{
    choice->chosen = llmgw_ranked_position(&choice->ranked, picked->peer);

    (void) ngx_atomic_fetch_add(&choice->zone->shared->turn, 1);

    if (choice->prefix == NULL) {
        return;
    }

    if (picked->route == LLMGW_ROUTE_POLICY
        && choice->candidates[choice->chosen].cached == 0)
    {
        picked->route = LLMGW_ROUTE_COLD;
    }

    ngx_http_llmgw_choice_record(choice, picked->peer);
}


/*
 * Also for a peer that was no candidate: it gets the prompt all the same.  Also
 * for no blocks: that makes the peer the slot's owner.
 */

static void
ngx_http_llmgw_choice_record(ngx_http_llmgw_choice_t *choice, uint32_t peer)
{
    llmgw_scoring_t  *scoring;

    scoring = &choice->scoring;

    ngx_http_llmgw_prefix_record(choice->prefix,
                                 choice->fleet.places[peer].slot,
                                 choice->fleet.owners[peer], scoring->blocks,
                                 scoring->nblocks);

    if (choice->chosen != NGX_HTTP_LLMGW_CHOICE_NONE
        && (choice->ranker.weighted.needs & LLMGW_NEEDS_COLD)
        && llmgw_scoring_is_cold(scoring))
    {
        ngx_http_llmgw_prefix_note_cold(choice->prefix, choice->candidates,
                                        scoring->n, choice->chosen);
    }
}
