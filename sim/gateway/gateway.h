
/*
 * A run through our own gateway: what nginx with this module would do with a
 * workload and a fleet, in virtual time, while replicas die, hang, drain and
 * are replaced.
 *
 * Decisions are core's: the claim (a place at a replica, in the queue, or a
 * refusal), the ring with bounded load, breakers, hedges, and what happens
 * after an attempt has ended.  Replicas are sim/model's.  This folder adds
 * streams and their attempts, timers, the network's delay, and reports about
 * replicas.
 *
 * Unlike sim/fleet, which is BLIS to the microsecond, this follows docs/: a
 * stream that loses its replica continues at another one after the tokens that
 * its client has.  Equal input gives equal output.
 */

#ifndef GATEWAY_H
#define GATEWAY_H

#include "core/resume.h"
#include "sim/fleet/fleet.h"
#include "sim/fleet/result.h"
#include "sim/gateway/config.h"
#include "sim/work/request.h"


/* Counters; their names are those of result->extras. */
#define GATEWAY_COUNTS(X)                                                     \
    X(lost)             /* streams that ended incomplete */                   \
    X(refused_queue)    /* the queue was full */                              \
    X(refused_timeout)  /* they waited for too long */                        \
    X(refused_open)     /* all circuits were open */                          \
    X(refused_none)     /* no replica or no try was left */                   \
    X(attempts)                                                               \
    X(turned_away)      /* refused by a full or draining replica */           \
    X(misrouted)        /* attempts sent to a replica that a fault, a drain \
                           or the update had made unfit */                    \
    X(misrouted_max_us) /* longest time from that to an attempt */            \
    X(failovers)        /* takeovers of streams that had begun */             \
    X(resumed_tokens)   /* tokens that clients had at a takeover */           \
    X(queued)           /* claims that waited in the queue */                 \
    X(queue_peak)                                                             \
    X(overtaken)        /* served before an older one: must be 0 */           \
    X(hedges)                                                                 \
    X(hedges_won)                                                             \
    X(circuits_opened)                                                        \
    X(capacity_peak)    /* most requests at one replica at once */            \
    X(faults)                                                                 \
    X(updated)          /* replicas that the update restarted */              \
    X(left_in_flight)   /* places taken without a request: must be 0 */       \
    X(news_max_us)      /* longest from a change to a gateway's view */

#define GATEWAY_COUNT_FIELD(name)  uint64_t  name;

typedef struct {
    GATEWAY_COUNTS(GATEWAY_COUNT_FIELD)
    uint64_t  failed[16];       /* attempts that failed, by llmgw_cause_t */
} gateway_counts_t;


/*
 * Runs the workload.  *result is zeroed by the caller, and filled as by
 * fleet_run().  Sessions whose rounds depend on answers, and BLIS's admission
 * and queue, are refused.  0; or -1 and one line in error; or FLEET_BROKEN and
 * one line: fleet->checks is set, and a place is left taken, a request was
 * overtaken, or a capacity was exceeded.  *result has to be freed in any case.
 * Of `watch`, which may be NULL, only progress is called.
 */
int gateway_run(const fleet_config_t *fleet, const gateway_config_t *config,
    work_t *work, const fleet_watch_t *watch, fleet_result_t *result,
    gateway_counts_t *counts, char *error, size_t bytes);

/*
 * As gateway_run(), with the settings in a file; if file is NULL, runs BLIS's
 * gateway instead: fleet_run().
 */
int gateway_serve(const char *file, const fleet_config_t *fleet, work_t *work,
    const fleet_watch_t *watch, fleet_result_t *result, char *error,
    size_t bytes);

#endif /* GATEWAY_H */
