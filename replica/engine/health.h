
/*
 * What an engine's answers, and its silence, say about it.  Pure: time in
 * milliseconds is an argument.
 *
 * An engine that hangs may answer "healthy", and one that works may be too
 * busy to answer.  So progress counts, and not what it says about itself:
 *
 *   - a refused connection: DOWN at once, or STARTING before the first READY;
 *   - bytes on our own streams: it works, whatever else;
 *   - a scrape with requests in the engine, its progress counter the same as
 *     in the one before, and the last progress a grace ago: STALLED;
 *   - streams run, and for HEALTH_SILENCE_MS neither a byte nor an answer:
 *     STALLED.  One probe without an answer means nothing.
 *
 *              READY answered            no progress, silence
 *   STARTING ------------------> READY -----------------------> STALLED
 *      ^  ^                      |  ^ <----------------------------'  |
 *      |  |   it says it loads   |  |   progress; idle for a grace;   |
 *      |  '----------------------'  |   after silence, any answer     |
 *      |                            | READY answered                  |
 *      '--------------------------- DOWN <----------------------------'
 *          it says it loads           refused, or it says it is dead;
 *                                     from each state but STARTING
 */

#ifndef HEALTH_H
#define HEALTH_H

#include <stdint.h>

#include "replica/engine/engine.h"


/* Longer than any probe's time-out, and than what loads a busy engine. */
#define HEALTH_SILENCE_MS  10000

typedef struct {
    engine_state_t  state;
    uint64_t        grace_ms;
    int             was_ready;      /* since it was last STARTING */
    int             is_silent;      /* STALLED by silence */
    uint64_t        answered_ms;    /* the last answered probe */
    uint64_t        bytes_ms;       /* the last byte on a stream of ours */
    uint64_t        streams_ms;     /* since then streams run; 0: none does */
    uint64_t        scraped_ms;     /* the last scrape with a counter */
    uint64_t        moved_ms;       /* its counter has moved */
    uint64_t        alone_ms;       /* the same, and by no bytes of ours */
    uint64_t        busy_ms;        /* requests are in it since then; 0: none
                                       is */
    uint64_t        idle_ms;        /* since this scrape none is; 0: some are */
    int64_t         counter;        /* -1: not known */
} health_t;


/* now_ms is never 0. */
void health_init(health_t *health, uint64_t grace_ms, uint64_t now_ms);

/* What it says of itself: READY, STARTING or DOWN. */
void health_answer(health_t *health, engine_state_t state, uint64_t now_ms);
void health_refused(health_t *health);

/*
 * A scrape was answered.  counter: of its progress, -1: it has none;
 * requests: in the engine, running and waiting, whoever asked.
 */
void health_scrape(health_t *health, int64_t counter, int64_t requests,
    uint64_t now_ms);

/* Bytes on a stream of ours. */
void health_bytes(health_t *health, uint64_t now_ms);

/* The last progress that is known, for a READY engine with requests. */
uint64_t health_progress_ms(const health_t *health);

/*
 * Time passes: to be called a few times a second.  streams: those of ours that
 * wait for the engine, not for their clients.
 */
void health_look(health_t *health, uint32_t streams, uint64_t now_ms);


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
