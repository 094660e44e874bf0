
/*
 * Which sealed datagrams have been received already.
 *
 * A seal proves who wrote a datagram, but not when: a recorded datagram can be
 * sent again.  So each sender numbers what it seals, over all receivers, and
 * each receiver remembers for each sender and epoch the highest number seen
 * and, in a window below it, which numbers were seen (as RFC 4303, 3.4.3 does).
 * Numbers below the window count as seen.
 *
 *              window of 1024              top
 *       ... |0 1 1 0 0 1 0 ... 1 1 0 1 1 1 1|  <- next
 *
 * A restarted sender has a higher epoch and numbers from one on.  Two epochs
 * are remembered, so that datagrams of the last run that are still on their
 * way, or those of another agent with this id, are not taken for an attack.  A
 * third epoch takes the place of the lower one.  Datagrams of an epoch below
 * both count as already seen; otherwise old epochs could be replayed
 * alternately.  But a sender that was silent for 30 s may come back with an
 * epoch below: its clock was set back and its state is lost.  Then old
 * datagrams can pass as well.  The protocol tolerates that: an update that is
 * older than the record changes nothing (swim/table/member.h), and an order
 * from an earlier epoch of its sender is ignored (swim/recv.c).
 *
 * Only senders that have a key are remembered, and memory is bounded all the
 * same: the sender that was silent for longest makes room.
 */

#ifndef REPLAY_H
#define REPLAY_H

#include <stdint.h>

#include "proto/members/members.h"


/*
 * More numbers than a member uses in the second by which a datagram may be
 * late; it sends LEFT to a thousand others at once.
 */
#define REPLAY_WINDOW       1024

/* As many senders as there can be members (swim/table/table.h) and strangers
   (swim/table/candidate.h). */
#define REPLAY_MAX_SENDERS  17408

#define REPLAY_SILENCE_US   30000000ULL

typedef struct replay_s  replay_t;


/* NULL: out of memory. */
replay_t *replay_create(void);
void replay_destroy(replay_t *replay);

/*
 * Whether this number of the sender is new.  1: yes, and it counts as seen from
 * now on; 0: it was seen, or is too old to be known.  Numbers begin with 1.
 */
int replay_take(replay_t *replay, const char *sender_id, uint64_t epoch,
    uint64_t counter, uint64_t now_us);

/* The number of senders remembered. */
size_t replay_count(const replay_t *replay);

#endif /* REPLAY_H */
