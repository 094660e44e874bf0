
/*
 * What a pool's zone has counted in all, and for which models.
 *
 * A pool serves one model after another, and the pages show counts by model.
 * Counts never move and are never taken back: workers add to their rows without
 * a lock.  So a binding notes what was counted before it, and the model's share
 * is what came since; the rest is that of models which are gone.  Of replicas
 * it notes the counts of those that are gone: a replica that is still there
 * continues under the model that is bound now.
 */

#include "zone/zone.h"


/* Counters consist of words only (zone/metrics.h). */
#define NGX_HTTP_LLMGW_TOTALS_WORDS                                           \
    (sizeof(ngx_http_llmgw_totals_t) / sizeof(uint64_t))


static ngx_uint_t ngx_http_llmgw_totals_zone(ngx_shm_zone_t *shm_zone,
    ngx_http_llmgw_zone_t *zone);
static void ngx_http_llmgw_totals_sum_locked(
    ngx_http_llmgw_zone_shared_t *shared, ngx_http_llmgw_totals_t *sum);
static void ngx_http_llmgw_totals_slots_locked(
    ngx_http_llmgw_zone_shared_t *shared, ngx_http_llmgw_totals_t *sum);


/*
 * A worker may have no row in the zone of a pool that other workers use; what
 * is read here needs none.  zone: for the lock; if a dead process held it, the
 * next holder mends the zone.  0: the zone is not made.
 */

static ngx_uint_t
ngx_http_llmgw_totals_zone(ngx_shm_zone_t *shm_zone,
    ngx_http_llmgw_zone_t *zone)
{
    zone->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    zone->shared = zone->shpool->data;

    if (zone->shared == NULL) {
        return 0;
    }

    zone->self.shared = zone->shared->admission;
    zone->self.row = LLMGW_NO_ROW;
    zone->name = shm_zone->shm.name;
    zone->log = ngx_cycle->log;
    zone->mended = 0;

    return 1;
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
    sum->denials = shared->denials_base;

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
            sum->denials += slot->denials;
        }
    }
}


void
ngx_http_llmgw_totals_add(ngx_shm_zone_t *shm_zone, ngx_uint_t is_bound,
    ngx_http_llmgw_totals_t *to)
{
    ngx_http_llmgw_zone_t    zone;
    ngx_http_llmgw_totals_t  sum;

    if (!ngx_http_llmgw_totals_zone(shm_zone, &zone)) {
        return;
    }

    ngx_http_llmgw_zone_lock(&zone);

    if (is_bound) {
        sum = zone.shared->others;

    } else {
        ngx_http_llmgw_totals_sum_locked(zone.shared, &sum);
        ngx_http_llmgw_totals_slots_locked(zone.shared, &sum);
    }

    ngx_http_llmgw_zone_unlock(&zone);

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


/*
 * If this worker is killed here, the binding is not made, and the next one does
 * this again.
 */

void
ngx_http_llmgw_totals_part(ngx_shm_zone_t *shm_zone)
{
    ngx_http_llmgw_zone_t    zone;
    ngx_http_llmgw_totals_t  sum;

    if (!ngx_http_llmgw_totals_zone(shm_zone, &zone)) {
        return;
    }

    ngx_http_llmgw_zone_lock(&zone);
    ngx_http_llmgw_totals_sum_locked(zone.shared, &sum);
    zone.shared->others = sum;
    ngx_http_llmgw_zone_unlock(&zone);
}


ngx_uint_t
ngx_http_llmgw_zone_is_idle(ngx_shm_zone_t *shm_zone)
{
    uint32_t                       i, n;
    ngx_http_llmgw_zone_t          zone;
    ngx_http_llmgw_zone_shared_t  *shared;

    if (!ngx_http_llmgw_totals_zone(shm_zone, &zone)) {
        return 1;
    }

    shared = zone.shared;

    ngx_http_llmgw_zone_lock(&zone);

    n = shared->admission->queue.length;

    for (i = 0; i < shared->admission->nrows; i++) {
        n += shared->rows[i].pid ? shared->levels[i].streams : 0;
    }

    ngx_http_llmgw_zone_unlock(&zone);

    return n == 0;
}
