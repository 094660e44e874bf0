
/*
 * Older agents, as far as others can see: filters between a current agent and
 * the fake network.
 *
 * Records that an old agent sends lack the fields that it does not know,
 * whichever member they are about.  In records that it receives these fields
 * are present and empty, so that the agent inside never finds one missing and
 * never completes one: an old agent takes each record as complete.
 */

#ifndef OLD_AGENT_H
#define OLD_AGENT_H

#include "sim/swim/fake_net.h"


/* Filters for fake_filter_pt: of an agent from before MemberMore
   (proto/gossip.proto), from before its second edition, which has standby
   groups, and from before its third, which has shards. */
size_t old_agent_filter(uint8_t *bytes, size_t len, int is_heard);
size_t old_agent_groupless_filter(uint8_t *bytes, size_t len, int is_heard);
size_t old_agent_shardless_filter(uint8_t *bytes, size_t len, int is_heard);

#endif /* OLD_AGENT_H */
