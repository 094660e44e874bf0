
#include <string.h>

#include "replica/standby/lock_session.h"


void
seat_connected(seat_t *seat)
{
    seat->state = SEAT_ASKED;
    seat->offered = 0;
}


void
seat_lost(seat_t *seat)
{
    seat->state = SEAT_AWAY;
    seat->offered = 0;
}


void
seat_forget_above(seat_t *seat, uint64_t epoch_max)
{
    if (seat->epoch == 0 && seat->last_epoch > epoch_max) {
        seat->last_epoch = 0;
    }
}


seat_act_t
seat_queued(seat_t *seat, uint64_t epoch)
{
    if (seat->epoch != 0) {
        return SEAT_RETRY;
    }

    if (epoch > seat->last_epoch) {
        seat->last_epoch = epoch;
    }

    if (seat->state == SEAT_ASKED) {
        seat->state = SEAT_WAITING;
    }

    return SEAT_NOTHING;
}


/* An epoch that is not greater than all before would be a step back in time:
   such a service is not believed. */
seat_act_t
seat_offered(seat_t *seat, uint64_t epoch)
{
    if (seat->epoch != 0 || epoch <= seat->last_epoch) {
        return SEAT_RETRY;
    }

    seat->state = SEAT_TAKING;
    seat->offered = epoch;

    return SEAT_TAKE;
}


seat_act_t
seat_granted(seat_t *seat, uint64_t epoch, uint64_t lock)
{
    int  is_again;

    is_again = seat->epoch != 0;

    if (epoch == 0 || epoch != (is_again ? seat->epoch : seat->offered)) {
        return SEAT_RETRY;
    }

    seat->state = SEAT_HELD;
    seat->epoch = epoch;
    seat->last_epoch = epoch;
    seat->lock = lock;

    return is_again ? SEAT_GO_ON : SEAT_BEGIN;
}


/* These are said of one TAKE; the place in the queue stays.  With two offers
   under way, a TAKE of each is answered. */
static int
seat_may_wait(const char *reason)
{
    return strcmp(reason, "late") == 0      /* the offer is over */
           || strcmp(reason, "busy") == 0   /* the lock file is held */
           || strcmp(reason, "state") == 0; /* it cannot keep the epoch */
}


seat_act_t
seat_refused(seat_t *seat, const char *reason)
{
    if (seat->epoch != 0) {
        return SEAT_RETRY;      /* a helper's word ends no healthy engine */
    }

    if ((seat->state == SEAT_TAKING || seat->state == SEAT_WAITING)
        && seat_may_wait(reason))
    {
        seat->state = SEAT_WAITING;
        return SEAT_NOTHING;
    }

    return SEAT_REFUSED;
}
