
/*
 * Resume: what follows when an attempt has ended.
 *
 * A stream is served by attempts, one after another: each continues after the
 * tokens that were delivered.  This file decides, from how an attempt ended,
 * whether the stream is done, passes the replica's answer on, tries again, or
 * gives up.  It knows neither gRPC nor nginx: the code that speaks to the
 * replica reports the end by the values below.
 *
 *                 FINAL ------------------------------> FINISH
 *                 PASSED (client's fault) ------------> PASS
 *                 UNABLE (cannot be continued) -------> BREAK
 *                 AMBIGUOUS (not counted, once) ------> AGAIN, excluded
 *    attempt ---- DRAINING, FULL (not counted) -------> AGAIN, excluded
 *                 ABSENT (another one of its group is
 *                         to come, not counted) ------> AGAIN, excluded
 *                 REFUSED (new connection, counted
 *                          from the fourth on) -------> AGAIN
 *                 FAILED -- tries or failovers left --> AGAIN, excluded
 *                        \_ none left ----------------> GIVE_UP
 *                 CANCELLED (by the gateway) ---------> GIVE_UP
 *
 * Tries count attempts in a row without a token; a token gives them all back
 * and empties the excluded set.  Failovers count attempts that took over a
 * stream with tokens delivered; they are never given back, so a prompt that
 * crashes engines cannot walk the whole fleet.
 *
 * The last try does not go to a replica that has failed the stream before, as
 * long as another one is merely full.  A claim that waits for capacity drops
 * its exclusions, but on its last try it keeps those of replicas that failed
 * the stream.  So where all replicas but one refuse everything, the stream
 * waits for that one.
 *
 * Where every replica that could serve has failed the stream, it starts over
 * with them.  One that fails at once would use up the tries within a
 * millisecond, so such tries are some time apart.  Another replica is asked at
 * once.
 *
 * The excluded set bounds the answers that are not counted: each DRAINING or
 * FULL answer takes one replica out, until none is left.  In a very large
 * fleet that drains as a whole, each DRAINING beyond LLMGW_RESUME_FREE_DRAINS
 * in a row counts as a failure.
 *
 * The replica that takes over must know what the client has.  A replica of
 * plain tokens continues by their number.  A real engine needs the tokens' ids,
 * or their text, and can use them only if they are all that the client has:
 * llmgw_resume_by() judges that.
 */

#ifndef LLMGW_RESUME_H
#define LLMGW_RESUME_H

#include <stdint.h>


typedef enum {
    LLMGW_ENDING_FINAL = 0,    /* the final token came */
    LLMGW_ENDING_PASSED,       /* the replica says that the request is at
                                  fault */
    LLMGW_ENDING_AMBIGUOUS,    /* the request is at fault, or the replica is
                                  deployed wrongly: another replica is asked */
    LLMGW_ENDING_DRAINING,     /* the replica takes no new work */
    LLMGW_ENDING_FULL,         /* it has no capacity, nothing began */
    LLMGW_ENDING_ABSENT,       /* nothing listens there yet; a standby of its
                                  group, or the replica itself, is expected
                                  to */
    LLMGW_ENDING_REFUSED,      /* the connection did not accept it */
    LLMGW_ENDING_UNABLE,       /* no replica can continue it */
    LLMGW_ENDING_FAILED,
    LLMGW_ENDING_CANCELLED     /* the gateway wants no more of it; a replica's
                                  status CANCELLED is FAILED */
} llmgw_ending_t;

/* Why an attempt failed: for the log, and for counters. */
typedef enum {
    LLMGW_CAUSE_NONE = 0,
    LLMGW_CAUSE_CONNECT,            /* refused, unreachable, timed out */
    LLMGW_CAUSE_RESET,              /* connection or stream broke */
    LLMGW_CAUSE_STATUS,             /* an error status of the replica's */
    LLMGW_CAUSE_UNFINISHED,         /* ended OK without a final token */
    LLMGW_CAUSE_MALFORMED,          /* a message that is not valid */
    LLMGW_CAUSE_FIRST_TOKEN_TIMEOUT,
    LLMGW_CAUSE_TOKEN_TIMEOUT,
    LLMGW_CAUSE_MEMBER_DOWN,        /* gossip: its process is gone */
    LLMGW_CAUSE_MEMBER_DEAD,        /* gossip: its machine is silent */
    LLMGW_CAUSE_MEMBER_STALLED,
    LLMGW_CAUSE_MEMBER_SUPERSEDED,  /* gossip: its group has a greater epoch */
    LLMGW_CAUSE_DRAINING,
    LLMGW_CAUSE_FULL,
    LLMGW_CAUSE_GOAWAY,
    LLMGW_CAUSE_INTERNAL            /* ours: no memory, no socket */
} llmgw_cause_t;

const char *llmgw_cause_name(llmgw_cause_t cause);

#define LLMGW_RESUME_FREE_REFUSALS  3
#define LLMGW_RESUME_FREE_DRAINS    64
#define LLMGW_RESUME_FAILOVERS      8   /* of a stream, in nginx; the default
                                           of simulations */

typedef struct {
    uint32_t  tries_max;
    uint32_t  failovers_max;
    uint32_t  tries;            /* failed in a row without a token */
    uint32_t  failovers;
    uint32_t  refusals;
    uint32_t  drains;
} llmgw_resume_t;

typedef enum {
    LLMGW_NEXT_FINISH = 0,
    LLMGW_NEXT_PASS,
    LLMGW_NEXT_AGAIN,
    LLMGW_NEXT_BREAK,           /* before its end: it cannot be resumed */
    LLMGW_NEXT_GIVE_UP
} llmgw_next_t;

typedef struct {
    llmgw_next_t  next;
    unsigned      exclude:1;        /* the replica of this attempt */
    unsigned      clear_excluded:1; /* before excluding: there was progress */
    unsigned      counted:1;        /* the replica failed the stream, a try
                                       is used up; when all replicas are
                                       excluded, start over, once */
} llmgw_resume_step_t;


/*
 * attempt_tokens: delivered by the attempt that ended; stream_tokens: by the
 * whole stream.  A failure with stream_tokens > 0 counts as a failover.
 */
llmgw_resume_step_t llmgw_resume_next(llmgw_resume_t *resume,
    llmgw_ending_t outcome, uint64_t attempt_tokens, uint64_t stream_tokens);

/* Whether one more failure without a token would end the stream. */
int llmgw_resume_is_last_try(const llmgw_resume_t *resume);

#define LLMGW_RESUME_PAUSE_MS      100
#define LLMGW_RESUME_PAUSE_MAX_MS  1000

/*
 * How long after the beginning of its last attempt a stream may ask replicas
 * again that have failed it: LLMGW_RESUME_PAUSE_MS, doubled for each failure in
 * a row after the first.  Half of it is left to random (exponential backoff
 * with "equal jitter": M. Brooker, Exponential Backoff and Jitter, 2015), so
 * that the streams of a lost replica do not all come back at once.
 */
uint32_t llmgw_resume_pause_ms(const llmgw_resume_t *resume, uint64_t random);


/* What is stored of a stream for the next replica: llmgw_resume. */
typedef enum {
    LLMGW_RESUME_OFF = 0,
    LLMGW_RESUME_IDS,
    LLMGW_RESUME_TEXT           /* the ids as well */
} llmgw_resume_mode_t;

/* How the next replica is told where the stream broke off. */
typedef enum {
    LLMGW_RESUME_BY_NOTHING = 0,
    LLMGW_RESUME_BY_POSITION,
    LLMGW_RESUME_BY_IDS,
    LLMGW_RESUME_BY_TEXT,
    LLMGW_RESUME_NKINDS
} llmgw_resume_by_t;

/* What the client has of a stream by now. */
typedef struct {
    uint64_t  tokens;
    uint64_t  ids;              /* of these, known */
    unsigned  is_on:1;          /* ids or text may be kept at all */
    unsigned  is_plain:1;       /* nothing came but plain tokens */
    unsigned  has_text:1;       /* the whole text is known */
    unsigned  is_one:1;         /* the answer has one choice */
    unsigned  no_ids:1;         /* the replica reports that ids are not
                                   enough */
    unsigned  never:1;          /* the replica reports that neither ids nor text
                                   are */
    unsigned  no_memory:1;      /* ids or text were given up */
} llmgw_resume_facts_t;

/* With BY_NOTHING, *why is one line for people; else it is unchanged. */
llmgw_resume_by_t llmgw_resume_by(const llmgw_resume_facts_t *facts,
    const char **why);

/* The word for logs and metrics; BY_NOTHING: "off". */
const char *llmgw_resume_by_name(llmgw_resume_by_t by);

#endif /* LLMGW_RESUME_H */
