
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


/* A standby without its lock service for so long could not be granted. */
#define LIFE_AWAY_MS   3000

/* A loop without an iteration for so long counts as hung. */
#define LIFE_STUCK_MS  10000

/* What the engine's loop reports in each iteration. */
typedef struct {
    int       is_ready;         /* Generate is answered */
    int       is_draining;
    uint64_t  streams;          /* that run, and whose clients read */
    uint64_t  progress;         /* engine_t's */
} life_vitals_t;

typedef struct {
    llmgw_group_state_t  state;
    int                  is_dead;
    uint64_t             epoch;             /* 0: none was granted */
    uint64_t             lock;              /* who granted it */
    uint64_t             waking_timeout_ms;
    uint64_t             waking_ms;         /* since when */
    int                  is_queued;         /* the lock service has it, as one
                                               that waits or holds */
    int                  was_queued;
    uint64_t             away_ms;           /* since when it is not */
    uint64_t             turned_ms;
    life_vitals_t        vitals;
} life_t;

/* The questions of an HTTP probe. */
typedef enum {
    LIFE_IS_LIVE = 0,           /* else it should be killed */
    LIFE_IS_STARTED,            /* Init is over */
    LIFE_IS_SERVING             /* it takes requests */
} life_question_t;


void life_init(life_t *life, uint64_t waking_timeout_ms);

/* Each: 0, or -1 where the drawing has no such arrow. */
int life_asleep(life_t *life);
int life_granted(life_t *life, uint64_t epoch, uint64_t lock, uint64_t now_ms);
int life_woken(life_t *life, uint64_t now_ms);
int life_end(life_t *life);

/* The holder was granted again, by a service that may be another one, and
   which has it now. */
void life_regranted(life_t *life, uint64_t lock);

/* The lock service has it, in the queue or as the holder; or has not any
   more. */
void life_queued(life_t *life, int is_queued, uint64_t now_ms);

/*
 * What others should believe.  Whoever ends an Active engine trusts a standby
 * to be granted; so one that the service does not know is still in Init to
 * them.  A service that is started again is given LIFE_AWAY_MS.
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
