
/*
 * Rows of the zone: worker processes that begin, end, and are killed.
 *
 * A worker claims a row when it begins, and gives it back when it ends.  A
 * worker that was killed cannot.  So once a second one of the workers looks
 * whether the processes of all rows still live, by pid and start time, and
 * takes back a dead one's counts and the places in which it waited.  It looks
 * without the lock and decides under it: a row is taken back only if it still
 * belongs to the same process.
 */

#include "zone/zone.h"
#include "common/os/process.h"


#define NGX_HTTP_LLMGW_SWEEP_MS  1000


static void ngx_http_llmgw_zone_order(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_srv_conf_t *conf);
static ngx_uint_t ngx_http_llmgw_zone_may_sweep(ngx_http_llmgw_zone_t *zone);
static void ngx_http_llmgw_zone_look(ngx_http_llmgw_zone_t *zone);
static void ngx_http_llmgw_zone_take_back_dead_locked(
    ngx_http_llmgw_zone_t *zone);
static void ngx_http_llmgw_zone_take_back_locked(
    ngx_http_llmgw_zone_t *zone, uint32_t row);


ngx_http_llmgw_zone_t *
ngx_http_llmgw_zone_claim(ngx_shm_zone_t *shm_zone, ngx_log_t *log)
{
    uint32_t                i, nrows;
    uint64_t                started;
    ngx_http_llmgw_row_t   *row;
    ngx_http_llmgw_zone_t  *zone;

    if (ngx_http_llmgw_zone_make(shm_zone) != NGX_OK) {
        return NULL;
    }

    zone = ngx_calloc(sizeof(ngx_http_llmgw_zone_t), log);
    if (zone == NULL) {
        return NULL;
    }

    zone->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    zone->shared = zone->shpool->data;
    zone->name = shm_zone->shm.name;
    zone->log = log;
    zone->self.shared = zone->shared->admission;
    zone->self.row = LLMGW_NO_ROW;
    zone->self.process = ngx_process_slot;

    nrows = zone->self.shared->nrows;

    zone->looked = ngx_alloc(nrows * sizeof(ngx_http_llmgw_row_t), log);
    if (zone->looked == NULL) {
        ngx_free(zone);
        return NULL;
    }

    started = process_start_ticks(ngx_pid);
    ngx_http_llmgw_zone_look(zone);

    ngx_http_llmgw_zone_lock(zone);

    ngx_http_llmgw_zone_take_back_dead_locked(zone);

    for (i = 0; i < nrows; i++) {
        row = &zone->shared->rows[i];

        if (row->pid == 0) {
            row->started = started;
            ngx_memory_barrier();
            row->pid = ngx_pid;
            zone->self.row = i;
            break;
        }
    }

    ngx_http_llmgw_zone_unlock(zone);

    if (zone->self.row == LLMGW_NO_ROW) {
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "llmgw: zone \"%V\" has no row left of %uD, limits hold "
                      "for this worker alone", &zone->name, nrows);
    }

    ngx_http_llmgw_zone_order(zone, shm_zone->data);

    return zone;
}


/*
 * The settings of the newest workers apply to all that use the queue.  They are
 * put in force here, and not by the master: a configuration that fails after
 * its zones were made must change nothing.  A worker that starts so late that
 * there are newer ones must change nothing either.
 */

static void
ngx_http_llmgw_zone_order(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_srv_conf_t *conf)
{
    uint32_t  waiting;
    int       has_changed;

    ngx_http_llmgw_zone_lock(zone);

    has_changed = 0;

    if (conf->zone_number >= zone->shared->ordered) {
        zone->shared->ordered = conf->zone_number;
        has_changed = llmgw_admission_order(zone->self.shared,
                                            ngx_http_llmgw_conf_flow(conf));
    }

    waiting = zone->self.shared->queue.length;

    ngx_http_llmgw_zone_unlock(zone);

    if (has_changed) {
        ngx_log_error(NGX_LOG_NOTICE, zone->log, 0,
                      "llmgw: zone \"%V\" has another order of its queue, %uD "
                      "waiting requests are put in it", &zone->name, waiting);
    }
}


/* An orderly end: the worker's shares are taken back at once. */

void
ngx_http_llmgw_zone_yield(ngx_http_llmgw_zone_t *zone)
{
    if (zone->self.row != LLMGW_NO_ROW) {
        ngx_http_llmgw_zone_lock(zone);
        ngx_http_llmgw_zone_take_back_locked(zone, zone->self.row);
        ngx_http_llmgw_zone_unlock(zone);
    }

    ngx_free(zone->looked);
    ngx_free(zone);
}


void
ngx_http_llmgw_zone_sweep(ngx_http_llmgw_zone_t *zone)
{
    if (!ngx_http_llmgw_zone_may_sweep(zone)) {
        return;
    }

    ngx_http_llmgw_zone_look(zone);

    ngx_http_llmgw_zone_lock(zone);
    ngx_http_llmgw_zone_take_back_dead_locked(zone);
    ngx_http_llmgw_zone_forget_locked(zone);
    ngx_http_llmgw_recent_update_locked(zone->shared);
    ngx_http_llmgw_zone_unlock(zone);
}


/*
 * 1: no worker has swept within the last second, and no other will in the next.
 */

static ngx_uint_t
ngx_http_llmgw_zone_may_sweep(ngx_http_llmgw_zone_t *zone)
{
    ngx_uint_t      may;
    ngx_msec_int_t  elapsed;

    ngx_http_llmgw_zone_lock(zone);

    elapsed = (ngx_msec_int_t) (ngx_current_msec - zone->shared->swept_ms);
    may = (elapsed >= NGX_HTTP_LLMGW_SWEEP_MS);

    if (may) {
        zone->shared->swept_ms = ngx_current_msec;
    }

    ngx_http_llmgw_zone_unlock(zone);

    return may;
}


/* Leaves in zone->looked the rows of the dead, and pid 0 in all others. */

static void
ngx_http_llmgw_zone_look(ngx_http_llmgw_zone_t *zone)
{
    uint32_t  i, nrows;

    nrows = zone->self.shared->nrows;

    ngx_http_llmgw_zone_lock(zone);
    ngx_memcpy(zone->looked, zone->shared->rows,
               nrows * sizeof(ngx_http_llmgw_row_t));
    ngx_http_llmgw_zone_unlock(zone);

    for (i = 0; i < nrows; i++) {
        if (zone->looked[i].pid
            && !process_is_dead(zone->looked[i].pid, zone->looked[i].started))
        {
            zone->looked[i].pid = 0;
        }
    }
}


static void
ngx_http_llmgw_zone_take_back_dead_locked(ngx_http_llmgw_zone_t *zone)
{
    uint32_t               i;
    ngx_http_llmgw_row_t  *row, *looked;

    for (i = 0; i < zone->self.shared->nrows; i++) {
        row = &zone->shared->rows[i];
        looked = &zone->looked[i];

        if (looked->pid && looked->pid == row->pid
            && looked->started == row->started)
        {
            ngx_http_llmgw_zone_take_back_locked(zone, i);
        }
    }
}


/*
 * Frees the row last: if this worker is killed here, the next sweep does it
 * again.
 */

static void
ngx_http_llmgw_zone_take_back_locked(ngx_http_llmgw_zone_t *zone,
    uint32_t row)
{
    ngx_http_llmgw_zone_shared_t  *shared;

    shared = zone->shared;

    llmgw_admission_drop_row(shared->admission, row, ngx_current_msec);
    ngx_http_llmgw_metrics_add(&shared->base, &shared->counters[row], 1);
    ngx_memzero(&shared->levels[row], sizeof(ngx_http_llmgw_levels_t));
    llmgw_cohorts_drop_row(shared->cohorts, row);

    ngx_memory_barrier();
    shared->rows[row].pid = 0;
}
