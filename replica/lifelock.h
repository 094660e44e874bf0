
/*
 * A robust mutex that this process holds as long as it lives, in a page that
 * its agent shares: so the agent notices this process's death before the kernel
 * has freed its memory.  docs/control.md describes the page.  If the kernel
 * lacks such mutexes, that is no error: the agent then notices the end of the
 * connection, a little later.
 */

#ifndef LIFELOCK_H
#define LIFELOCK_H

#include <pthread.h>


typedef struct {
    int               fd;       /* of the page, to be passed on; -1: none */
    pthread_mutex_t  *mutex;    /* at its start, held; NULL: none */
} lifelock_t;


/*
 * To be called by the thread that ends last: its death is what the agent sees.
 */
void lifelock_init(lifelock_t *lock);

/* Unlocks it: an orderly end must not look like a death. */
void lifelock_done(lifelock_t *lock);

#endif /* LIFELOCK_H */
