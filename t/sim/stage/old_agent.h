
/*
 * An agent from before MemberMore (proto/gossip.proto), as far as others can
 * tell: a filter between a present one and the fake network.
 *
 * What it says has no `more`, whosever record it is.  What it hears has one
 * without content, so that inside nothing is ever missing and nothing is ever
 * completed: an old agent takes each record for whole.
 */

#ifndef OLD_AGENT_H
#define OLD_AGENT_H

#include "t/sim/stage/fake_net.h"


/* A fake_filter_pt. */
size_t old_agent_filter(uint8_t *bytes, size_t len, int is_heard);

#endif /* OLD_AGENT_H */
