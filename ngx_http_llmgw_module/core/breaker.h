
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
 * opens the circuit: a success that happens to complete min_requests does not.
 * Closing empties the window.
 *
 * OPEN admits no attempt during the cooldown.  Each failed probe doubles the
 * next cooldown, up to max_cooldown_ms; closing resets it to cooldown_ms.
 *
 * HALF_OPEN admits `probes` attempts at a time.  A neutral probe gives its
 * place back.  A probe may never end, because its process was killed: when all
 * places are taken and none was taken for max_cooldown_ms, the next attempt
 * takes one over.  One lease for all places is enough: a lost place beside
 * others in use keeps no success from closing the circuit and no failure from
 * opening it.  The lease is as long as the longest cooldown: on a replica that
 * hangs, each lease that ends costs one more request.  A probe that is merely
 * slow and ends after its lease still counts: otherwise a replica with a slow
 * first token would never be admitted again.
 *
 * When all circuits are open, one attempt is forced through before the
 * cooldown is over.  If it fails, the cooldown starts again but does not
 * double, so that high demand does not lengthen the outage.  Each replica is
 * forced at most once every LLMGW_BREAKER_FORCE_GAP_MS.
 *
 * An attempt that began before the last change of state says nothing about the
 * present one: a stream that hung while the circuit was closed may time out
 * long after the circuit was opened, probed and closed again.  So each attempt
 * holds a ticket with the number of the state in which it began, and its
 * result counts in that state alone.
 *
 * The breaker lives in memory that processes share; zeroed memory is a closed
 * circuit with an empty window.  All functions, those that only read too, are
 * called under the lock of that memory. now_ms is monotonic; the clock of one
 * process may lag behind that of another.
 */

#ifndef LLMGW_BREAKER_H
#define LLMGW_BREAKER_H

#include <stdint.h>


#define LLMGW_BREAKER_BUCKETS  10

/* At most ten forced probes a second, if a replica refuses each at once. */
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
    int       enabled;          /* 0: admits everything, counts nothing */
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
    uint32_t                changes;    /* of state */
    uint32_t                probing;    /* places taken */
    uint32_t                succeeded;  /* probes of this HALF_OPEN */
    uint8_t                 state;      /* llmgw_breaker_state_t */
    uint8_t                 forced;     /* HALF_OPEN by force() */
} llmgw_breaker_t;

/* The state in which an attempt began, and whether it is a probe. */
typedef uint32_t  llmgw_breaker_ticket_t;

#define llmgw_breaker_is_probe(ticket)  ((ticket) & 1)

typedef enum {
    LLMGW_VERDICT_SUCCESS = 0,
    LLMGW_VERDICT_FAILURE,
    LLMGW_VERDICT_NEUTRAL       /* no evidence about the replica */
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
 * 0: it opened or was forced just now, or its last probe began less than a
 * cooldown ago.
 */
int llmgw_breaker_may_force(const llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf, uint64_t now_ms);

/* Like begin(), but as a probe; only after may_force(). */
llmgw_breaker_change_t llmgw_breaker_force(llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf, uint64_t now_ms,
    llmgw_breaker_ticket_t *ticket);

/*
 * The attempt with that ticket has ended, or has shown that it succeeds;
 * called once for each attempt.  A probe with a long stream should be reported
 * as SUCCESS at its first token; its ticket is then used up.
 */
llmgw_breaker_change_t llmgw_breaker_end(llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf, llmgw_breaker_ticket_t ticket,
    llmgw_verdict_t verdict, uint64_t now_ms);

/*
 * The time from which the breaker allows an attempt, if nothing happens
 * before: the end of the cooldown or of the probes' lease; 0: it allows one
 * now.
 */
uint64_t llmgw_breaker_retry_ms(const llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf);

/*
 * The counts in the window; while OPEN or HALF_OPEN, what is left of those that
 * opened the circuit.
 */
llmgw_breaker_counts_t llmgw_breaker_counts(const llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf, uint64_t now_ms);

/*
 * A circuit whose cooldown is over is OPEN until an attempt probes it.  CLOSED
 * where conf is not enabled.
 */
llmgw_breaker_state_t llmgw_breaker_state(const llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf);

/* "closed", "open" or "half_open" */
const char *llmgw_breaker_state_name(llmgw_breaker_state_t state);

/* "opened" ...; NULL: UNCHANGED. */
const char *llmgw_breaker_change_name(llmgw_breaker_change_t change);

#endif /* LLMGW_BREAKER_H */
