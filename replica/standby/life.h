
/*
 * The states of a standby engine, and their meaning for probes and for the lock
 * service.  Pure: time is an argument, in ms of a clock that never goes back.
 *
 *            weights are there        granted             ready to serve
 *   INIT ----------------> STANDBY ----------> WAKING -------------> ACTIVE
 *     |                       |                   |                    |
 *     '-----------------------+---------+---------+--------------------'
 *                                       v
 *                                     DEAD
 *
 * There is no way back: a standby is used once, and then its process is
 * restarted.
 */

#ifndef LIFE_H
#define LIFE_H

#include <stdint.h>

#include "proto/members/members.h"


/* After this time without its lock service, a standby is not shown as one: it
   could not be granted the group. */
#define LIFE_AWAY_MS   3000

/* A loop without an iteration for this time counts as hung. */
#define LIFE_STUCK_MS  10000

/* What the engine's loop reports in each iteration. */
typedef struct {
    int       is_ready;         /* Generate is answered */
    int       is_draining;
    uint64_t  streams;          /* streams that run and whose clients read */
    uint64_t  progress;         /* engine_t's */
} life_vitals_t;

typedef struct {
    llmgw_group_state_t  state;
    int                  is_dead;
    uint64_t             epoch;             /* 0: none was granted */
    uint64_t             lock;              /* instance of the lock service that
                                               granted it */
    uint64_t             waking_timeout_ms;
    uint64_t             waking_ms;         /* since when */
    int                  is_queued;         /* the lock service knows it, as
                                               waiting or as the holder */
    int                  was_queued;
    uint64_t             away_ms;           /* since when is_queued is 0 */
    uint64_t             turned_ms;
    life_vitals_t        vitals;
} life_t;

/* The questions of an HTTP probe. */
typedef enum {
    LIFE_IS_LIVE = 0,           /* if not, it should be killed */
    LIFE_IS_STARTED,            /* Init is over */
    LIFE_IS_SERVING             /* it takes requests */
} life_question_t;


void life_init(life_t *life, uint64_t waking_timeout_ms);

/* Transitions: 0, or -1 if the drawing has no such arrow. */
int life_asleep(life_t *life);
int life_granted(life_t *life, uint64_t epoch, uint64_t lock, uint64_t now_ms);
int life_woken(life_t *life, uint64_t now_ms);
int life_end(life_t *life);

/* The holder was granted the group again, by a service that may be another
   instance; it is queued there now. */
void life_regranted(life_t *life, uint64_t lock);

/* Whether the lock service knows this engine, in the queue or as the holder. */
void life_queued(life_t *life, int is_queued, uint64_t now_ms);

/*
 * The state that is published.  An Active engine is ended in the expectation
 * that a standby is granted the group; so a standby that the service does not
 * know is published as Init.  While a service is restarted, it stays Standby
 * for LIFE_AWAY_MS.
 */
llmgw_group_state_t life_shown(const life_t *life, uint64_t now_ms);

/* 1: if this Active engine ended now, the group would be left without one. */
int life_is_lock_away(const life_t *life);

void life_turned(life_t *life, const life_vitals_t *vitals, uint64_t now_ms);

/* Whether the wake has exceeded its timeout. */
int life_is_overdue(const life_t *life, uint64_t now_ms);

int life_answer(const life_t *life, life_question_t question, uint64_t now_ms);

/* "INIT", ... "DEAD". */
const char *life_name(const life_t *life);

#endif /* LIFE_H */
