
/*
 * The prefix zone: the workers' common record of the replicas to which prompts
 * were sent, for policies that read it.  There is one beside the zone of each
 * upstream{} that has such a policy, and it uses the slots of that zone.
 *
 *     head: layout and settings | prefix index (core/prefix/shared_index.h)
 *                               | cold list (core/policy/cold.h)
 *
 * Writers hold this zone's slab mutex, which nginx's master unlocks when its
 * holder dies; the next holder repairs it.  Readers need no lock: a sequence
 * number shows whether the words that they read were being changed.  After a
 * few tries, or if its writer died, they take the lock, too.  The lock of the
 * upstream's own zone is never held at the same time.
 *
 * A replica is known by its slot and its owner.  If a slot has another owner,
 * it is another replica, or another process of the same one with an empty
 * cache: the slot's blocks are forgotten.
 *
 * A reload keeps the zone if `block`, `blocks`, its size and the upstream's own
 * zone are unchanged.  Otherwise new workers begin with an empty one, which is
 * logged once, and old workers keep theirs.
 */

#ifndef _NGX_HTTP_LLMGW_PREFIX_ZONE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_PREFIX_ZONE_H_INCLUDED_


#include "core/policy/cold.h"

#include "zone/zone.h"


typedef struct ngx_http_llmgw_prefix_s  ngx_http_llmgw_prefix_t;


/*
 * Called for each upstream{} of ours behind its own zone: adds the prefix zone
 * where lscf->reads_prefix, else warns if there is an llmgw_prefix_index line.
 * From then on lscf->index.shm_zone is set if the policy reads the index, and
 * fronts make blocks of lscf->index.block bytes, at most lscf->index.match.
 */
ngx_int_t ngx_http_llmgw_prefix_add(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *lscf);

/* In a worker, where lscf->index.shm_zone is set.  NULL: no memory. */
ngx_http_llmgw_prefix_t *ngx_http_llmgw_prefix_create(
    ngx_http_llmgw_srv_conf_t *lscf, ngx_http_llmgw_zone_t *zone,
    ngx_log_t *log);
void ngx_http_llmgw_prefix_destroy(ngx_http_llmgw_prefix_t *prefix);

/* All slots are below this number. */
uint32_t ngx_http_llmgw_prefix_slots(ngx_http_llmgw_prefix_t *prefix);

/* A process of a replica, never 0.  start_ms: 0 if it is not known. */
uint64_t ngx_http_llmgw_prefix_owner(const void *id, size_t len,
    uint64_t start_ms);

/*
 * Sets matched[places[i].slot] for each i < n: how many of the blocks that
 * replica has, from the first on without a gap.  A place without a slot is
 * passed over.  matched has room for all slots; elements of other slots may
 * change, too.
 */
void ngx_http_llmgw_prefix_match(ngx_http_llmgw_prefix_t *prefix,
    const llmgw_place_t *places, const uint64_t *owners, ngx_uint_t n,
    const uint64_t *blocks, uint32_t nblocks, uint32_t *matched);

/*
 * The prompt with these blocks goes to that replica; LLMGW_NO_SLOT is ignored.
 * Counts llmgw_prefix_blocks.
 */
void ngx_http_llmgw_prefix_record(ngx_http_llmgw_prefix_t *prefix,
    uint32_t slot, uint64_t owner, const uint64_t *blocks, uint32_t nblocks);

/*
 * The cold list as it is now, for llmgw_scoring_t: the worker's own copy, which
 * lasts until the next call.
 */
llmgw_cold_t *ngx_http_llmgw_prefix_cold(ngx_http_llmgw_prefix_t *prefix,
    const llmgw_place_t *places, const uint64_t *owners, ngx_uint_t n);

/* A cold request goes to candidates[chosen]; called after its record. */
void ngx_http_llmgw_prefix_note_cold(ngx_http_llmgw_prefix_t *prefix,
    const llmgw_candidate_t *candidates, uint32_t n, uint32_t chosen);


#endif /* _NGX_HTTP_LLMGW_PREFIX_ZONE_H_INCLUDED_ */
