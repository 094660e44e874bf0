
/*
 * A run through our own gateway: what nginx with this module would do with a
 * workload and a fleet, in virtual time, while replicas die, hang, drain and
 * are replaced.
 *
 * Decisions are core's: the claim (a place at a replica, in the queue, or a
 * refusal), the ring with bounded load, breakers, hedges, and what follows when
 * an attempt has ended.  Replicas are sim/model's.  The rest is here: streams
 * and their attempts, timers, the network's delay, the news of replicas.
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
    X(lost)             /* streams that broke off for good */                 \
    X(refused_queue)    /* the queue was full */                              \
    X(refused_timeout)  /* it took too long */                                \
    X(refused_open)     /* all circuits were open */                          \
    X(refused_none)     /* without a replica or a try left */                 \
    X(attempts)                                                               \
    X(turned_away)      /* by a replica that was full or drained */           \
    X(misrouted)        /* attempts that a replica got while a fault, a drain \
                           or the update had it */                            \
    X(misrouted_max_us) /* longest time from then to such an attempt */       \
    X(failovers)        /* of streams that had begun */                       \
    X(resumed_tokens)   /* that clients had, computed again */                \
    X(queued)           /* claims that waited */                              \
    X(queue_peak)                                                             \
    X(overtaken)        /* served while an older one waited; 0 */             \
    X(hedges)                                                                 \
    X(hedges_won)                                                             \
    X(circuits_opened)                                                        \
    X(capacity_peak)    /* requests at one replica at one time */             \
    X(faults)                                                                 \
    X(updated)          /* replicas, by the rolling update */                 \
    X(left_in_flight)   /* places occupied without a request; 0 */      \
    X(news_max_us)      /* longest time from a change to a gateway's view */

#define GATEWAY_COUNT_FIELD(name)  uint64_t  name;

typedef struct {
    GATEWAY_COUNTS(GATEWAY_COUNT_FIELD)
    uint64_t  failed[16];       /* attempts, by llmgw_cause_t */
} gateway_counts_t;


/*
 * Runs it.  *result is zeroed by the caller, and filled as by fleet_run().
 * Refused are sessions whose rounds depend on answers, and BLIS's admission
 * and queue.  0; or one line in error and -1, or FLEET_BROKEN: fleet->checks,
 * and a place is left taken or a capacity exceeded.  *result has to be freed in
 * any case.  Of `watch`, which may be NULL, only progress is called.
 */
int gateway_run(const fleet_config_t *fleet, const gateway_config_t *config,
    work_t *work, const fleet_watch_t *watch, fleet_result_t *result,
    gateway_counts_t *counts, char *error, size_t bytes);

/*
 * The same by the settings in a file; without one (NULL), by BLIS's gateway:
 * fleet_run().
 */
int gateway_serve(const char *file, const fleet_config_t *fleet, work_t *work,
    const fleet_watch_t *watch, fleet_result_t *result, char *error,
    size_t bytes);

#endif /* GATEWAY_H */
