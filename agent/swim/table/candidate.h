
/*
 * Strangers: agents that are no members yet, but were named by an update or
 * sent us a datagram.
 *
 * An update of a third party adds no member.  A stranger is pinged at the
 * address that was named for it, and becomes a member by its own answer.  After
 * three pings without an answer it is forgotten until it is named again.  So a
 * forged datagram costs its victim three small ones, an agent that joins and
 * learns of members that died long ago does not revive them, and a stranger
 * never gets more bytes than it sent.
 *
 *     named ----> pinged --(answers for itself)--> member, sent to all
 *                   | ^
 *                   | | 200 ms, twice
 *                   +-+--(no answer)--> forgotten
 */

#ifndef CANDIDATE_H
#define CANDIDATE_H

#include <stddef.h>
#include <stdint.h>

#include "common/address.h"
#include "proto/members/members.h"


/* An agent that joins a thousand others gets all their ids at once. */
#define CANDIDATE_MAX        1024
#define CANDIDATE_TRIES      3
#define CANDIDATE_RETRY_US   200000

/* Pings at once: 32 every 10 ms.  A thousand in one burst would not fit into
   the kernel's socket buffer. */
#define CANDIDATE_BURST      32
#define CANDIDATE_BURST_US   10000

typedef struct {
    char      id[LLMGW_MEMBERS_NAME_BYTES];
    char      address[LLMGW_MEMBERS_ADDRESS_BYTES];
    uint64_t  sequence;
    uint64_t  next_us;
    unsigned  tries;                /* pings sent */
    uint64_t  join_sequence;        /* of its JOIN; 0: it sent none */
} candidate_t;

typedef struct {
    candidate_t  *entries;
    uint32_t     *hashes;           /* of ids, for finding them */
    size_t        n;
    size_t        max_entries;
    size_t        max_hashes;
    uint64_t      next_us;          /* the first ping is due then or later */
    uint64_t      burst_us;         /* the next burst is not before */
} candidates_t;


void candidates_done(candidates_t *candidates);

/*
 * The stranger with that id; NULL: there is none.  Valid until the next new or
 * forget.
 */
candidate_t *candidate_find(candidates_t *candidates, const char *id);

/*
 * Adds a stranger, all zero but its id.  NULL: CANDIDATE_MAX are there, or out
 * of memory.
 */
candidate_t *candidate_new(candidates_t *candidates, const char *id);

/* Removes a stranger; the last one takes its place. */
void candidate_forget(candidates_t *candidates, candidate_t *candidate);

#endif /* CANDIDATE_H */
