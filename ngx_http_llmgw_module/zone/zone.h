
/*
 * The shared zone: what all workers count together.
 *
 *   shared | rows[nrows] | counters[nrows] | levels[nrows] | cohorts
 *          | takeovers | responses | admission
 *
 * Which request gets a replica, and which waits, is decided in admission's
 * memory (core/admission/shared.h): slots of replicas, shares of workers, the
 * queue.  This room makes it, locks it, gives out its rows, and takes back
 * what dead workers held; behind admission's part of a slot it keeps counters
 * of its own.
 *
 * The lock is the zone's slab mutex, which nginx's master unlocks when its
 * holder dies.  A worker may die in the middle of a change: the next holder
 * finds admission's dirty word set and has it mended before anything else.
 * While the lock is held there are no system calls and no log.
 *
 * A *row* is a worker process's, claimed by pid and start time.  Once a second
 * one worker looks, without the lock, whether the processes of all rows still
 * live, and takes back the rows of the dead, with it.
 *
 * A worker that has a replica in its table stamps its slot every second.
 * Slots that no worker has stamped for a while, and that no attempt counts in,
 * are given up: stamps cannot leak as reference counts would.
 *
 * A reload with the same name and size keeps all of it; old and new workers
 * count in the same totals and wait in the same queue.  With another layout or
 * size, the zone begins at zero, which is logged once.
 */

#ifndef _NGX_HTTP_LLMGW_ZONE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_ZONE_H_INCLUDED_


#include "conf/conf.h"
#include "core/admission/admission.h"
#include "core/responses.h"
#include "core/takeover.h"

#include "zone/cohorts.h"
#include "zone/metrics.h"


/* Raise it with every change of the zone's layout that keeps all sizes. */
#define NGX_HTTP_LLMGW_ZONE_VERSION  4

#define NGX_HTTP_LLMGW_ZONE_MAGIC    0x656e6f7a77676d6cULL   /* lmgwzone */


typedef struct {
    ngx_pid_t                     pid;          /* 0: free */
    uint64_t                      started;      /* clock ticks since boot */
} ngx_http_llmgw_row_t;


struct ngx_http_llmgw_slot_s {
    llmgw_slot_t                  admission;
    ngx_atomic_t                  tokens;       /* to clients */
    ngx_atomic_t                  attempts;
    ngx_atomic_t                  failures;     /* of them */
    ngx_atomic_t                  denials;      /* of models that it reports */
    uint64_t                      tokens_seen;  /* when rates were made */
    uint64_t                      attempts_seen;
    float                         tokens_rate;  /* a second */
    float                         attempts_rate;
    uint32_t                      first_token[  /* weights, decaying */
                                      NGX_HTTP_LLMGW_NFIRST_TOKEN];
};


/* How many there are now: gone with the process, into no base. */
typedef struct {
    uint32_t                      streams;
    uint32_t                      sessions;
    uint32_t                      held;         /* requests */
    uint64_t                      body_bytes[LLMGW_NSHARES];
} ngx_http_llmgw_levels_t;


/* What was ever counted, with replicas that are gone. */
typedef struct {
    ngx_http_llmgw_counters_t     counters;
    uint64_t                      tokens;
    uint64_t                      attempts;
    uint64_t                      failures;
    uint64_t                      denials;
} ngx_http_llmgw_totals_t;


typedef struct {
    uint64_t                      magic;
    uint64_t                      layout;
    llmgw_admission_t            *admission;
    ngx_http_llmgw_row_t         *rows;         /* as many as admission has */
    ngx_http_llmgw_counters_t    *counters;     /* the same */
    ngx_http_llmgw_levels_t      *levels;       /* the same */
    llmgw_cohorts_t              *cohorts;      /* classes and tenants */
    llmgw_takeovers_t            *takeovers;    /* of groups with standbys */
    llmgw_responses_t            *responses;    /* NULL: no room for them */
    ngx_http_llmgw_counters_t     base;         /* of rows given up */
    ngx_atomic_t                  tokens_base;  /* of slots given up */
    uint64_t                      attempts_base;
    uint64_t                      failures_base;
    uint64_t                      denials_base;
    ngx_http_llmgw_totals_t       others;       /* of other models, before this
                                                   one was bound */
    ngx_atomic_t                  turn;         /* choices by llmgw_policy */
    uint32_t                      made;         /* configurations so far */
    uint32_t                      ordered;      /* by which the queue goes */
    uint32_t                      was_listed;   /* a replica, by some view */
    ngx_msec_t                    swept_ms;     /* rows were looked at */
    ngx_msec_t                    rated_ms;     /* rates were made */
    ngx_msec_t                    decayed_ms;   /* weights were halved */
} ngx_http_llmgw_zone_shared_t;


/* In the process: which zone, and which row of it is ours. */
struct ngx_http_llmgw_zone_s {
    llmgw_admission_self_t        self;
    ngx_http_llmgw_zone_shared_t *shared;
    ngx_slab_pool_t              *shpool;
    ngx_str_t                     name;
    ngx_log_t                    *log;
    ngx_http_llmgw_row_t         *looked;       /* a copy of the rows */
    llmgw_cohort_t                *known[LLMGW_COHORT_NKINDS]
                                       [LLMGW_COHORTS_MAX]; /* cohorts */
    ngx_msec_t                    full_ms;      /* no slot was left */
    unsigned                      full:1;       /* said so in the log */
    unsigned                      mended:1;     /* to be said in the log */
};


static ngx_inline ngx_http_llmgw_slot_t *
ngx_http_llmgw_zone_slot(ngx_http_llmgw_zone_shared_t *shared, uint32_t i)
{
    return (ngx_http_llmgw_slot_t *) llmgw_slot(shared->admission, i);
}


void ngx_http_llmgw_zone_mend_locked(ngx_http_llmgw_zone_t *zone);
void ngx_http_llmgw_zone_log_mended(ngx_http_llmgw_zone_t *zone);


static ngx_inline void
ngx_http_llmgw_zone_lock(ngx_http_llmgw_zone_t *zone)
{
    ngx_shmtx_lock(&zone->shpool->mutex);

    if (zone->self.shared->dirty) {
        ngx_http_llmgw_zone_mend_locked(zone);
    }
}


static ngx_inline void
ngx_http_llmgw_zone_unlock(ngx_http_llmgw_zone_t *zone)
{
    ngx_shmtx_unlock(&zone->shpool->mutex);

    if (zone->mended) {
        ngx_http_llmgw_zone_log_mended(zone);
    }
}


/* zone.c: made with the configuration; slots */
ngx_int_t ngx_http_llmgw_zone_add(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *conf);

/* Makes what is in it, where nobody has.  NGX_ERROR: it is too small. */
ngx_int_t ngx_http_llmgw_zone_make(ngx_shm_zone_t *shm_zone);

/* The zone of that name in a configuration before this one; or NULL. */
ngx_shm_zone_t *ngx_http_llmgw_zone_had(ngx_cycle_t *old, ngx_str_t *name);

/*
 * What nginx keeps of a zone of the same name, size and owner is ours only if
 * it is laid out as ours: it begins with these two words.
 */
void ngx_http_llmgw_zone_compare(ngx_conf_t *cf, ngx_shm_zone_t *shm_zone,
    uint64_t magic, uint64_t layout);

/* The layout of a zone: of its version, and the sizes of what it holds. */
uint64_t ngx_http_llmgw_zone_mix(const size_t *sizes, ngx_uint_t n);

/* 1: the reload will keep what is in this zone. */
ngx_uint_t ngx_http_llmgw_zone_is_kept(ngx_conf_t *cf,
    ngx_shm_zone_t *shm_zone);

/* Where a replica counts; NULL, once with an error: no slot is left. */
ngx_http_llmgw_slot_t *ngx_http_llmgw_zone_attach(ngx_http_llmgw_zone_t *zone,
    ngx_str_t *id, llmgw_place_t *place);

/* Gives up the slots that no worker has stamped for a while. */
void ngx_http_llmgw_zone_forget_locked(ngx_http_llmgw_zone_t *zone);

/* recent.c: what slots tell of the last seconds and minutes */
void ngx_http_llmgw_recent_first_token(ngx_http_llmgw_slot_t *slot,
    ngx_msec_t ms);
void ngx_http_llmgw_recent_update_locked(
    ngx_http_llmgw_zone_shared_t *shared);
void ngx_http_llmgw_recent_add(uint64_t *sum,
    const ngx_http_llmgw_slot_t *slot);

/*
 * totals.c: of a zone that this process may have no row in, and which may not
 * be made.  Adds what was ever counted there; where is_bound, what was counted
 * for other models than the one that is bound.
 */
void ngx_http_llmgw_totals_add(ngx_shm_zone_t *shm_zone, ngx_uint_t is_bound,
    ngx_http_llmgw_totals_t *to);

/* to += sign * from */
void ngx_http_llmgw_totals_merge(ngx_http_llmgw_totals_t *to,
    const ngx_http_llmgw_totals_t *from, int sign);

/* Another model is bound: what was counted so far is not its. */
void ngx_http_llmgw_totals_part(ngx_shm_zone_t *shm_zone);

/* No stream of any worker runs or waits there. */
ngx_uint_t ngx_http_llmgw_zone_is_idle(ngx_shm_zone_t *shm_zone);

/* rows.c: processes that come, go and die */
ngx_http_llmgw_zone_t *ngx_http_llmgw_zone_claim(ngx_shm_zone_t *shm_zone,
    ngx_log_t *log);
void ngx_http_llmgw_zone_yield(ngx_http_llmgw_zone_t *zone);

/* Once a second for all workers, whichever comes first. */
void ngx_http_llmgw_zone_sweep(ngx_http_llmgw_zone_t *zone);


#endif /* _NGX_HTTP_LLMGW_ZONE_H_INCLUDED_ */
