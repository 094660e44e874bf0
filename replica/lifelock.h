
/*
 * A robust mutex that this process holds as long as it lives, in a page that
 * its agent shares: how the agent hears of our death before the kernel has
 * freed our memory.  docs/control.md says what the page looks like.
 *
 * Not to be had on some kernel is no error: the agent sees the end of the
 * connection then, a little later.
 */

#ifndef LIFELOCK_H
#define LIFELOCK_H

#include <pthread.h>


typedef struct {
    int               fd;       /* of the page, to be passed on; -1: none */
    pthread_mutex_t  *mutex;    /* at its start, held; NULL: none */
} lifelock_t;


/* By the thread that ends last: it is that one's death that is told. */
void lifelock_init(lifelock_t *lock);

/* Lets go: an orderly end is not told as a death. */
void lifelock_done(lifelock_t *lock);

#endif /* LIFELOCK_H */
