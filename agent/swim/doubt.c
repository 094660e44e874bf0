
/*
 * Doubt in oneself: Lifeguard's local health.
 *
 * Who misses answers that must have come (a helper's NACK), is called dead
 * while alive, or finds its own clockwork late, is likely the one who is slow
 * or badly connected, not all the others.  Each such sign adds one, up to
 * eight; each ping that is answered takes one away.  All that this agent waits
 * for takes (1 + doubt) times as long, and its pings come as much more seldom,
 * so it accuses late while it doubts and is itself again soon after.
 */

#include "swim/swim_inner.h"


#define DOUBT_MAX  8


void
doubt_more(swim_t *swim, unsigned signs)
{
    swim->doubt = swim->doubt + signs < DOUBT_MAX ? swim->doubt + signs
                                                  : DOUBT_MAX;
}


void
doubt_less(swim_t *swim)
{
    swim->doubt -= swim->doubt > 0;
}


uint64_t
doubt_scale(const swim_t *swim, uint64_t us)
{
    return us * (1 + swim->doubt);
}
