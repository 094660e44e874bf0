
/*
 * The simulated engine: when a replica would speak, and whether it would take
 * one more request; what it says is common/sim_token.h's.  No sockets, no
 * clock, no random source: times and chances are arguments, so a test has
 * them in its hand.
 */

#ifndef ENGINE_H
#define ENGINE_H

#include <stddef.h>
#include <stdint.h>


#define ENGINE_DELAY_MAX_MS   3600000   /* of both delays: an hour */
#define ENGINE_CAPACITY_MAX   1000000   /* streams: a bound for typing errors */
#define ENGINE_VERSION_BYTES  64
#define ENGINE_CATCH_UP_US    20000     /* lateness made good at any delay */


typedef enum {
    ENGINE_ADMITTED = 0,
    ENGINE_DRAINING,        /* goes elsewhere, nothing is wrong */
    ENGINE_REJECTED,        /* by a fault */
    ENGINE_FULL             /* max_capacity streams are running */
} engine_admission_t;

typedef enum {
    ENGINE_FINISHED = 0,    /* the final token was given out */
    ENGINE_CANCELLED,       /* by the client, its deadline or its absence */
    ENGINE_FAILED           /* by a fault, or because the replica stopped */
} engine_end_t;

typedef struct {
    int      reject_all;
    double   error_rate;                /* 0.0 .. 1.0 of new requests */
    int32_t  token_delay_ms;
    int32_t  first_token_delay_ms;      /* 0: like the others */
    int      stall;
    int32_t  die_after_tokens;          /* 0: never */
} engine_faults_t;

typedef struct {
    int32_t  active;
    int64_t  started;
    int64_t  finished;
    int64_t  cancelled;
    int64_t  failed;                    /* rejected ones included */
    int64_t  tokens;
} engine_stats_t;

typedef struct {
    char             model_version[ENGINE_VERSION_BYTES];
    int32_t          max_capacity;      /* 0: no limit */
    int              is_draining;
    int              is_stopping;       /* draining for good */
    engine_faults_t  faults;
    engine_stats_t   stats;
} engine_t;


/*
 * Whether a new request is taken; chance is evenly distributed in [0, 1).
 * An admitted one is counted as active until engine_release().
 */
engine_admission_t engine_admit(engine_t *engine, double chance);
void engine_release(engine_t *engine, engine_end_t end);

/* Takes no new work, for now or for good. */
int engine_is_draining(const engine_t *engine);

/* Time before the first or any further token. */
uint64_t engine_delay_us(const engine_t *engine, int is_first);

/*
 * The time from which the next token's delay counts, after one that was due
 * at due_us and came at now_us: due_us, so that a long stream does not drift
 * though each token is a little late; but now_us for one that is late by a
 * whole delay (and by ENGINE_CATCH_UP_US), so that a stall is not followed by
 * a burst.
 */
uint64_t engine_pace_us(uint64_t due_us, uint64_t now_us, uint64_t delay_us);

/* Whether a fault ends a stream that has given out this many tokens. */
int engine_dies(const engine_t *engine, int32_t tokens);

/* 0, or the name of the first field that is out of bounds. */
const char *engine_faults_error(const engine_faults_t *faults);

#endif /* ENGINE_H */
