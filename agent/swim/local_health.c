
/*
 * Lifeguard's local health: this agent itself may be the slow one.
 *
 * An agent that misses answers that must have come (a helper's NACK), is
 * called DEAD while it lives, or runs late, is probably the one that is slow or
 * badly connected, rather than all the others.  Each such sign adds one, up to
 * eight; each ping that is answered takes one away.  Every wait of this agent
 * takes (1 + local health) times as long, and its periods are as much longer,
 * so it suspects late while it is unwell and is itself again soon after.
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
