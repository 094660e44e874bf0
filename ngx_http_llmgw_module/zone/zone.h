
/*
 * The shared zone: what all workers count together.
 *
 *   shared | rows[nrows] | counters[nrows] | levels[nrows] | cohorts
 *          | takeovers | responses | admission
 *
 * Which request gets a replica, and which waits, is decided in admission's
 * memory (core/admission/shared.h): slots of replicas, shares of workers, the
 * queue.  This room makes that memory, locks it, gives out its rows, and takes
 * back what dead workers held; after admission's part of a slot it keeps
 * counters of its own.
 *
 * The lock is the zone's slab mutex, which nginx's master unlocks when its
 * holder dies.  A worker may die in the middle of a change: the next holder
 * finds admission's dirty word set and has it mended before anything else.
 * While the lock is held there are no system calls and no log.
 *
 * A *row* belongs to a worker process, which claims it by pid and start time.
 * Once a second one worker looks, without the lock, whether the processes of
 * all rows still live, and then takes back the rows of dead ones under the
 * lock.
 *
 * A worker that has a replica in its table stamps its slot every second.  Slots
 * that no worker has stamped for a while, and that no attempt counts in, are
 * given up: stamps cannot leak, as reference counts could.
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


/* To be raised with every change of the zone's layout that keeps all sizes. */
#define NGX_HTTP_LLMGW_ZONE_VERSION  4

#define NGX_HTTP_LLMGW_ZONE_MAGIC    0x656e6f7a77676d6cULL   /* lmgwzone */


typedef struct {
    ngx_pid_t                     pid;          /* 0: free */
    uint64_t                      started;      /* clock ticks since boot */
} ngx_http_llmgw_row_t;


struct ngx_http_llmgw_slot_s {
    llmgw_slot_t                  admission;
    ngx_atomic_t                  tokens;       /* sent to clients */
    ngx_atomic_t                  attempts;
    ngx_atomic_t                  failures;     /* attempts that failed */
    ngx_atomic_t                  denials;      /* of models that it reports, by
                                                   its engine */
    uint64_t                      tokens_seen;  /* when rates were made */
    uint64_t                      attempts_seen;
    float                         tokens_rate;  /* a second */
    float                         attempts_rate;
    uint32_t                      first_token[  /* weights, decaying */
                                      NGX_HTTP_LLMGW_NFIRST_TOKEN];
};


/*
 * How many there are now.  A dead process's numbers are dropped with its row,
 * and added to no base.
 */
typedef struct {
    uint32_t                      streams;
    uint32_t                      sessions;
    uint32_t                      held;         /* requests */
    uint64_t                      body_bytes[LLMGW_NSHARES];
} ngx_http_llmgw_levels_t;


/* All that was ever counted, including replicas that are gone. */
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
    ngx_http_llmgw_row_t         *rows;         /* as many as admission has
                                                   rows */
    ngx_http_llmgw_counters_t    *counters;     /* as many as admission has
                                                   rows */
    ngx_http_llmgw_levels_t      *levels;       /* as many as admission has
                                                   rows */
    llmgw_cohorts_t              *cohorts;      /* classes and tenants */
    llmgw_takeovers_t            *takeovers;    /* of groups with standbys */
    llmgw_responses_t            *responses;    /* NULL: no room for them */
    ngx_http_llmgw_counters_t     base;         /* of rows given up */
    ngx_atomic_t                  tokens_base;  /* of slots given up */
    uint64_t                      attempts_base;
    uint64_t                      failures_base;
    uint64_t                      denials_base;
    ngx_http_llmgw_totals_t       others;       /* counted for other models,
                                                   before this one was bound */
    ngx_atomic_t                  turn;         /* choices made by
                                                   llmgw_policy */
    uint32_t                      made;         /* number of configurations so
                                                   far */
    uint32_t                      ordered;      /* the one that set the queue's
                                                   order */
    uint32_t                      was_listed;   /* some view has had a
                                                   replica */
    ngx_msec_t                    swept_ms;     /* when rows were looked at */
    ngx_msec_t                    rated_ms;     /* when rates were made */
    ngx_msec_t                    decayed_ms;   /* when weights were halved */
} ngx_http_llmgw_zone_shared_t;


/*
 * The zone as a process knows it: which zone, and which row in it is this
 * process's.
 */
struct ngx_http_llmgw_zone_s {
    llmgw_admission_self_t        self;
    ngx_http_llmgw_zone_shared_t *shared;
    ngx_slab_pool_t              *shpool;
    ngx_str_t                     name;
    ngx_log_t                    *log;
    ngx_http_llmgw_row_t         *looked;       /* a copy of the rows */
    llmgw_cohort_t                *known[LLMGW_COHORT_NKINDS]
                                       [LLMGW_COHORTS_MAX]; /* cohorts */
    ngx_msec_t                    full_ms;      /* when no slot was left */
    unsigned                      full:1;       /* already logged */
    unsigned                      mended:1;     /* to be logged */
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


/* zone.c: the zone, made with the configuration; its slots */
ngx_int_t ngx_http_llmgw_zone_add(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *conf);

/*
 * Makes the zone's contents, if no process has.  NGX_ERROR: the zone is too
 * small.
 */
ngx_int_t ngx_http_llmgw_zone_make(ngx_shm_zone_t *shm_zone);

/* The zone of that name in an earlier configuration; or NULL. */
ngx_shm_zone_t *ngx_http_llmgw_zone_had(ngx_cycle_t *old, ngx_str_t *name);

/*
 * nginx keeps a zone of the same name, size and owner, but we can only use it
 * if it has our layout: its first two words show that.
 */
void ngx_http_llmgw_zone_compare(ngx_conf_t *cf, ngx_shm_zone_t *shm_zone,
    uint64_t magic, uint64_t layout);

/*
 * A number for a zone's layout, made of its version and the sizes of its parts.
 */
uint64_t ngx_http_llmgw_zone_mix(const size_t *sizes, ngx_uint_t n);

/* 1: the reload will keep what is in this zone. */
ngx_uint_t ngx_http_llmgw_zone_is_kept(ngx_conf_t *cf,
    ngx_shm_zone_t *shm_zone);

/*
 * The slot in which a replica counts; NULL, and once an error: no slot is left.
 */
ngx_http_llmgw_slot_t *ngx_http_llmgw_zone_attach(ngx_http_llmgw_zone_t *zone,
    ngx_str_t *id, llmgw_place_t *place);

/* Gives up the slots that no worker has stamped for a while. */
void ngx_http_llmgw_zone_forget_locked(ngx_http_llmgw_zone_t *zone);

/* recent.c: what slots know of the last seconds and minutes */
void ngx_http_llmgw_recent_first_token(ngx_http_llmgw_slot_t *slot,
    ngx_msec_t ms);
void ngx_http_llmgw_recent_update_locked(
    ngx_http_llmgw_zone_shared_t *shared);
void ngx_http_llmgw_recent_add(uint64_t *sum,
    const ngx_http_llmgw_slot_t *slot);

/*
 * totals.c: for a zone in which this process may have no row, and which may not
 * be made yet.  Adds all that was ever counted there; with is_bound, what was
 * counted for other models than the one that is bound.
 */
void ngx_http_llmgw_totals_add(ngx_shm_zone_t *shm_zone, ngx_uint_t is_bound,
    ngx_http_llmgw_totals_t *to);

/* to += sign * from */
void ngx_http_llmgw_totals_merge(ngx_http_llmgw_totals_t *to,
    const ngx_http_llmgw_totals_t *from, int sign);

/* Another model is bound: what was counted so far is for other models. */
void ngx_http_llmgw_totals_part(ngx_shm_zone_t *shm_zone);

/* 1: no stream of any worker runs or waits there. */
ngx_uint_t ngx_http_llmgw_zone_is_idle(ngx_shm_zone_t *shm_zone);

/* rows.c: processes that come, go and die */
ngx_http_llmgw_zone_t *ngx_http_llmgw_zone_claim(ngx_shm_zone_t *shm_zone,
    ngx_log_t *log);
void ngx_http_llmgw_zone_yield(ngx_http_llmgw_zone_t *zone);

/* Called once a second by each worker; the first one does the work for all. */
void ngx_http_llmgw_zone_sweep(ngx_http_llmgw_zone_t *zone);


#endif /* _NGX_HTTP_LLMGW_ZONE_H_INCLUDED_ */
