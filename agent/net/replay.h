
/*
 * Which sealed datagrams have been received already.
 *
 * A seal tells the writer of a datagram and not the time: a recorded one can be
 * sent again.  So each sender numbers what it seals, over all receivers, and
 * each receiver remembers for each sender and epoch the highest number seen
 * and, in a window below it, which numbers were seen (as RFC 4303, 3.4.3
 * does).  Numbers below the window count as seen.
 *
 *              window of 1024              top
 *       ... |0 1 1 0 0 1 0 ... 1 1 0 1 1 1 1|  <- next
 *
 * A sender that starts anew has a higher epoch and counts from one.  Two
 * epochs are remembered, so that what the last run still had under way, or
 * another holder of the id, is not taken for an attack.  A third takes the
 * lower one's place.  An epoch below both counts as already seen; otherwise
 * old epochs could be replayed alternately.  But a sender that was silent for
 * 30 s may come back below: its clock was set back and its state is lost.  So
 * old datagrams can pass then.  The protocol bears that: an update that is
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
 * More than a member sends in the second that a datagram may be late; LEFT
 * goes to a thousand others at once.
 */
#define REPLAY_WINDOW       1024

/* As many as there can be members (swim/table/table.h) and strangers
   (swim/table/candidate.h). */
#define REPLAY_MAX_SENDERS  17408

#define REPLAY_SILENCE_US   30000000ULL

typedef struct replay_s  replay_t;


/* NULL: out of memory. */
replay_t *replay_create(void);
void replay_destroy(replay_t *replay);

/*
 * Is this number of the sender new? 1: yes, and it counts as seen from now on;
 * 0: it was seen, or is too old to be known.  Counters begin with 1.
 */
int replay_take(replay_t *replay, const char *sender_id, uint64_t epoch,
    uint64_t counter, uint64_t now_us);

/* Senders remembered. */
size_t replay_count(const replay_t *replay);

#endif /* REPLAY_H */
