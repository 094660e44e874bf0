
/*
 * A choice: how a pool whose policy reads the fleet (llmgw_policy) chooses
 * a replica.
 *
 *   before the lock   rank   candidates, made of the peers and their facts;
 *                            what of the prompt each has; a rank for each
 *   under the lock           core's pick draws from the best down, and judges
 *                            only whether each is eligible
 *                            (core/policy/ranked.h)
 *   after the lock    note   the prompt is at that replica from now on; round
 *                            robin's turn moves
 *
 * Every claim is ranked again: a granted one that has waited, a failover, a
 * hedge's second.
 *
 * A pool has one choice, with the memory for it: the inputs of the last
 * decision stay there until this worker's next one, for the decision log. A
 * pool with the policy affinity has none.
 */

#ifndef _NGX_HTTP_LLMGW_CHOICE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_CHOICE_H_INCLUDED_


#include "core/policy/facts.h"
#include "core/policy/rank.h"
#include "core/policy/ranked.h"

#include "choice/prefix_zone.h"
#include "conf/conf.h"
#include "proto/members/members.h"
#include "zone/zone.h"


#define NGX_HTTP_LLMGW_CHOICE_NONE  UINT32_MAX


/* The peers of a pool as this worker knows them, by their index. */
typedef struct {
    llmgw_pick_pool_t             pick;
    const llmgw_facts_t          *facts;
    const llmgw_place_t          *places;       /* slots have the ids */
    const uint64_t               *owners;       /* of ..._prefix_owner() */
    uint64_t                      clock_ms;     /* CLOCK_MONOTONIC */
} ngx_http_llmgw_fleet_t;


typedef struct {
    ngx_http_llmgw_srv_conf_t    *conf;
    ngx_http_llmgw_zone_t        *zone;
    ngx_http_llmgw_prefix_t      *prefix;       /* NULL: it reads none */
    ngx_log_t                    *log;

    /* inputs of the last decision */
    ngx_http_llmgw_fleet_t        fleet;        /* as long as its table */
    llmgw_ranker_t                ranker;       /* policy, weights, turn */
    llmgw_scoring_t               scoring;      /* candidates, n, blocks,
                                                   matched by slot */
    llmgw_ranked_t                ranked;       /* peers by position, draws */
    double                       *ranks;        /* by position */
    uint64_t                      random;       /* orders equal ranks */
    uint32_t                      chosen;       /* position, or NONE: it was
                                                   no candidate */

    /* the memory for it */
    ngx_uint_t                    npeers;
    llmgw_candidate_t            *candidates;
    uint32_t                     *peers;
    double                       *scores;
    uint32_t                     *matched;
    unsigned                      no_memory:1;  /* already logged */
} ngx_http_llmgw_choice_t;


/* NULL: no memory. */
ngx_http_llmgw_choice_t *ngx_http_llmgw_choice_create(
    ngx_http_llmgw_srv_conf_t *conf, ngx_http_llmgw_zone_t *zone,
    ngx_log_t *log);
void ngx_http_llmgw_choice_destroy(ngx_http_llmgw_choice_t *choice);

/*
 * Ranks the candidates of a request, without the zone's lock; the pick that
 * follows is asked with choice->ranked, which is returned.  NULL: there is no
 * memory, and the ring chooses.  blocks: the prompt's, see core/prefix/; 0 if
 * unknown.
 */
llmgw_ranked_t *ngx_http_llmgw_choice_rank(ngx_http_llmgw_choice_t *choice,
    const ngx_http_llmgw_fleet_t *fleet, const llmgw_pick_key_t *key,
    const uint64_t *blocks, ngx_uint_t nblocks);

/*
 * The request goes to picked->peer, as ranked last; without the zone's lock.
 * The route becomes COLD if the replica had nothing of the prompt.
 */
void ngx_http_llmgw_choice_note(ngx_http_llmgw_choice_t *choice,
    llmgw_picked_t *picked);

/*
 * facts.c: sets *facts to what a replica reports; load NULL: it reports
 * nothing. in_flight: this gateway's requests there now; foreign: those of
 * others, as far as known.
 */
void ngx_http_llmgw_choice_update(llmgw_facts_t *facts, uint32_t slot,
    const llmgw_member_load_t *load, uint32_t in_flight, uint32_t foreign);


#endif /* _NGX_HTTP_LLMGW_CHOICE_H_INCLUDED_ */
