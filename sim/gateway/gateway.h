
/*
 * A run through our own gateway: what nginx with this module would do with a
 * workload and a fleet, in virtual time, while replicas die, hang, drain and
 * are replaced.
 *
 * Decisions are core's: the claim (a place at a replica, in the queue, or a
 * refusal), the ring with bounded load, breakers, hedges, and what follows when
 * an attempt has ended.  Replicas are sim/model's.  What is between them is
 * here: streams and their attempts, timers, the network's delay, the news of
 * replicas.
 *
 * Unlike sim/fleet, which is BLIS to the microsecond, this follows docs/: a
 * stream that loses its replica goes on at another one behind the tokens that
 * its client has.  Equal input gives equal output.
 */

#ifndef GATEWAY_H
#define GATEWAY_H

#include <stdio.h>

#include "core/resume.h"
#include "sim/fleet/config.h"
#include "sim/fleet/result.h"
#include "sim/gateway/config.h"
#include "sim/work/request.h"


typedef struct {
    uint64_t  attempts;
    uint64_t  failed[16];       /* by llmgw_cause_t */
    uint64_t  failovers;        /* of streams that had begun */
    uint64_t  resumed_tokens;   /* that clients had, computed again */
    uint64_t  lost;             /* streams that broke off for good */
    uint64_t  refused_queue;    /* full */
    uint64_t  refused_timeout;  /* waited too long */
    uint64_t  refused_open;     /* all circuits were open */
    uint64_t  refused_none;     /* no replica, or no try, was left */
    uint64_t  queued;           /* claims that waited */
    uint64_t  queue_peak;
    uint64_t  overtaken;        /* claims that were served before an older one
                                   that waited; FIFO: 0 */
    uint64_t  hedges;
    uint64_t  hedges_won;
    uint64_t  opened;           /* circuits */
    uint64_t  turned_away;      /* by a replica that was full or drained */
    uint64_t  capacity_peak;    /* requests at one replica at one time */
    uint64_t  faults;
    uint64_t  updated;          /* replicas, by the rolling update */
    uint64_t  left_in_flight;   /* places still held at the end by requests
                                   that are over; 0 */
    int64_t   news_max_us;      /* longest time from a change to a gateway's
                                   view of it */
} gateway_counts_t;


/*
 * Runs it.  *result is zeroed by the caller, and filled as by fleet_run();
 * sessions are not followed.  0, or -1 and one line in error; then *result is
 * still to be freed.
 */
int gateway_run(const fleet_config_t *fleet, const gateway_config_t *config,
    work_t *work, fleet_result_t *result, gateway_counts_t *counts,
    char *error, size_t bytes);

/* A section for people, with a line for each count. */
void gateway_print(FILE *out, const gateway_counts_t *counts);

#endif /* GATEWAY_H */
