
/*
 * Serve: which attempts serve a stream, and when they are given up.
 *
 * A machine for each stream.  Its owner reports an event by one of the
 * functions below, and carries out the step that the function returns.  The
 * owner has the clock, the connections and the claim (core/admission/), so
 * nginx drives the machine from its event loop, the simulator in virtual time,
 * and a unit test with times that it makes up.
 *
 *     begin                                  a claim's refusal
 *       |                                            |
 *       v             turn: claims again             v
 *     CLAIMS <---------------- waits in the queue   ENDS, or PASSES_KEPT
 *       ^  |  \                        |
 *       |  |   \--- all that are left  +-- queue_end_ms ---> EXPIRES
 *       |  |        have failed: pauses
 *       |  v
 *       | STARTS --- hedge_ms ---> HEDGES: a second attempt, until one of
 *       |  |                       the two brings a token
 *       |  | ended, and another one may take over
 *       +--+
 *          | ended: FINAL, PASSED, or nothing is left to try
 *          v
 *        ENDS with an outcome, or PASSES the replica's answer on
 *
 * At any time the client's deadline ends the stream.  One that is held, since
 * no replica is there, claims again when its hold is over: it is refused then,
 * unless there is one.
 *
 * Silence.  An attempt that receives nothing for too long has failed.  A token
 * is no event: the owner notes its time in the attempt, and the machine looks
 * at it when the timer fires.  The process may have stood still, and its
 * sockets may be full of tokens; so silence counts only when the timer has seen
 * it twice, with an iteration of the event loop in between.  If the timer was
 * late as well, replicas on the same machine may have stood still too: their
 * silence is counted from that moment.
 *
 * The queue's time is counted from the stream's last token.  The time of an
 * attempt that failed without a token is added to it.  The time of an attempt
 * that a full replica refused is not, or a replica that always refuses could
 * keep the stream for ever; nor is that of an attempt that found no replica
 * there.
 *
 * An ambiguous refusal.  A replica may refuse a request as a wrongly deployed
 * one would; the request may be at fault, or the replica.  So another replica
 * is asked, and the refusal and its lease are kept until that one has answered:
 *
 *     it sends a token          the first replica has failed
 *     it refuses as well        the request is at fault: the refusal passes on
 *     there is no other one     the same, for want of evidence
 *     it fails, or the stream
 *     waits in the queue        neither is blamed
 *
 * A replica whose engine denies a model that the replica reports contradicts
 * itself, so a second one that does is no evidence against the request: up to
 * LLMGW_SERVE_DENIALS more are asked.
 *
 * A stream with an ambiguous refusal waits only if the other replicas are full,
 * and for nothing else, as for a circuit to close.
 */

#ifndef LLMGW_SERVE_H
#define LLMGW_SERVE_H

#include "core/admission/admission.h"
#include "core/outcome.h"
#include "core/resume.h"


/* A timer that fires so late says that the process stood still. */
#define LLMGW_SERVE_LATE_MS  100

#define LLMGW_SERVE_DENIALS  7      /* beside the first one */

/*
 * One attempt at the stream.  Its owner writes it; of two the second is the
 * hedge.
 */
typedef struct {
    uint32_t  tokens;           /* that it has brought */
    unsigned  is_running:1;     /* from its start until it is stopped */
    unsigned  has_ended:1;      /* ending and cause are set */
    unsigned  has_begun:1;      /* it has brought something */
    unsigned  ending:4;         /* llmgw_ending_t */
    unsigned  cause:5;          /* llmgw_cause_t */
    uint64_t  heard_ms;         /* its start, then its last sign of life */
    uint64_t  start_ms;
} llmgw_attempt_t;

typedef enum {
    LLMGW_HEDGE_NEVER = 0,
    LLMGW_HEDGE_AT_ONCE,
    LLMGW_HEDGE_LATER           /* hedge_delay_ms after the queue */
} llmgw_hedge_t;

/* Zeroed, with `hedge` and the limits of `resume` set: a new stream. */
typedef struct {
    llmgw_resume_t  resume;
    uint64_t        queue_end_ms;       /* with has_queue_end */
    uint64_t        spared_ms;          /* with is_spared: no earlier silence
                                           counts */
    uint32_t        pause_end_ms;       /* pause_end_ms, hedge_ms and due_ms are
                                           soon: 32 bits are enough */
    uint32_t        hedge_ms;           /* with may_hedge */
    uint32_t        due_ms;             /* of the owner's timer */
    unsigned        hedge:2;            /* llmgw_hedge_t */
    unsigned        is_entry:1;         /* its claim is its first one, or one
                                           from the queue */
    unsigned        waits:1;            /* in the queue */
    unsigned        has_queue_end:1;
    unsigned        pauses:1;           /* until pause_end_ms */
    unsigned        may_hedge:1;
    unsigned        has_second:1;       /* a hedge runs, before any token */
    unsigned        has_begun:1;        /* an attempt has brought something */
    unsigned        was_silent:1;       /* the timer has seen silence once */
    unsigned        is_spared:1;
    unsigned        has_ambiguous:1;
    unsigned        denials:3;          /* besides the ambiguous refusal */
} llmgw_serve_t;

/* What an event is judged by.  All times are ms of one clock. */
typedef struct {
    const llmgw_attempt_t  *attempts[2];
    llmgw_claim_t          *claim;      /* the stream's */
    uint64_t                now_ms;
    uint64_t                deadline_ms;        /* the client's; 0: none */
    uint64_t                ping_ms;    /* when the client gets a ping; 0:
                                           never */
    uint64_t                patience_ms;        /* how long it may wait */
    uint64_t                hedge_delay_ms;
    uint64_t                first_token_ms;     /* how long an attempt may be
                                                   silent before its first
                                                   token, */
    uint64_t                token_ms;   /* and after that */
    int                     is_blocked; /* the client reads slowly: silence is
                                           not the replica's then */
} llmgw_serve_facts_t;

typedef enum {
    LLMGW_SERVE_RUNS = 0,       /* nothing: set the timer, wait for events */
    LLMGW_SERVE_CLAIMS,         /* make the claim, then serve_claimed() */
    LLMGW_SERVE_STARTS,         /* start attempt 0, then serve_started() */
    LLMGW_SERVE_HEDGES,         /* claim a second replica: where it is leased,
                                   start attempt 1 and call serve_hedged();
                                   then as RUNS */
    LLMGW_SERVE_ENDS,           /* the stream, with step.outcome */
    LLMGW_SERVE_EXPIRES,        /* the stream ends: it has waited too long */
    LLMGW_SERVE_PASSES,         /* the stream ends with the attempt's refusal */
    LLMGW_SERVE_PASSES_KEPT     /* the stream ends with the ambiguous refusal */
} llmgw_serve_do_t;

/*
 * What the owner does, in this order: the attempt that ended is `it`.  `pings`
 * and `silent` belong to RUNS and HEDGES, before the timer is set.
 */
typedef struct {
    unsigned          is_ambiguous:1;   /* keeps its lease and its refusal */
    unsigned          acquits:1;        /* ends its lease with SUCCESS */
    unsigned          judges:1;         /* ends the ambiguous refusal's lease,
                                           if there is one, with `verdict` */
    unsigned          stops_other:1;    /* stops the other attempt */
    unsigned          stops:1;          /* stops it */
    unsigned          forgets:1;        /* drops all exclusions */
    unsigned          excludes:1;       /* excludes its replica */
    unsigned          pushes_back:1;    /* as excludes, for as long as the
                                           replica asked */
    unsigned          keeps:1;          /* the exclusion outlasts a wait */
    unsigned          fails_over:1;     /* counts as a failover */
    llmgw_verdict_t   verdict;
    llmgw_next_t      after;            /* ended(): for the log */
    llmgw_serve_do_t  next;
    llmgw_outcome_t   outcome;
    unsigned          pings:1;          /* the client gets a ping */
    unsigned          silent:2;         /* attempts (bits) fail with
                                           llmgw_attempt_timeout() */
} llmgw_serve_step_t;

/* How an attempt ended, for its stream. */
typedef struct {
    unsigned        which;              /* number of the attempt */
    llmgw_ending_t  ending;             /* the attempt's, unless its owner knows
                                           better (serve_is_broken()) */
    uint64_t        stream_tokens;
    uint64_t        random;
    int             may_keep;          /* there is memory to keep a refusal */
    int             is_denial;          /* the engine denies a model that its
                                           replica reports */
} llmgw_serve_end_t;


/* The stream begins, or its turn in the queue has come. */
llmgw_serve_step_t llmgw_serve_begin(llmgw_serve_t *serve,
    const llmgw_serve_facts_t *facts);

/* The claim was answered. */
llmgw_serve_step_t llmgw_serve_claimed(llmgw_serve_t *serve,
    const llmgw_serve_facts_t *facts, llmgw_admission_rc_t rc);

/* Attempt 0 was started, and may have ended already. */
llmgw_serve_step_t llmgw_serve_started(llmgw_serve_t *serve,
    const llmgw_serve_facts_t *facts);

/* Attempt 1 was started. */
void llmgw_serve_hedged(llmgw_serve_t *serve);

/*
 * An attempt has brought something, as the first of those that run; it: this
 * attempt.
 */
llmgw_serve_step_t llmgw_serve_first(llmgw_serve_t *serve);

/*
 * 1: an attempt that ends so breaks off what the client has.  The owner then
 * decides whether another attempt can continue it: UNABLE if not, and
 * serve_restarted() if the client has nothing of it yet, so that all of it
 * begins anew.
 */
int llmgw_serve_is_broken(const llmgw_serve_t *serve, llmgw_ending_t ending);
void llmgw_serve_restarted(llmgw_serve_t *serve, llmgw_claim_t *claim);

/* An attempt has ended; it: this attempt. */
llmgw_serve_step_t llmgw_serve_ended(llmgw_serve_t *serve,
    const llmgw_serve_facts_t *facts, const llmgw_serve_end_t *end);

/* How long the owner's timer is to wait; the owner sets it now. */
uint64_t llmgw_serve_wait_ms(llmgw_serve_t *serve,
    const llmgw_serve_facts_t *facts);

/* The timer has fired. */
llmgw_serve_step_t llmgw_serve_expired(llmgw_serve_t *serve,
    const llmgw_serve_facts_t *facts);


/* The cause of an attempt that failed by silence. */
static inline llmgw_cause_t
llmgw_attempt_timeout(const llmgw_attempt_t *attempt)
{
    return attempt->has_begun ? LLMGW_CAUSE_TOKEN_TIMEOUT
                              : LLMGW_CAUSE_FIRST_TOKEN_TIMEOUT;
}


/*
 * The ending as a verdict for the breaker.  A failure that gossip reported is
 * neutral: when the replica is back, it is another process.
 */
llmgw_verdict_t llmgw_attempt_verdict(llmgw_ending_t ending,
    llmgw_cause_t cause);

#endif /* LLMGW_SERVE_H */
