
/*
 * The breaker: keeps requests from a replica that fails them.
 *
 *                 failures reach error_permille of min_requests or more
 *      +--------+                                             +------+
 *      | CLOSED | ------------------------------------------> | OPEN |
 *      +--------+                                             +------+
 *           ^                                                  |    ^
 *           |    begin() after the cooldown, force() before it |    |
 *           |                                                  v    |
 *           |     `probes` successes    +-----------+   a probe     |
 *           +-------------------------- | HALF_OPEN | --------------+
 *                                       +-----------+   failed
 *
 * CLOSED counts results in a window that slides by tenths.  Only a failure
 * opens: a success that happens to fill up min_requests is no reason to.
 * Closing empties the window.
 *
 * OPEN lets nobody through for the cooldown.  Each probe that fails doubles
 * the next one, up to its maximum; closing takes it back to where it began.
 *
 * HALF_OPEN lets `probes` attempts through at a time.  A neutral probe gives
 * its place back.  A probe may never be heard of again, since its process was
 * killed: when the places are taken and none was taken for max_cooldown_ms,
 * the next attempt takes one over.  One lease for all places suffices, as a
 * place that is lost beside others in use keeps no success from closing, and
 * no failure from opening, the circuit.  It is the longest cooldown, since on
 * a replica that hangs a shorter one would sacrifice a request each.  A probe
 * that was only slow and ends after its lease still counts: otherwise a
 * replica with a slow first token would never be let back.
 *
 * All circuits open must not be the end.  Then one attempt is forced through
 * before the cooldown is over.  If it fails the cooldown starts again and
 * does not double, so that pressing demand does not lengthen the outage; and
 * each replica is forced at most every LLMGW_BREAKER_FORCE_GAP_MS.
 *
 * An attempt that began before the state last changed says nothing about it:
 * streams that hung while the circuit was closed time out when it has long
 * been opened, probed and closed again.  So each attempt holds a ticket with
 * the number of the state in which it began, and its result counts in that
 * one alone.
 *
 * The breaker lives in memory that processes share; zeroed memory is a closed
 * circuit with an empty window.  All functions, questions too, are called
 * under the lock of that memory.  now_ms is monotonic; that of one process
 * may lag behind that of another.
 */

#ifndef LLMGW_BREAKER_H
#define LLMGW_BREAKER_H

#include <stdint.h>


#define LLMGW_BREAKER_BUCKETS  10

/* Ten probes a second at most, at a replica that refuses each at once. */
#define LLMGW_BREAKER_FORCE_GAP_MS  100

typedef enum {
    LLMGW_BREAKER_CLOSED = 0,
    LLMGW_BREAKER_OPEN,
    LLMGW_BREAKER_HALF_OPEN
} llmgw_breaker_state_t;

typedef struct {
    uint64_t  window_ms;
    uint64_t  cooldown_ms;
    uint64_t  max_cooldown_ms;  /* less than cooldown_ms: cooldown_ms */
    uint32_t  min_requests;     /* in the window, before it may open */
    uint32_t  error_permille;   /* of them, reached or exceeded */
    uint32_t  probes;           /* 0: 1 */
    unsigned  enabled:1;        /* 0: lets everybody through, counts nothing */
} llmgw_breaker_conf_t;

typedef struct {
    uint32_t  failed;
    uint32_t  total;
} llmgw_breaker_bucket_t;

typedef struct {
    uint64_t                since_ms;   /* OPEN: opened at; HALF_OPEN: the
                                           last probe began at */
    uint64_t                cooldown_ms;
    uint64_t                newest;     /* number of the newest bucket */
    llmgw_breaker_bucket_t  buckets[LLMGW_BREAKER_BUCKETS];
    uint32_t                turns;      /* changes of state */
    uint32_t                probing;    /* places taken */
    uint32_t                succeeded;  /* probes of this HALF_OPEN */
    uint8_t                 state;      /* llmgw_breaker_state_t */
    uint8_t                 forced;     /* HALF_OPEN before its time */
} llmgw_breaker_t;

/* The state in which an attempt began, and whether it is a probe. */
typedef uint32_t  llmgw_breaker_ticket_t;

#define llmgw_breaker_is_probe(ticket)  ((ticket) & 1)

typedef enum {
    LLMGW_VERDICT_SUCCESS = 0,
    LLMGW_VERDICT_FAILURE,
    LLMGW_VERDICT_NEUTRAL       /* tells nothing about the replica */
} llmgw_verdict_t;

/* For the log, and for counters. */
typedef enum {
    LLMGW_BREAKER_UNCHANGED = 0,
    LLMGW_BREAKER_OPENED,       /* llmgw_breaker_counts() tells why */
    LLMGW_BREAKER_REOPENED,     /* a probe failed, for cooldown_ms */
    LLMGW_BREAKER_HALF_OPENED,
    LLMGW_BREAKER_RECLOSED
} llmgw_breaker_change_t;

typedef struct {
    uint64_t  failed;
    uint64_t  total;
} llmgw_breaker_counts_t;


/* 1: an attempt may begin, though perhaps as a probe. */
int llmgw_breaker_allows(const llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf, uint64_t now_ms);

/*
 * An attempt begins; *ticket is its own.  Returns UNCHANGED or HALF_OPENED.
 * An attempt that the breaker does not allow gets a ticket that counts for
 * nothing.
 */
llmgw_breaker_change_t llmgw_breaker_begin(llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf, uint64_t now_ms,
    llmgw_breaker_ticket_t *ticket);

/*
 * 1: when all circuits are open, an attempt may be forced through this one.
 * 0: it was tried just now, or is being probed for less than a cooldown.
 */
int llmgw_breaker_may_force(const llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf, uint64_t now_ms);

/* As begin(), and a probe where may_force(). */
llmgw_breaker_change_t llmgw_breaker_force(llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf, uint64_t now_ms,
    llmgw_breaker_ticket_t *ticket);

/*
 * The attempt with that ticket ended, or is known to be good: called once for
 * each.  A probe of a long stream is best told SUCCESS at its first token;
 * its ticket is used up by this.
 */
llmgw_breaker_change_t llmgw_breaker_end(llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf, llmgw_breaker_ticket_t ticket,
    llmgw_verdict_t verdict, uint64_t now_ms);

/*
 * From when on the breaker allows an attempt, if nothing happens before: the
 * end of the cooldown, or of the probes' lease; 0: it does at any time.
 */
uint64_t llmgw_breaker_retry_ms(const llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf);

/* Of the window; while OPEN and HALF_OPEN, what is left of what opened it. */
llmgw_breaker_counts_t llmgw_breaker_counts(const llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf, uint64_t now_ms);

/*
 * A circuit whose cooldown is over is OPEN until somebody probes it.  CLOSED
 * where conf is not enabled.
 */
llmgw_breaker_state_t llmgw_breaker_state(const llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf);

/* "closed", "open" or "half_open" */
const char *llmgw_breaker_state_name(llmgw_breaker_state_t state);

#endif /* LLMGW_BREAKER_H */
