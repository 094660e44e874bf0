
/*
 * What is still to be told: the queue from which every outgoing datagram
 * takes as many updates as it has room for.
 *
 * The queue holds members, not messages: what is sent is the member's record
 * as it is at that moment, so newer news replace older ones by themselves.
 * An update has been told enough after 3 ceil(log2(n + 1)) sends (SWIM,
 * section 4.1: a constant times log n reaches all with high probability),
 * and the least-sent go first, so that a flood of old news cannot hold up a
 * new one.  Buckets, one for each count of sends, make every step O(1).
 */

#ifndef SPREAD_H
#define SPREAD_H

#include <stddef.h>

#include "member.h"


/* 3 ceil(log2(4096 + 1)) = 39 is the most that is asked of it. */
#define SPREAD_MAX_SENDS  64

typedef struct {
    spread_link_t  buckets[SPREAD_MAX_SENDS];   /* heads of rings */
    size_t         n;
} spread_t;


void spread_init(spread_t *spread);

/* Queues a member as never told; one that is queued starts anew. */
void spread_add(spread_t *spread, member_t *member);

/* Takes a member out; does nothing for one that is not queued. */
void spread_remove(spread_t *spread, member_t *member);

/* How often an update is sent among n members. */
unsigned spread_limit(size_t n);

/*
 * The next member in order of sends; after: the one before it, NULL for the
 * first.  NULL: no more.  Nothing may be queued or sent between two calls of
 * one walk.
 */
member_t *spread_next(spread_t *spread, const member_t *after);

/* The member went out in one more datagram; after `limit` it leaves. */
void spread_sent(spread_t *spread, member_t *member, unsigned limit);

#endif /* SPREAD_H */
