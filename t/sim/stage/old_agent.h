
/*
 * Older agents, as far as others can see: filters between a current agent and
 * the fake network.
 *
 * Records that one sends lack what it does not know, whichever member they are
 * of.  Records that it receives get that, empty, so that inside nothing is ever
 * missing and nothing is ever completed: an old agent takes each record as
 * complete.
 */

#ifndef OLD_AGENT_H
#define OLD_AGENT_H

#include "sim/swim/fake_net.h"


/* Fake_filter_pt of one from before MemberMore (proto/gossip.proto), of one
   from before its second edition, which has standby groups, and of one from
   before its third, which has shards. */
size_t old_agent_filter(uint8_t *bytes, size_t len, int is_heard);
size_t old_agent_groupless_filter(uint8_t *bytes, size_t len, int is_heard);
size_t old_agent_shardless_filter(uint8_t *bytes, size_t len, int is_heard);

#endif /* OLD_AGENT_H */
