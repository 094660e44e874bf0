
/*
 * The gateway's view of the replicas.
 *
 * The number of requests in flight is the gateway's own count, and always
 * current.  The other facts may be as old as the settings allow: when a
 * decision needs them and they are older, those of all replicas are read again.
 * Before the first reading all are 0.  If the greatest age is 0, a replica's
 * facts are stored when they change, so that a decision only reads one array.
 *
 * The view of cached blocks is frozen in the same way, with its own age.
 */

#include <stdlib.h>

#include "sim/fleet/fleet_inner.h"


static void
view_init_roles(fleet_t *f)
{
    uint32_t              i, prefill, decode, both;
    const fleet_pools_t  *pools = &f->config->pools;

    prefill = pools->prefill;
    decode = prefill + pools->decode;
    both = decode + pools->both;

    for (i = 0; i < f->config->replicas; i++) {

        if (!fleet_has_pools(f->config)) {
            f->roles[i] = FLEET_PREFILLS | FLEET_DECODES;

        } else if (i < prefill) {
            f->roles[i] = FLEET_PREFILLS;

        } else if (i < decode) {
            f->roles[i] = FLEET_DECODES;

        } else if (i < both) {
            f->roles[i] = FLEET_PREFILLS | FLEET_DECODES;
        }
    }
}


int
view_init(fleet_t *f)
{
    uint32_t  i, n;

    n = f->config->replicas;
    f->seen = fleet_alloc(f, n, sizeof(llmgw_candidate_t));
    f->subset = fleet_alloc(f, n, sizeof(llmgw_candidate_t));
    f->seen_free = fleet_alloc(f, n, sizeof(uint32_t));
    f->roles = fleet_alloc(f, n, 1);

    if (f->failed) {
        return -1;
    }

    for (i = 0; i < n; i++) {
        f->seen[i].replica = i;
    }

    view_init_roles(f);

    return 0;
}


static void
view_read_one(fleet_t *f, uint32_t replica)
{
    model_facts_t       facts;
    llmgw_candidate_t  *seen = &f->seen[replica];

    model_replica_facts(f->memory->nodes[replica].model, &facts);

    seen->queue_depth = (int32_t) facts.queue_depth;
    seen->batch_size = (int32_t) facts.batch_size;
    seen->kv_utilization = (double) (facts.total_blocks - facts.free_blocks)
                           / (double) facts.total_blocks;
    f->seen_free[replica] = facts.free_blocks;
}


void
view_update(fleet_t *f, uint32_t replica)
{
    if (f->config->routing.snapshot_us == 0) {
        view_read_one(f, replica);
    }
}


static void
view_refresh_cache(fleet_t *f)
{
    int64_t  age_us;

    age_us = f->config->routing.cache_us;

    if (age_us > 0 && f->loop.clock_us - f->cache_us >= age_us) {
        f->memory->view++;
        f->cache_us = f->loop.clock_us;
    }
}


static void
view_refresh(fleet_t *f)
{
    int64_t   age_us;
    uint32_t  i;

    age_us = f->config->routing.snapshot_us;

    if (age_us == 0 || f->loop.clock_us - f->seen_us < age_us) {
        return;
    }

    for (i = 0; i < f->config->replicas; i++) {
        view_read_one(f, i);
    }

    f->seen_us = f->loop.clock_us;
}


/*
 * The candidates for a request, or, if w is NULL, for any request.  If the
 * fleet does not serve the request's model, no replica is a candidate.  role:
 * only replicas of these pools, 0: all.
 */
fleet_choice_t
view_read(fleet_t *f, const work_request_t *w, uint8_t role)
{
    uint32_t        i;
    fleet_choice_t  choice;

    view_refresh_cache(f);

    if (w != NULL && w->model->id != 0 && w->model != f->model_name) {
        return (fleet_choice_t) { f->subset, 0 };
    }

    view_refresh(f);

    if (role == 0) {
        return (fleet_choice_t) { f->seen, f->config->replicas };
    }

    choice = (fleet_choice_t) { f->subset, 0 };

    for (i = 0; i < f->config->replicas; i++) {

        if (f->roles[i] & role) {
            choice.list[choice.n++] = f->seen[i];
        }
    }

    return choice;
}


/*
 * How many blocks of the request's prompt the gateway believes to be cached at
 * the replica.
 */
uint32_t
view_cached(fleet_t *f, uint32_t replica, const fleet_request_t *r)
{
    uint32_t          n;
    model_replica_t  *model;

    model = f->memory->nodes[replica].model;
    n = fleet_prompt_blocks(f, r);

    return f->config->routing.cache_us > 0
           ? model_replica_viewed(model, r->hashes, n)
           : model_replica_cached(model, r->hashes, n);
}
