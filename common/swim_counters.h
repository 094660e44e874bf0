
/* Counters of a swim, declared as data: name and help. */

#ifndef SWIM_COUNTERS_H
#define SWIM_COUNTERS_H

#include <stdint.h>

#include "common/packet_header.h"


#define SWIM_COUNTERS(X)                                                      \
    X(datagrams_sent, "datagrams sent")                                       \
    X(bytes_sent, "payload bytes sent")                                       \
    X(datagrams_received, "datagrams received, dropped ones included")        \
    X(bytes_received, "payload bytes received")                               \
    X(updates_refused, "updates ignored because of an invalid field")         \
    X(updates_implausible, "updates ignored: their incarnation jumped")       \
    X(updates_doubted, "suspicions ignored: their sender is not ALIVE")       \
    X(echoes, "datagrams with this agent's own id as sender")                 \
    X(strangers, "datagrams from senders that are not members yet")           \
    X(strangers_refused, "such datagrams ignored: too many at once")          \
    X(members_refused, "members not added: the table is full")                \
    X(pings_missed, "pings not answered in time")                             \
    X(stream_pings, "pings over TCP, after datagrams were not answered")      \
    X(suspicions, "suspicions raised by this agent")                          \
    X(accusations, "suspects that did not answer this agent either")          \
    X(deaths, "members that this agent declared DEAD")                        \
    X(refutations, "false suspicions of itself that it refuted")              \
    X(conflicts, "other holders of its id that it asked")                     \
    X(epochs_refused, "times that its epoch was a day ahead of its clock")    \
    X(group_epochs_refused, "records whose group's epoch was as far ahead")   \
    X(isolations, "times that over half of the members were DEAD")            \
    X(late_ticks, "times that this agent ran late, and suspected no member")  \
    X(orders_taken, "orders received, refused ones included")                 \
    X(orders_repeated, "orders received again")                               \
    X(orders_outdated, "orders ignored: of an earlier start of their giver")  \
    X(syncs, "push-pull syncs")                                               \
    X(syncs_differed, "push-pull syncs that found a difference")

typedef struct {
#define X(name, help)  uint64_t name;
    SWIM_COUNTERS(X)
#undef X
    uint64_t  dropped[PACKET_NRC];      /* indexed by packet_rc_t */
} swim_counters_t;

#endif /* SWIM_COUNTERS_H */
