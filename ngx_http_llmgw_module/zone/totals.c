
/*
 * What a pool's zone has counted in all, and whose it is.
 *
 * A pool serves one model after another, and the pages show counts by model.
 * Counts never move and are never taken back: workers add to their rows without
 * a lock.  So a binding notes what was counted before it, and the model's share
 * is what came since; the rest is that of models which are gone.  Of replicas
 * it notes what those had that are gone: one that is still there goes on under
 * the model that is bound now.
 */

#include "zone/zone.h"


/* Counters are nothing but words (zone/metrics.h). */
#define NGX_HTTP_LLMGW_TOTALS_WORDS                                           \
    (sizeof(ngx_http_llmgw_totals_t) / sizeof(uint64_t))


static ngx_http_llmgw_zone_shared_t *ngx_http_llmgw_totals_shared(
    ngx_shm_zone_t *shm_zone, ngx_slab_pool_t **shpool);
static void ngx_http_llmgw_totals_sum_locked(
    ngx_http_llmgw_zone_shared_t *shared, ngx_http_llmgw_totals_t *sum);
static void ngx_http_llmgw_totals_slots_locked(
    ngx_http_llmgw_zone_shared_t *shared, ngx_http_llmgw_totals_t *sum);


/* NULL: it is not made. */

static ngx_http_llmgw_zone_shared_t *
ngx_http_llmgw_totals_shared(ngx_shm_zone_t *shm_zone,
    ngx_slab_pool_t **shpool)
{
    *shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    return (*shpool)->data;
}


static void
ngx_http_llmgw_totals_sum_locked(ngx_http_llmgw_zone_shared_t *shared,
    ngx_http_llmgw_totals_t *sum)
{
    uint32_t  i;

    sum->counters = shared->base;
    sum->tokens = shared->tokens_base;
    sum->attempts = shared->attempts_base;
    sum->failures = shared->failures_base;

    for (i = 0; i < shared->admission->nrows; i++) {
        if (shared->rows[i].pid) {
            ngx_http_llmgw_metrics_add(&sum->counters, &shared->counters[i],
                                       0);
        }
    }
}


static void
ngx_http_llmgw_totals_slots_locked(ngx_http_llmgw_zone_shared_t *shared,
    ngx_http_llmgw_totals_t *sum)
{
    uint32_t                i;
    ngx_http_llmgw_slot_t  *slot;

    for (i = 0; i < shared->admission->nslots; i++) {
        slot = ngx_http_llmgw_zone_slot(shared, i);

        if (slot->admission.id_len) {
            sum->tokens += slot->tokens;
            sum->attempts += slot->attempts;
            sum->failures += slot->failures;
        }
    }
}


void
ngx_http_llmgw_totals_add(ngx_shm_zone_t *shm_zone, ngx_uint_t is_bound,
    ngx_http_llmgw_totals_t *to)
{
    ngx_slab_pool_t               *shpool;
    ngx_http_llmgw_totals_t        sum;
    ngx_http_llmgw_zone_shared_t  *shared;

    shared = ngx_http_llmgw_totals_shared(shm_zone, &shpool);
    if (shared == NULL) {
        return;
    }

    ngx_shmtx_lock(&shpool->mutex);

    if (is_bound) {
        sum = shared->others;

    } else {
        ngx_http_llmgw_totals_sum_locked(shared, &sum);
        ngx_http_llmgw_totals_slots_locked(shared, &sum);
    }

    ngx_shmtx_unlock(&shpool->mutex);

    ngx_http_llmgw_totals_merge(to, &sum, 1);
}


void
ngx_http_llmgw_totals_merge(ngx_http_llmgw_totals_t *to,
    const ngx_http_llmgw_totals_t *from, int sign)
{
    uint64_t        *words;
    ngx_uint_t       i;
    const uint64_t  *other;

    words = (uint64_t *) to;
    other = (const uint64_t *) from;

    for (i = 0; i < NGX_HTTP_LLMGW_TOTALS_WORDS; i++) {
        words[i] += sign * other[i];
    }
}


/* Killed here: the binding is not made, and the next one does it again. */

void
ngx_http_llmgw_totals_part(ngx_shm_zone_t *shm_zone)
{
    ngx_slab_pool_t               *shpool;
    ngx_http_llmgw_totals_t        sum;
    ngx_http_llmgw_zone_shared_t  *shared;

    shared = ngx_http_llmgw_totals_shared(shm_zone, &shpool);
    if (shared == NULL) {
        return;
    }

    ngx_shmtx_lock(&shpool->mutex);
    ngx_http_llmgw_totals_sum_locked(shared, &sum);
    shared->others = sum;
    ngx_shmtx_unlock(&shpool->mutex);
}


ngx_uint_t
ngx_http_llmgw_zone_is_idle(ngx_shm_zone_t *shm_zone)
{
    uint32_t                       i, n;
    ngx_slab_pool_t               *shpool;
    ngx_http_llmgw_zone_shared_t  *shared;

    shared = ngx_http_llmgw_totals_shared(shm_zone, &shpool);
    if (shared == NULL) {
        return 1;
    }

    ngx_shmtx_lock(&shpool->mutex);

    n = shared->admission->queue.length;

    for (i = 0; i < shared->admission->nrows; i++) {
        n += shared->rows[i].pid ? shared->levels[i].streams : 0;
    }

    ngx_shmtx_unlock(&shpool->mutex);

    return n == 0;
}
