
/* What a swim counts, declared as data: name and help. */

#ifndef SWIM_COUNTERS_H
#define SWIM_COUNTERS_H

#include <stdint.h>

#include "common/packet_header.h"


#define SWIM_COUNTERS(X)                                                      \
    X(datagrams_sent, "datagrams sent")                                       \
    X(bytes_sent, "payload bytes sent")                                       \
    X(datagrams_received, "datagrams received, dropped ones included")        \
    X(bytes_received, "payload bytes received")                               \
    X(updates_refused, "updates left out of a datagram: a bad field")         \
    X(updates_implausible, "updates refused: the incarnation jumped")         \
    X(updates_doubted, "accusations by members that are not ALIVE here")      \
    X(echoes, "datagrams that bore this agent's own id")                      \
    X(strangers, "datagrams of senders that are no members yet")              \
    X(strangers_refused, "strangers not looked at: too many at once")         \
    X(members_refused, "members not added: the table is full")                \
    X(pings_missed, "pings not answered in time")                             \
    X(stream_pings, "pings over TCP, since datagrams were not answered")      \
    X(suspicions, "suspicions raised by this agent")                          \
    X(accusations, "suspects whose ping failed here too")                     \
    X(deaths, "members this agent declared dead")                             \
    X(refutations, "false suspicions of itself contradicted")                 \
    X(conflicts, "others with this id, past or present, that were asked")     \
    X(isolations, "times over half of the members died at once")              \
    X(late_ticks, "times this agent itself was late and accused nobody")      \
    X(orders_taken, "orders to this agent, refused ones included")            \
    X(orders_repeated, "orders that came once more")                          \
    X(syncs, "tables compared")                                               \
    X(syncs_differed, "tables compared that differed")

typedef struct {
#define X(name, help)  uint64_t name;
    SWIM_COUNTERS(X)
#undef X
    uint64_t  dropped[PACKET_NRC];      /* by packet_rc_t */
} swim_counters_t;

#endif /* SWIM_COUNTERS_H */
