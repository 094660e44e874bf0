
/*
 * The shared zone: what all workers count together.
 *
 *   shared | rows[nrows] | counters[nrows] | queue entries | buckets | slots
 *
 * A *slot* is a replica's: its id, the total of attempts in flight, one share
 * of that total for each row, its breaker.  A *row* is a worker process's,
 * claimed by pid and start time.  Total and share always change together,
 * under the zone's slab mutex, which nginx's master unlocks when its holder
 * dies; so a worker that is killed leaves behind exactly its shares, and
 * whoever sweeps next takes them off the totals and its places out of the
 * queue.  Nothing here is ever reset by a guess.
 *
 * Slots are found by a hash of the id and chained.  A worker that shows a
 * replica stamps its slot every second.  When no slot is left, one is taken
 * that nobody has stamped for a while and nobody counts in: stamps cannot
 * leak as reference counts would.
 *
 * A reload with the same name and size keeps all of it; old and new workers
 * count in the same totals and wait in the same queue.
 */

#ifndef _NGX_HTTP_LLMGW_ZONE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_ZONE_H_INCLUDED_


#include "conf/conf.h"
#include "core/breaker.h"
#include "core/admission/hedge.h"
#include "core/admission/queue.h"
#include "core/admission/high_water.h"
#include "core/policy/pick.h"

#include "zone/metrics.h"


#define NGX_HTTP_LLMGW_NO_ROW        NGX_MAX_UINT32_VALUE
#define NGX_HTTP_LLMGW_NO_SLOT       NGX_MAX_UINT32_VALUE
#define NGX_HTTP_LLMGW_SLOT_ID_BYTES 72     /* as long as an address may be */


typedef struct {
    ngx_pid_t                     pid;          /* 0: free */
    uint64_t                      started;      /* clock ticks since boot */
} ngx_http_llmgw_row_t;


struct ngx_http_llmgw_slot_s {
    u_char                        id[NGX_HTTP_LLMGW_SLOT_ID_BYTES];
    uint32_t                      id_len;       /* 0: free */
    uint32_t                      next;         /* in its bucket */
    ngx_msec_t                    stamp;        /* monotonic */
    llmgw_peer_counts_t           counts;
    llmgw_high_water_t            high;
    llmgw_breaker_t               breaker;
    uint64_t                      replica_start_ms;  /* the breaker is of */
    ngx_atomic_t                  tokens;       /* to clients */
    ngx_atomic_t                  attempts;
    ngx_atomic_t                  failures;     /* of them */
    uint64_t                      tokens_seen;  /* when rates were made */
    uint64_t                      attempts_seen;
    float                         tokens_rate;  /* a second */
    float                         attempts_rate;
    uint32_t                      first_token[  /* weights, decaying */
                                      NGX_HTTP_LLMGW_NFIRST_TOKEN];
    uint32_t                      shares[1];    /* of nrows */
};


/* How many there are now: gone with the process, into no base. */
typedef struct {
    uint32_t                      streams;
    uint32_t                      sessions;
} ngx_http_llmgw_levels_t;


typedef struct {
    uint32_t                      nrows;
    uint32_t                      nbuckets;     /* a power of two */
    uint32_t                      nslots;
    uint32_t                      cursor;       /* a free slot was here */
    uint32_t                      slot_bytes;
    ngx_http_llmgw_row_t         *rows;
    uint32_t                     *buckets;
    u_char                       *slots;
    llmgw_queue_t                 queue;
    llmgw_hedge_budget_t          hedge;
    ngx_http_llmgw_counters_t    *counters;     /* of nrows */
    ngx_http_llmgw_levels_t      *levels;       /* of nrows */
    ngx_http_llmgw_counters_t     base;         /* of rows given up */
    uint64_t                      tokens_base;  /* of slots given up */
    uint64_t                      attempts_base;
    uint64_t                      failures_base;
    ngx_msec_t                    rated_ms;     /* rates were made */
    ngx_msec_t                    decayed_ms;   /* weights were halved */
    uint32_t                      waits_open;   /* the queue, for circuits */
} ngx_http_llmgw_zone_shared_t;


/* In the process: which zone, and which row of it is ours. */
struct ngx_http_llmgw_zone_s {
    ngx_http_llmgw_zone_shared_t *shared;
    ngx_slab_pool_t              *shpool;
    ngx_log_t                    *log;
    uint32_t                      row;
    ngx_msec_t                    full_ms;      /* no slot was left */
    unsigned                      full:1;       /* said so in the log */
};


static ngx_inline ngx_http_llmgw_slot_t *
ngx_http_llmgw_zone_slot(ngx_http_llmgw_zone_shared_t *shared, uint32_t i)
{
    return (ngx_http_llmgw_slot_t *)
               (shared->slots + (size_t) i * shared->slot_bytes);
}


static ngx_inline void
ngx_http_llmgw_zone_lock(ngx_http_llmgw_zone_t *zone)
{
    ngx_shmtx_lock(&zone->shpool->mutex);
}


static ngx_inline void
ngx_http_llmgw_zone_unlock(ngx_http_llmgw_zone_t *zone)
{
    ngx_shmtx_unlock(&zone->shpool->mutex);
}


/* zone.c: made with the configuration; slots */
ngx_int_t ngx_http_llmgw_zone_add(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *conf);
ngx_http_llmgw_slot_t *ngx_http_llmgw_zone_attach(ngx_http_llmgw_zone_t *zone,
    ngx_str_t *id);
void ngx_http_llmgw_zone_forget_locked(ngx_http_llmgw_zone_shared_t *shared);

/* recent.c: what slots tell of the last seconds and minutes */
void ngx_http_llmgw_recent_first_token(ngx_http_llmgw_slot_t *slot,
    ngx_msec_t ms);
void ngx_http_llmgw_recent_update_locked(
    ngx_http_llmgw_zone_shared_t *shared);
void ngx_http_llmgw_recent_add(uint64_t *sum, ngx_http_llmgw_slot_t *slot);

/* rows.c: processes that come, go and die */
ngx_http_llmgw_zone_t *ngx_http_llmgw_zone_claim(ngx_shm_zone_t *shm_zone,
    ngx_log_t *log);
void ngx_http_llmgw_zone_yield(ngx_http_llmgw_zone_t *zone);
void ngx_http_llmgw_zone_sweep(ngx_http_llmgw_zone_t *zone);


#endif /* _NGX_HTTP_LLMGW_ZONE_H_INCLUDED_ */
