
/*
 * A worker's memory for requests and answers, counted.  Counts allocated bytes,
 * never announced ones, in three shares that do not borrow from each other:
 *
 *     requests   a half     bodies, and what is made of them
 *     answers    a quarter  whole answers, until they are sent
 *     resume     a quarter what streams need to continue at another replica
 *
 * The requests' share is counted by holder, one for each request.  A holder
 * reads until its body is whole:
 *
 *     init --> reads --> whole --> hold(0)
 *                |
 *                +-- another one needs the room: end(), which calls hold(0)
 *
 * Holders that read and have bytes are in two lists, by the time at which they
 * received bytes last: the share's, and that of their client.  If a body needs
 * more than its client's part or the share has left, the first in that list is
 * ended.  So clients that announce much and send little have to make room for
 * those that send.  A whole body is never ended; if whole bodies leave too
 * little room nothing is ended, and the request is refused.
 *
 * A client is known by a hash of its key, in one of a fixed number of cells:
 * clients of the same cell have one part together.  Pure.
 */

#ifndef LLMGW_BODY_MEMORY_H
#define LLMGW_BODY_MEMORY_H

#include <stddef.h>
#include <stdint.h>


/* So that two clients seldom share one; 160 kB a worker. */
#define LLMGW_BODY_MEMORY_CELLS  4096

typedef enum {
    LLMGW_SHARE_REQUESTS = 0,
    LLMGW_SHARE_ANSWERS,
    LLMGW_SHARE_RESUME,
    LLMGW_NSHARES
} llmgw_share_t;

typedef struct llmgw_body_memory_s  llmgw_body_memory_t;
typedef struct llmgw_holder_s   llmgw_holder_t;

/* The requests' share, or a client's part of it. */
typedef struct {
    size_t           limit;
    size_t           held;
    size_t           whole;         /* of these, by holders that do not read */
    llmgw_holder_t  *first;         /* those that read and have bytes */
    llmgw_holder_t  *last;          /* received bytes last */
} llmgw_body_memory_part_t;

/* For one request; only body_memory.c changes it. */
struct llmgw_holder_s {
    llmgw_body_memory_t  *memory;
    uint32_t          cell;
    unsigned          reads:1;
    size_t            bytes;
    uint64_t          received_ms;  /* when bytes came last */

    /* Called while it reads: has to give up all its bytes, by hold(0). */
    void            (*end)(llmgw_holder_t *holder);

    struct {
        llmgw_holder_t  *before;
        llmgw_holder_t  *behind;
    } links[2];                     /* in the list of the share, of the
                                       client */
};

struct llmgw_body_memory_s {
    size_t                limit[LLMGW_NSHARES];
    size_t                held[LLMGW_NSHARES];      /* not for requests */
    llmgw_body_memory_part_t  requests;
    llmgw_body_memory_part_t  clients[LLMGW_BODY_MEMORY_CELLS];
};


/*
 * bytes: of all shares together.  has_clients: one client may have half of the
 * requests' share, else all of it.
 */
void llmgw_body_memory_init(llmgw_body_memory_t *memory, size_t bytes,
    int has_clients);

/* For answers and resume.  0: the share has less left; nothing was taken. */
int llmgw_body_memory_take(llmgw_body_memory_t *memory, llmgw_share_t share,
    size_t bytes);
void llmgw_body_memory_give(llmgw_body_memory_t *memory, llmgw_share_t share,
    size_t bytes);

/* A holder without bytes, which reads.  end is needed only if it reads. */
void llmgw_holder_init(llmgw_holder_t *holder, llmgw_body_memory_t *memory,
    uint64_t client, void (*end)(llmgw_holder_t *holder));

/*
 * From now on it holds that many bytes, more or less than before; 0 at its end,
 * also twice.  0: there is no room for more, and nothing changed.
 */
int llmgw_holder_hold(llmgw_holder_t *holder, size_t bytes);

/* Its body received bytes. */
void llmgw_holder_received(llmgw_holder_t *holder, uint64_t now_ms);

/* Its body is whole: it is not ended any more. */
void llmgw_holder_whole(llmgw_holder_t *holder);

#endif /* LLMGW_BODY_MEMORY_H */
