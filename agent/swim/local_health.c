
/*
 * Lifeguard's local health: this agent itself may be the slow one.
 *
 * If an agent misses answers that must have been sent (a helper's NACK), is
 * reported DEAD while it lives, or runs late, then probably this agent is slow
 * or badly connected, rather than all the others.  Each such sign adds one, up
 * to eight; each ping that is answered takes one away.  Every wait and every
 * period of this agent takes (1 + local health) times as long, so it suspects
 * late while it is unwell, and is back to normal soon after.
 */

#include "swim/swim_inner.h"


#define LOCAL_HEALTH_MAX  8


void
local_health_worsen(swim_t *swim, unsigned signs)
{
    swim->local_health += signs;

    if (swim->local_health > LOCAL_HEALTH_MAX) {
        swim->local_health = LOCAL_HEALTH_MAX;
    }
}


void
local_health_improve(swim_t *swim)
{
    swim->local_health -= swim->local_health > 0;
}


uint64_t
local_health_scale(const swim_t *swim, uint64_t us)
{
    return us * (1 + swim->local_health);
}
