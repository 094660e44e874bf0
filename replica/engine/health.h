
/*
 * What an engine's answers, and its silence, say about it.  Pure: time in
 * milliseconds is an argument.
 *
 * An engine that hangs may answer "healthy", and one that works may be too
 * busy to answer.  So progress counts, and not what it says about itself:
 *
 *   - bytes on our own streams: it works, whatever else;
 *   - a scrape with requests in the engine, its progress counter the same as
 *     in the one before, and the last progress a stall time-out ago: STALLED;
 *   - it was asked HEALTH_SILENCE_MS ago, and neither a byte nor any answer has
 *     come since: STALLED, also if no stream runs, as when all have moved away
 *     from a frozen engine;
 *   - streams run, and its metrics, which it had, say nothing for a stall
 *     time-out: STALLED; llama-server answers /health whatever its model does;
 *   - a refused connection: DOWN, or STARTING before the first READY.  But an
 *     engine that holds connections of our streams has only closed its port: it
 *     is leaving, as one that says so.
 *
 *              READY answered            no progress, silence
 *   STARTING ------------------> READY -----------------------> STALLED
 *      ^  ^                      |  ^ <----------------------------'  |
 *      |  |   it says it loads   |  |   progress; idle for a while;   |
 *      |  '----------------------'  |   after silence, answers        |
 *      |                            | READY answered                  |
 *      '--------------------------- DOWN <----------------------------'
 *          it says it loads           refused, or it says it is dead;
 *                                     from each state but STARTING
 *
 * is_leaving stands beside READY and STALLED: nothing new is taken, what runs
 * may finish.  The next answer of READY ends it.
 *
 * The stall time-out is what the operator gave, or learnt.  An engine that has
 * just started compiles kernels in the middle of a step, for a minute; later
 * its longest step says what is usual:
 *
 *   HEALTH_FRESH_MS until HEALTH_STEPS steps were seen; then three times the
 *   longest of the last one to two times HEALTH_STEPS, from HEALTH_STALL_MS to
 *   HEALTH_FRESH_MS.
 */

#ifndef HEALTH_H
#define HEALTH_H

#include <stdint.h>

#include "replica/engine/engine.h"


/* Longer than a probe's time-out, the pause behind it, and an answer. */
#define HEALTH_SILENCE_MS  3000

/* For a stream that the engine does not count.  Its gauges may lag. */
#define HEALTH_FORGOTTEN_MS  10000

/* A STALLED engine that has said for so long that nothing runs is trusted. */
#define HEALTH_IDLE_MS  10000

/* The stall time-out, see above.  Bytes of several streams that come within
   HEALTH_STEP_MS are of one step. */
#define HEALTH_FRESH_MS  60000
#define HEALTH_STALL_MS  2500
#define HEALTH_STEPS     1000
#define HEALTH_STEP_MS   10

typedef struct {
    engine_state_t  state;
    int             is_leaving;     /* it takes nothing new */
    int             was_ready;      /* since it was last STARTING */
    int             is_silent;      /* STALLED for want of answers */
    int             has_served;     /* READY or STALLED, and not leaving */
    uint64_t        gone_ms;        /* with has_served: not so since then; 0: it
                                       is so */
    uint64_t        given_ms;       /* the stall time-out; 0: learnt */
    uint64_t        answered_ms;    /* the last answered probe */
    uint64_t        asked_ms;       /* the first probe since; 0: none */
    uint64_t        bytes_ms;       /* the last byte on a stream of ours */
    uint64_t        streams_ms;     /* since then streams run; 0: none does */
    uint64_t        looked_ms;      /* the last health_look() */
    uint64_t        woke_ms;        /* until then this process stood still */
    uint64_t        scraped_ms;     /* the last scrape with a counter */
    uint64_t        still_ms;       /* that scrape, if nothing had moved */
    uint64_t        alone_ms;       /* its counter moved by no bytes of ours */
    uint64_t        busy_ms;        /* requests are in it since then; 0: none
                                       is */
    uint64_t        idle_ms;        /* since this scrape none is; 0: some are */
    int64_t         counter;        /* -1: not known */

    /* Steps of this process; longest: this thousand's and the one before's. */
    int             is_warm;        /* a thousand was seen */
    uint32_t        steps;          /* of this thousand */
    uint64_t        step_ms;        /* when the last one came */
    uint64_t        longest_ms[2];
} health_t;


/* given_ms: the stall time-out, 0: learnt.  now_ms is never 0. */
void health_init(health_t *health, uint64_t given_ms, uint64_t now_ms);

/* A probe was sent; it was answered, whatever the answer says. */
void health_asked(health_t *health, uint64_t now_ms);
void health_answered(health_t *health, uint64_t now_ms);

/*
 * What it says of itself: READY, STARTING or DOWN.  health_unwilling(): it
 * takes nothing; whether it starts or ends, the past tells.
 */
void health_answer(health_t *health, engine_state_t state, uint64_t now_ms);
void health_unwilling(health_t *health, uint64_t now_ms);

/* A connection was refused.  has_streams: it holds connections of ours, whose
   end would be noticed. */
void health_refused(health_t *health, int has_streams);

/*
 * A scrape was answered.  counter: of its progress, -1: it says none;
 * requests: in the engine, running and waiting, of all its clients.
 */
void health_scrape(health_t *health, int64_t counter, int64_t requests,
    uint64_t now_ms);

/* Bytes that were generated, on a stream of ours. */
void health_bytes(health_t *health, uint64_t now_ms);

/* The last progress that is known, for a READY engine with requests. */
uint64_t health_progress_ms(const health_t *health);

/* How long it may take to the next, in force now. */
uint64_t health_stall_ms(const health_t *health);

/*
 * Whether a stream without bytes may still count on it: since since_ms, bytes
 * came on another stream or a probe was answered, and its last progress is no
 * stall time-out ago.
 */
int health_is_alive(const health_t *health, uint64_t since_ms,
    uint64_t now_ms);

/*
 * Time passes: to be called each HEALTH_LOOK_MS.  streams: those of ours that
 * wait for the engine, not for their clients.  A call that comes late shows
 * that this process stood still, and that its silence says nothing.
 */
#define HEALTH_LOOK_MS  500

void health_look(health_t *health, uint32_t streams, uint64_t now_ms);


/*
 * How long the next look may wait at most; UINT64_MAX: there is no limit.  An
 * engine that has just gone is looked at most often, since gateways hold
 * requests until it is back; for a while only, as it may not come back.
 */
#define HEALTH_HURRY_MS  250            /* until it is ready */
#define HEALTH_GONE_MS   100            /* for HEALTH_CHASE_MS after it went */
#define HEALTH_CHASE_MS  10000

uint64_t health_pause_ms(health_t *health, uint64_t now_ms);


/*
 * How many streams an engine takes that does not say so.  While requests wait
 * in it, twice in a row, it has enough with those that run: our queue is the
 * better place to wait, since it is fair and may choose another replica.
 * While none waits the limit is raised again, and in the end forgotten.
 */
#define HEALTH_FORGET_MS  60000

typedef struct {
    int32_t   limit;            /* 0: none learnt */
    int       is_waiting;       /* at the scrape before */
    uint64_t  waited_ms;        /* the last scrape at which any waited */
} health_capacity_t;

void health_learn_capacity(health_capacity_t *capacity, int64_t running,
    int64_t waiting, uint64_t now_ms);

#endif /* HEALTH_H */
