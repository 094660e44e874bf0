
/*
 * Rows of the zone: worker processes that come, go, and die without a word.
 *
 * A worker claims a row when it begins, and gives it back when it ends.  One
 * that was killed cannot; every worker looks each second whether the processes
 * of all rows still live, by pid and start time, and takes back what a dead
 * one counted and the places in which it waited.
 */

#include "zone/zone.h"


static void ngx_http_llmgw_zone_sweep_locked(
    ngx_http_llmgw_zone_shared_t *shared);
static ngx_uint_t ngx_http_llmgw_zone_is_dead(ngx_http_llmgw_row_t *row);
static void ngx_http_llmgw_zone_take_back(
    ngx_http_llmgw_zone_shared_t *shared, uint32_t row);
static uint64_t ngx_http_llmgw_zone_started(ngx_pid_t pid);


ngx_http_llmgw_zone_t *
ngx_http_llmgw_zone_claim(ngx_shm_zone_t *shm_zone, ngx_log_t *log)
{
    uint32_t                       i;
    ngx_http_llmgw_zone_t         *zone;
    ngx_http_llmgw_zone_shared_t  *shared;

    zone = ngx_calloc(sizeof(ngx_http_llmgw_zone_t), log);
    if (zone == NULL) {
        return NULL;
    }

    zone->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    shared = zone->shpool->data;
    zone->shared = shared;
    zone->log = log;
    zone->row = NGX_HTTP_LLMGW_NO_ROW;

    ngx_shmtx_lock(&zone->shpool->mutex);

    ngx_http_llmgw_zone_sweep_locked(shared);

    for (i = 0; i < shared->nrows; i++) {
        if (shared->rows[i].pid == 0) {
            shared->rows[i].pid = ngx_pid;
            shared->rows[i].started = ngx_http_llmgw_zone_started(ngx_pid);
            zone->row = i;
            break;
        }
    }

    ngx_shmtx_unlock(&zone->shpool->mutex);

    if (zone->row == NGX_HTTP_LLMGW_NO_ROW) {
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "llmgw: zone \"%V\" has no row left of %uD, this worker "
                      "counts for itself alone", &shm_zone->shm.name,
                      shared->nrows);
    }

    return zone;
}


/* An orderly end: shares go with the worker, at once. */

void
ngx_http_llmgw_zone_yield(ngx_http_llmgw_zone_t *zone)
{
    if (zone->row != NGX_HTTP_LLMGW_NO_ROW) {
        ngx_shmtx_lock(&zone->shpool->mutex);
        ngx_http_llmgw_zone_take_back(zone->shared, zone->row);
        ngx_shmtx_unlock(&zone->shpool->mutex);
    }

    ngx_free(zone);
}


void
ngx_http_llmgw_zone_sweep(ngx_http_llmgw_zone_t *zone)
{
    ngx_shmtx_lock(&zone->shpool->mutex);
    ngx_http_llmgw_zone_sweep_locked(zone->shared);
    ngx_http_llmgw_zone_forget_locked(zone->shared);
    ngx_http_llmgw_recent_update_locked(zone->shared);
    ngx_shmtx_unlock(&zone->shpool->mutex);
}


static void
ngx_http_llmgw_zone_sweep_locked(ngx_http_llmgw_zone_shared_t *shared)
{
    uint32_t  i;

    for (i = 0; i < shared->nrows; i++) {
        if (shared->rows[i].pid
            && ngx_http_llmgw_zone_is_dead(&shared->rows[i]))
        {
            ngx_http_llmgw_zone_take_back(shared, i);
        }
    }
}


/*
 * Only what is known to be dead is: that we cannot read when a process began,
 * out of descriptors for example, tells nothing about it.
 */

static ngx_uint_t
ngx_http_llmgw_zone_is_dead(ngx_http_llmgw_row_t *row)
{
    uint64_t  started;

    if (kill(row->pid, 0) == -1 && ngx_errno == NGX_ESRCH) {
        return 1;
    }

    started = ngx_http_llmgw_zone_started(row->pid);

    return started && started != row->started;
}


static void
ngx_http_llmgw_zone_take_back(ngx_http_llmgw_zone_shared_t *shared,
    uint32_t row)
{
    uint32_t                i;
    ngx_http_llmgw_slot_t  *slot;

    for (i = 0; i < shared->nslots; i++) {
        slot = ngx_http_llmgw_zone_slot(shared, i);

        if (slot->shares[row] == 0) {
            continue;
        }

        llmgw_high_water_note(&slot->high, slot->counts.in_flight,
                              ngx_current_msec);

        slot->counts.in_flight -= slot->shares[row];
        slot->shares[row] = 0;
    }

    (void) llmgw_queue_drop_row(&shared->queue, row);
    ngx_http_llmgw_metrics_add(&shared->base, &shared->counters[row], 1);
    ngx_memzero(&shared->levels[row], sizeof(ngx_http_llmgw_levels_t));

    shared->rows[row].pid = 0;
}


/*
 * When the process began, in clock ticks since boot: field 22 of its stat,
 * counted behind the name, which may hold anything.  A pid alone may have
 * been given to another process meanwhile.  0: it could not be read.
 */

static uint64_t
ngx_http_llmgw_zone_started(ngx_pid_t pid)
{
    char        *p, buf[1024];
    ssize_t      n;
    ngx_fd_t     fd;
    ngx_uint_t   field;
    u_char       path[sizeof("/proc//stat") + NGX_INT64_LEN];

    ngx_sprintf(path, "/proc/%P/stat%Z", pid);

    fd = open((char *) path, O_RDONLY|O_CLOEXEC);
    if (fd == -1) {
        return 0;
    }

    n = read(fd, buf, sizeof(buf) - 1);
    (void) close(fd);

    if (n <= 0) {
        return 0;
    }

    buf[n] = '\0';
    p = strrchr(buf, ')');

    for (field = 2; p && field < 22; field++) {
        p = strchr(p + 1, ' ');
    }

    return p ? strtoull(p, NULL, 10) : 0;
}
