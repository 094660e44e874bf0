
#include <string.h>

#include "replica/standby/lock_session.h"


void
lock_session_connected(lock_session_t *session)
{
    session->state = LOCK_SESSION_ASKED;
    session->offered = 0;
}


void
lock_session_lost(lock_session_t *session)
{
    session->state = LOCK_SESSION_AWAY;
    session->offered = 0;
}


void
lock_session_forget_above(lock_session_t *session, uint64_t epoch_max)
{
    if (session->epoch == 0 && session->last_epoch > epoch_max) {
        session->last_epoch = 0;
    }
}


lock_session_act_t
lock_session_queued(lock_session_t *session, uint64_t epoch)
{
    if (session->epoch != 0) {
        return LOCK_SESSION_RETRY;
    }

    if (epoch > session->last_epoch) {
        session->last_epoch = epoch;
    }

    if (session->state == LOCK_SESSION_ASKED) {
        session->state = LOCK_SESSION_WAITING;
    }

    return LOCK_SESSION_NOTHING;
}


/* An epoch that is not greater than all before is not accepted: the service has
   lost its state. */
lock_session_act_t
lock_session_offered(lock_session_t *session, uint64_t epoch)
{
    if (session->epoch != 0 || epoch <= session->last_epoch) {
        return LOCK_SESSION_RETRY;
    }

    session->state = LOCK_SESSION_TAKING;
    session->offered = epoch;

    return LOCK_SESSION_TAKE;
}


lock_session_act_t
lock_session_granted(lock_session_t *session, uint64_t epoch, uint64_t lock)
{
    int  is_again;

    is_again = session->epoch != 0;

    if (epoch == 0 || epoch != (is_again ? session->epoch : session->offered)) {
        return LOCK_SESSION_RETRY;
    }

    session->state = LOCK_SESSION_HELD;
    session->epoch = epoch;
    session->last_epoch = epoch;
    session->lock = lock;

    return is_again ? LOCK_SESSION_GO_ON : LOCK_SESSION_BEGIN;
}


/* Refusals of one TAKE, after which the place in the queue stays.  If two
   offers were sent, the TAKE of each is answered. */
static int
seat_may_wait(const char *reason)
{
    return strcmp(reason, "late") == 0      /* the offer is over */
           || strcmp(reason, "busy") == 0   /* the lock file is held */
           || strcmp(reason, "state") == 0; /* it cannot keep the epoch */
}


lock_session_act_t
lock_session_refused(lock_session_t *session, const char *reason)
{
    if (session->epoch != 0) {
        /* a service that contradicts itself ends no healthy engine */
        return LOCK_SESSION_RETRY;
    }

    if ((session->state == LOCK_SESSION_TAKING
         || session->state == LOCK_SESSION_WAITING)
        && seat_may_wait(reason))
    {
        session->state = LOCK_SESSION_WAITING;
        return LOCK_SESSION_NOTHING;
    }

    return LOCK_SESSION_REFUSED;
}
