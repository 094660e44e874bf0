
#include <string.h>

#include "common/child/supervise.h"


static void
supervise_enter(supervise_t *supervise, supervise_state_t state,
    uint64_t now_us)
{
    supervise->state = state;
    supervise->since_us = now_us;
}


void
supervise_init(supervise_t *supervise, uint64_t drain_timeout_us,
    int may_have_orphan, uint64_t now_us)
{
    memset(supervise, 0, sizeof(supervise_t));
    supervise->drain_timeout_us = drain_timeout_us;
    supervise_set_stop(supervise, SUPERVISE_TERMS, SUPERVISE_KILL_US);
    supervise->orphan_us = may_have_orphan ? SUPERVISE_ORPHAN_US : 0;
    supervise->backoff_us = SUPERVISE_BACKOFF_MIN_US;
    supervise_enter(supervise, SUPERVISE_ORPHAN, now_us);
}


void
supervise_set_stop(supervise_t *supervise, int terms, uint64_t kill_us)
{
    supervise->terms_most = terms;
    supervise->kill_us = kill_us;
}


int
supervise_adopt(supervise_t *supervise, uint64_t now_us)
{
    switch (supervise->state) {
    case SUPERVISE_ORPHAN:
    case SUPERVISE_BACKOFF:
    case SUPERVISE_RESTING:
        supervise_started(supervise, now_us);
        return 1;
    default:
        return 0;
    }
}


void
supervise_started(supervise_t *supervise, uint64_t now_us)
{
    supervise->has_parted = 0;
    supervise->is_restart = 0;
    supervise->terms = 0;
    supervise_enter(supervise, SUPERVISE_RUNNING, now_us);
}


void
supervise_parted(supervise_t *supervise)
{
    supervise->has_parted = 1;
}


/*
 * The child crashed, or could not be started, which counts as a run of no time.
 */
static void
supervise_crashed(supervise_t *supervise, uint64_t now_us)
{
    if (supervise->state == SUPERVISE_RUNNING
        && now_us >= supervise->since_us + SUPERVISE_STEADY_US)
    {
        supervise->backoff_us = SUPERVISE_BACKOFF_MIN_US;
    }

    supervise_enter(supervise, SUPERVISE_BACKOFF, now_us);
}


supervise_action_t
supervise_exited(supervise_t *supervise, uint64_t now_us)
{
    if (supervise->state == SUPERVISE_STOPPING && supervise->is_restart) {
        supervise->has_parted = 0;      /* it ended as it was asked to */
        supervise_enter(supervise, SUPERVISE_BACKOFF, now_us);
        return SUPERVISE_START;
    }

    if (supervise->state == SUPERVISE_STOPPING
        || supervise->state == SUPERVISE_ENDED)
    {
        supervise_enter(supervise, SUPERVISE_ENDED, now_us);

    } else if (supervise->has_parted) {
        supervise_enter(supervise, SUPERVISE_RESTING, now_us);

    } else {
        supervise_crashed(supervise, now_us);
    }

    return SUPERVISE_WAIT;
}


/* The number of SIGTERMs that are sent before SIGKILL. */
static int
supervise_terms(const supervise_t *supervise)
{
    return supervise->is_restart ? 3 : supervise->terms_most;
}


static supervise_action_t
supervise_term(supervise_t *supervise, uint64_t now_us)
{
    supervise_enter(supervise, SUPERVISE_STOPPING, now_us);
    supervise->terms++;

    return SUPERVISE_TERM;
}


supervise_action_t
supervise_stop(supervise_t *supervise, uint64_t now_us)
{
    switch (supervise->state) {
    case SUPERVISE_ORPHAN:
        if (supervise->orphan_us > 0) {
            supervise->is_unwanted = 1;
            return SUPERVISE_WAIT;
        }

        supervise_enter(supervise, SUPERVISE_ENDED, now_us);
        return SUPERVISE_WAIT;

    case SUPERVISE_RUNNING:
        return supervise_term(supervise, now_us);

    case SUPERVISE_STOPPING:

        /* the first stop of a child that ends to be started again */
        if (supervise->is_restart) {
            supervise->is_restart = 0;
            return SUPERVISE_WAIT;
        }

        return supervise->terms < supervise->terms_most
               ? supervise_term(supervise, now_us) : SUPERVISE_WAIT;
    default:
        supervise_enter(supervise, SUPERVISE_ENDED, now_us);
        return SUPERVISE_WAIT;
    }
}


supervise_action_t
supervise_restart(supervise_t *supervise, uint64_t now_us)
{
    switch (supervise->state) {
    case SUPERVISE_RUNNING:
        supervise->is_restart = 1;
        return supervise_term(supervise, now_us);

    case SUPERVISE_BACKOFF:
    case SUPERVISE_RESTING:
        supervise->backoff_us = SUPERVISE_BACKOFF_MIN_US;
        supervise->has_parted = 0;
        return SUPERVISE_START;

    default:
        return SUPERVISE_WAIT;
    }
}


supervise_action_t
supervise_tick(supervise_t *supervise, uint64_t now_us)
{
    if (now_us < supervise_next_us(supervise)) {
        return SUPERVISE_WAIT;
    }

    switch (supervise->state) {
    case SUPERVISE_BACKOFF:
        supervise->backoff_us *= 2;

        if (supervise->backoff_us > SUPERVISE_BACKOFF_MAX_US) {
            supervise->backoff_us = SUPERVISE_BACKOFF_MAX_US;
        }

        return SUPERVISE_START;

    case SUPERVISE_ORPHAN:
        if (supervise->is_unwanted) {
            supervise_enter(supervise, SUPERVISE_ENDED, now_us);
            return SUPERVISE_WAIT;
        }

        return SUPERVISE_START;

    default:
        if (supervise->terms < supervise_terms(supervise)) {
            return supervise_term(supervise, now_us);
        }

        /* repeatedly: the child may be in a call that nothing interrupts */
        supervise_enter(supervise, SUPERVISE_STOPPING, now_us);
        return SUPERVISE_KILL;
    }
}


uint64_t
supervise_next_us(const supervise_t *supervise)
{
    switch (supervise->state) {
    case SUPERVISE_ORPHAN:
        return supervise->since_us + supervise->orphan_us;

    case SUPERVISE_BACKOFF:
        return supervise->since_us + supervise->backoff_us;

    case SUPERVISE_STOPPING:
        if (supervise->terms >= supervise_terms(supervise)) {
            return supervise->since_us + supervise->kill_us;
        }

        if (supervise->terms == 2) {
            return supervise->since_us + SUPERVISE_AGAIN_US;
        }

        return supervise->since_us + (supervise->is_restart
                                      ? SUPERVISE_RESTART_US
                                      : supervise->drain_timeout_us);
    default:
        return UINT64_MAX;
    }
}


uint64_t
supervise_pause_us(const supervise_t *supervise)
{
    return supervise->backoff_us;
}
