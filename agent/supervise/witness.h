
/*
 * Notices a process's death before the kernel has freed its memory: 4 ms after
 * a kill instead of 315 ms, for a replica that has touched 2 GB.
 *
 * A process that dies is taken apart in order: its robust futexes are released,
 * then its memory is freed, then its files are closed.  With some gigabytes the
 * second step takes long, and the end of the report connection, which is in the
 * third, comes only after it.  So a replica holds a robust futex in a page that
 * it shares with us, and we wait for its release.
 *
 * The page is the first of a memfd, sealed against shrinking (or our reading
 * of it could be made a SIGBUS).  Its first 32 bits are the futex word of the
 * kernel's robust futex ABI: the holder's thread id, FUTEX_WAITERS, and
 * FUTEX_OWNER_DIED, which the kernel sets.  With glibc that is a robust
 * process-shared pthread_mutex_t at the start of the page.
 *
 * Nothing else in the page is looked at.  Locking the mutex by the C library
 * would follow pointers that the replica can write; waiting for the word does
 * not.  A separate thread waits, since no descriptor reports a futex; an
 * eventfd notifies the loop.  The thread sleeps in futex_waitv() on the word
 * and on a futex of our own, which ends it; if the kernel is older than that
 * call (5.16), there is no witness.
 */

#ifndef WITNESS_H
#define WITNESS_H

#include <ev.h>


typedef struct witness_s  witness_t;

/* The holder died.  Called in each iteration until the witness is destroyed. */
typedef void (*witness_dead_pt)(void *data);

/*
 * Takes over fd, also on failure.  NULL: it is no sealed memfd, the futex has
 * no holder, or there is no memory or thread for it.
 */
witness_t *witness_create(struct ev_loop *loop, int fd,
    witness_dead_pt on_dead, void *data);
void witness_destroy(witness_t *witness);

#endif /* WITNESS_H */
