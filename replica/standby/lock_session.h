
/*
 * State of an engine's session at the lock service.  Pure: no socket, no
 * clock.
 *
 *            connected         QUEUED         OFFER           GRANTED
 *    AWAY ------------> ASKED --------> WAITING ---> TAKING ----------> HELD
 *     ^ ^                 |                ^           |                 |
 *     | |  end of the     |                '-----------'  late, and so   |
 *     | '- connection ----+                                on            |
 *     |                                                                  |
 *     '------------------------------------------------------------------'
 *
 * A grant survives the end of the connection: the holder sends its epoch when
 * it connects again, and the service grants the same epoch again.
 */

#ifndef LOCK_SESSION_H
#define LOCK_SESSION_H

#include <stdint.h>


typedef enum {
    LOCK_SESSION_AWAY = 0,
    LOCK_SESSION_ASKED,
    LOCK_SESSION_WAITING,
    LOCK_SESSION_TAKING,
    LOCK_SESSION_HELD
} lock_session_state_t;

/* What the caller has to do. */
typedef enum {
    LOCK_SESSION_NOTHING = 0,
    LOCK_SESSION_TAKE,      /* send TAKE with session->offered */
    LOCK_SESSION_BEGIN,     /* granted: lock the lock file, then wake */
    LOCK_SESSION_GO_ON,     /* granted again: continue to serve */
    LOCK_SESSION_RETRY,     /* disconnect, and connect later */
    LOCK_SESSION_REFUSED    /* final: end the process */
} lock_session_act_t;

typedef struct {
    lock_session_state_t  state;
    uint64_t              epoch;        /* of the grant; 0: none */
    uint64_t              offered;      /* epoch of the last offer */
    uint64_t              last_epoch;   /* the greatest seen so far */
    uint64_t              lock;         /* instance of the granting service */
} lock_session_t;


/* To be called when ACQUIRE has been sent. */
void lock_session_connected(lock_session_t *session);

/* To be called when the connection has ended. */
void lock_session_lost(lock_session_t *session);

/*
 * epoch_max is the greatest epoch that gossip accepts at this time.  A waiting
 * session whose last_epoch is above it accepts lower epochs again.
 */
void lock_session_forget_above(lock_session_t *session, uint64_t epoch_max);

/*
 * QUEUED came: epoch is the greatest that the service knows.  It is remembered,
 * so that no later offer at or below it is accepted, even if the service loses
 * its state.
 */
lock_session_act_t lock_session_queued(lock_session_t *session,
    uint64_t epoch);

/* OFFER, GRANTED or a refusal came; lock is the instance id of the service. */
lock_session_act_t lock_session_offered(lock_session_t *session,
    uint64_t epoch);
lock_session_act_t lock_session_granted(lock_session_t *session,
    uint64_t epoch, uint64_t lock);
lock_session_act_t lock_session_refused(lock_session_t *session,
    const char *reason);

#endif /* LOCK_SESSION_H */
