
/*
 * An agent from before MemberMore (proto/gossip.proto), as far as others can
 * see: a filter between a current agent and the fake network.
 *
 * Records that it sends have no `more`, whichever member they are of.  Records
 * that it receives get an empty one, so that inside nothing is ever missing and
 * nothing is ever completed: an old agent takes each record as complete.
 */

#ifndef OLD_AGENT_H
#define OLD_AGENT_H

#include "sim/swim/fake_net.h"


/* A fake_filter_pt. */
size_t old_agent_filter(uint8_t *bytes, size_t len, int is_heard);

#endif /* OLD_AGENT_H */
