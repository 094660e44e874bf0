
#include <signal.h>
#include <unistd.h>

#include "weights/threads.h"


/*
 * Engines serve on the same processors, and have priority.  Two processes that
 * compute on two processors kept 0.55 of their speed beside threads of the same
 * priority, and all of it beside threads of this one.
 */
#define THREADS_NICE  10


static void *
threads_main(void *data)
{
    threads_t  *threads = data;

    (void) !nice(THREADS_NICE);         /* on Linux, of this thread alone */
    threads->run(threads->data);

    if (atomic_fetch_sub(&threads->nrunning, 1) == 1) {
        ev_async_send(threads->loop, &threads->finished);
    }

    return NULL;
}


void
threads_join(threads_t *threads)
{
    while (threads->n > 0) {
        pthread_join(threads->ids[--threads->n], NULL);
    }

    ev_async_stop(threads->loop, &threads->finished);
}


static void
threads_on_finished(struct ev_loop *loop, ev_async *async, int events)
{
    threads_t  *threads = async->data;

    threads_join(threads);
    threads->done(threads->data);
}


/* Creates the threads with all signals blocked, since the loop handles
   signals. */
static void
threads_create(threads_t *threads, int n)
{
    sigset_t  all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);

    while (threads->n < n
           && pthread_create(&threads->ids[threads->n], NULL, threads_main,
                             threads)
              == 0)
    {
        threads->n++;
        atomic_fetch_add(&threads->nrunning, 1);
    }

    pthread_sigmask(SIG_SETMASK, &before, NULL);
}


void
threads_start(threads_t *threads, struct ev_loop *loop, int n,
    void (*run)(void *data), void (*done)(void *data), void *data)
{
    threads->loop = loop;
    threads->n = 0;
    threads->run = run;
    threads->done = done;
    threads->data = data;

    ev_async_init(&threads->finished, threads_on_finished);
    threads->finished.data = threads;
    ev_async_start(loop, &threads->finished);

    /* This thread is counted until all have been started. */

    atomic_init(&threads->nrunning, 1);
    threads_create(threads, n);

    if (threads->n == 0) {
        run(data);
    }

    if (atomic_fetch_sub(&threads->nrunning, 1) == 1) {
        ev_async_send(loop, &threads->finished);
    }
}
