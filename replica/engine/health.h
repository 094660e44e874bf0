
/*
 * Derives an engine's health from its answers and its silence.  Pure: time in
 * milliseconds is an argument.
 *
 * An engine that hangs may answer "healthy", and one that works may be too busy
 * to answer.  So progress counts, and not what the engine reports about itself:
 *
 *   - bytes on our own streams: it works, whatever else;
 *   - a scrape with requests in the engine, its progress counter the same as
 *     in the one before, and the last progress a stall time-out ago: STALLED;
 *   - it was asked HEALTH_SILENCE_MS ago, and neither a byte nor any answer has
 *     come since: STALLED, also if no stream runs, since all may have moved
 *     away from a frozen engine;
 *   - streams run, and its metrics, which it had before, have not been readable
 *     for a stall time-out: STALLED; llama-server answers /health whatever its
 *     model does;
 *   - a refused connection: DOWN, or STARTING before the first READY.  But an
 *     engine that holds connections of our streams has only closed its port: it
 *     is leaving, like an engine that reports so.
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
 * is_leaving is set beside READY and STALLED: the engine accepts no new
 * request, and streams that run may finish.  The next answer of READY clears
 * it.
 *
 * The stall time-out is the operator's, or it is learnt.  An engine that has
 * just started may compile kernels in the middle of a step, for a minute; later
 * its longest step shows what is usual:
 *
 *   HEALTH_FRESH_MS until HEALTH_STEPS steps were seen; then three times the
 *   longest of the last one to two times HEALTH_STEPS, from HEALTH_STALL_MS to
 *   HEALTH_FRESH_MS.
 */

#ifndef HEALTH_H
#define HEALTH_H

#include <stdint.h>

#include "replica/engine/engine.h"


/* Longer than a probe's time-out, the pause after it, and an answer
   together. */
#define HEALTH_SILENCE_MS  3000

/* When a stream of ours has waited this long without bytes, the engine counts
   as busy though its gauges, which may lag, report no request. */
#define HEALTH_FORGOTTEN_MS  10000

/* A STALLED engine that reports for this time that nothing runs is READY
   again. */
#define HEALTH_IDLE_MS  10000

/* The stall time-out, see above.  Bytes of several streams that come within
   HEALTH_STEP_MS are of one step. */
#define HEALTH_FRESH_MS  60000
#define HEALTH_STALL_MS  2500
#define HEALTH_STEPS     1000
#define HEALTH_STEP_MS   10

typedef struct {
    engine_state_t  state;
    int             is_leaving;     /* it accepts no new request */
    int             was_ready;      /* since it was last STARTING */
    int             is_silent;      /* STALLED because it does not answer */
    int             has_served;     /* READY or STALLED, and not leaving */
    uint64_t        gone_ms;        /* with has_served: since when it is not
                                       READY or STALLED, or is leaving; 0: it is
                                       neither */
    uint64_t        given_ms;       /* the stall time-out; 0: learnt */
    uint64_t        answered_ms;    /* the last answered probe */
    uint64_t        asked_ms;       /* the first probe after that; 0: none */
    uint64_t        bytes_ms;       /* the last byte on a stream of ours */
    uint64_t        streams_ms;     /* since when streams run; 0: none runs */
    uint64_t        looked_ms;      /* the last health_look() */
    uint64_t        woke_ms;        /* until when this process stood still */
    uint64_t        scraped_ms;     /* the last scrape with a counter */
    uint64_t        still_ms;       /* that scrape, if nothing had moved */
    uint64_t        alone_ms;       /* when its counter moved without bytes of
                                       ours */
    uint64_t        busy_ms;        /* since when it has requests; 0: it has
                                       none */
    uint64_t        idle_ms;        /* since which scrape it has none; 0: it has
                                       some */
    int64_t         counter;        /* -1: not known */

    /* Steps of this engine's process, in groups of HEALTH_STEPS; longest_ms: of
       the current group and of the one before. */
    int             is_warm;        /* a whole group was seen */
    uint32_t        steps;          /* in the current group */
    uint64_t        step_ms;        /* when the last one came */
    uint64_t        longest_ms[2];
} health_t;


/* given_ms: the stall time-out, 0: learnt.  now_ms is never 0. */
void health_init(health_t *health, uint64_t given_ms, uint64_t now_ms);

/* A probe was sent; a probe was answered, whatever the answer says. */
void health_asked(health_t *health, uint64_t now_ms);
void health_answered(health_t *health, uint64_t now_ms);

/*
 * What the engine reports about itself: READY, STARTING or DOWN.
 * health_unwilling(): it accepts no request.  If it was READY or STALLED
 * before, it is leaving, else it is STARTING.
 */
void health_answer(health_t *health, engine_state_t state, uint64_t now_ms);
void health_unwilling(health_t *health, uint64_t now_ms);

/* The engine refused a connection.  has_streams: it holds connections of our
   streams, whose end would be noticed. */
void health_refused(health_t *health, int has_streams);

/*
 * A scrape was answered.  counter: its progress counter, -1: it reports none;
 * requests: in the engine, running and waiting, of all its clients.
 */
void health_scrape(health_t *health, int64_t counter, int64_t requests,
    uint64_t now_ms);

/* Bytes that were generated, on a stream of ours. */
void health_bytes(health_t *health, uint64_t now_ms);

/* The time of the last known progress, for a READY engine with requests. */
uint64_t health_progress_ms(const health_t *health);

/* The stall time-out in force now. */
uint64_t health_stall_ms(const health_t *health);

/*
 * Whether a stream that has received no bytes since since_ms may wait on: after
 * that time, bytes came on another stream or a probe was answered, and the
 * engine's last progress is less than a stall time-out ago.
 */
int health_is_alive(const health_t *health, uint64_t since_ms,
    uint64_t now_ms);

/*
 * To be called each HEALTH_LOOK_MS.  streams: number of our streams that wait
 * for the engine, not for their clients.  A call that comes late shows that
 * this process stood still, so the engine's silence in that time is not held
 * against it.
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
 * Learns the capacity of an engine that does not report one.  If requests wait
 * in the engine at two scrapes in a row, the limit becomes the number that run:
 * the gateway's queue is the better place to wait, since it is fair and may
 * choose another replica.  While none waits the limit is raised again, and in
 * the end forgotten.
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
