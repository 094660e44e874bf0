
/*
 * Work that is too long for the event loop: threads run one function, and
 * when the last of them has returned, the loop is notified. They run at low
 * priority, since an engine may be serving on the host.
 */

#ifndef WEIGHTS_THREADS_H
#define WEIGHTS_THREADS_H

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>


#define THREADS_MAX  256

typedef struct {
    struct ev_loop  *loop;
    ev_async         finished;
    pthread_t        ids[THREADS_MAX];
    int              n;
    atomic_int       nrunning;
    void           (*run)(void *data);
    void           (*done)(void *data);
    void            *data;
} threads_t;


/*
 * n threads (THREADS_MAX at most) call run(data), all of them at the same
 * time; then the loop calls done(data).  If fewer threads can be created, fewer
 * run; if none, run() is called here, and blocks until it is done.
 */
void threads_start(threads_t *threads, struct ev_loop *loop, int n,
    void (*run)(void *data), void (*done)(void *data), void *data);

/* Waits for the threads.  done() is not called any more. */
void threads_join(threads_t *threads);

#endif /* WEIGHTS_THREADS_H */
