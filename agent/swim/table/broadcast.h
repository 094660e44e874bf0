
/*
 * The queue of updates: every outgoing datagram takes as many from it as fit.
 *
 * The queue holds members and not messages.  What is sent is the member's
 * record as it is at that moment, so a newer update replaces an older one by
 * itself.  An update leaves the queue after 3 ceil(log2(n + 1)) sends (SWIM,
 * section 4.1: a constant times log n reaches all with high probability).  The
 * least-sent go first, so a flood of old updates cannot hold up a new one.
 *
 * Updates come in classes.  Of six places in a datagram three are for members
 * that are gone, two for suspicions and refutations, one for new members and
 * changed facts; a class that does not use its places leaves them to the
 * others.  So a thousand joins do not hold up one death, nor a thousand deaths
 * a refutation.  Load figures need no class: they travel in the sender's own
 * record and are no updates (swim/load.c).
 *
 * If an agent receives an update that it was about to send, others know it
 * already.  For joins and changed facts that counts as four sends (Demers and
 * others, "Epidemic Algorithms for Replicated Database Maintenance", PODC 1987:
 * loss of interest by feedback).  As many members get it in the end, but a
 * thousand that join at once send 0.6 MB each instead of 1.3, and are quiet
 * after 12 s instead of 39.  If it counted as eight sends, or also for
 * suspicions and deaths, then under loss some members would get an update only
 * by a push-pull sync (sync.c).
 *
 * There is a bucket for each class and count of sends, and a word of bits that
 * tells which are not empty.  So every step is O(1).
 */

#ifndef BROADCAST_H
#define BROADCAST_H

#include <stddef.h>

#include "swim/table/member.h"


/* 3 ceil(log2(16,384 + 1)) = 45 is the greatest limit in use. */
#define BROADCAST_MAX_SENDS  64

typedef enum {
    BROADCAST_GONE = 0,             /* DEAD, LEFT */
    BROADCAST_SUSPICION,            /* SUSPECT, and its refutation */
    BROADCAST_JOIN,                 /* new members, and changed facts */
    BROADCAST_NCLASSES
} broadcast_class_t;

typedef struct {
    /* Rings: one for each class and count of sends. */
    broadcast_link_t  buckets[BROADCAST_NCLASSES][BROADCAST_MAX_SENDS];
    uint64_t          filled[BROADCAST_NCLASSES];   /* bit i: bucket i has
                                                       any */
    size_t            n;
} broadcast_t;

/* One walk over the queue, in the order in which a datagram takes from it. */
typedef struct {
    const broadcast_t       *queue;
    const broadcast_link_t  *next[BROADCAST_NCLASSES];
    unsigned                 slot;
} broadcast_walk_t;


void broadcast_init(broadcast_t *queue);

/* Queues a member as never sent, even if it is queued already. */
void broadcast_add(broadcast_t *queue, member_t *member,
    broadcast_class_t class);

/* Takes a member out; does nothing for one that is not queued. */
void broadcast_remove(broadcast_t *queue, member_t *member);

/* How often an update is sent among n members. */
unsigned broadcast_limit(size_t n);

/* Walks in the order in which a datagram takes from the queue, which must not
   change until the walk ends.  NULL: no more. */
void broadcast_walk(const broadcast_t *queue, broadcast_walk_t *walk);
member_t *broadcast_next(broadcast_walk_t *walk);

/*
 * The member was sent in one more datagram; after `limit` it leaves the queue.
 */
void broadcast_sent(broadcast_t *queue, member_t *member, unsigned limit);

/* Another member sent us the same update. */
void broadcast_received(broadcast_t *queue, member_t *member, unsigned limit);

#endif /* BROADCAST_H */
