
/*
 * What is still to be told: the queue from which every outgoing datagram
 * takes as many updates as it has room for.
 *
 * The queue holds members, not messages: what is sent is the member's record
 * as it is at that moment, so newer news replace older ones by themselves.
 * An update has been told enough after 3 ceil(log2(n + 1)) sends (SWIM,
 * section 4.1: a constant times log n reaches all with high probability),
 * and the least-sent go first, so that a flood of old news cannot hold up a
 * new one.
 *
 * News come in classes.  Out of six places in a datagram three are for the
 * gone, two for doubts and their answers, one for who is new; what a class
 * does not use the others have.  So a thousand joiners do not hold up one
 * death, nor a thousand deaths a refutation.  Load figures need no class:
 * they ride in the sender's own record and are no news (swim/load.c).
 *
 * Who hears from others what it was about to tell learns that it is known:
 * of joins and changed facts that counts as four sends (Demers and others,
 * "Epidemic Algorithms for Replicated Database Maintenance", PODC 1987: loss
 * of interest by feedback).  As many know of it in the end, but a thousand
 * that join at once cost each other 0.6 MB and not 1.3, and are quiet after
 * 12 s, not 39.  With eight for four, or for doubts and deaths, some under
 * loss would be left to the comparing of tables (sync.c).
 *
 * Buckets, one for each class and count of sends, and a word of bits that
 * tells which are not empty, make every step O(1).
 */

#ifndef SPREAD_H
#define SPREAD_H

#include <stddef.h>

#include "swim/table/member.h"


/* 3 ceil(log2(4096 + 1)) = 39 is the most that is asked of it. */
#define SPREAD_MAX_SENDS  64

typedef enum {
    SPREAD_GONE = 0,                /* DEAD, LEFT */
    SPREAD_DOUBT,                   /* SUSPECT, and what contradicts it */
    SPREAD_JOIN,                    /* new ones, and changes of facts */
    SPREAD_NCLASSES
} spread_class_t;

typedef struct {
    spread_link_t  buckets[SPREAD_NCLASSES][SPREAD_MAX_SENDS];  /* rings */
    uint64_t       filled[SPREAD_NCLASSES];     /* bit i: bucket i is */
    size_t         n;
} spread_t;

/* One walk over the queue, in the order in which a datagram takes from it. */
typedef struct {
    const spread_t       *spread;
    const spread_link_t  *next[SPREAD_NCLASSES];
    unsigned              turn;
} spread_walk_t;


void spread_init(spread_t *spread);

/* Queues a member as never told; one that is queued starts anew. */
void spread_add(spread_t *spread, member_t *member, spread_class_t class);

/* Takes a member out; does nothing for one that is not queued. */
void spread_remove(spread_t *spread, member_t *member);

/* How often an update is sent among n members. */
unsigned spread_limit(size_t n);

/* Nothing may be queued or sent while one walks.  NULL: no more. */
void spread_walk(const spread_t *spread, spread_walk_t *walk);
member_t *spread_next(spread_walk_t *walk);

/* The member went out in one more datagram; after `limit` it leaves. */
void spread_sent(spread_t *spread, member_t *member, unsigned limit);

/* Somebody told us the same of it. */
void spread_heard(spread_t *spread, member_t *member, unsigned limit);

#endif /* SPREAD_H */
