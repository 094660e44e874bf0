
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "common/os/background.h"


typedef struct {
    background_job_t  *first;
    background_job_t  *last;
} background_queue_t;

/*
 * What the loop and the thread share.  The last of the two to let go of it
 * frees it, so that an agent can end while the disk keeps the thread waiting.
 */
struct background_s {
    struct ev_loop  *loop;
    ev_async         async;         /* something is written */
    pthread_mutex_t  mutex;
    pthread_cond_t   changed;
    background_queue_t   asked;
    background_queue_t   written;
    int              is_busy;       /* the thread has a job in hand */
    int              is_ending;     /* nothing is asked any more */
    int              is_left;       /* by the loop: what is done is not
                                       written */
    int              holders;
};


static void
background_push(background_queue_t *queue, background_job_t *job)
{
    job->next = NULL;

    if (queue->first == NULL) {
        queue->first = job;

    } else {
        queue->last->next = job;
    }

    queue->last = job;
}


static background_job_t *
background_pop(background_queue_t *queue)
{
    background_job_t  *job;

    job = queue->first;

    if (job != NULL) {
        queue->first = job->next;
    }

    return job;
}


/* With the mutex held; unlocks it. */
static void
background_release(background_t *writer)
{
    int  is_last;

    is_last = --writer->holders == 0;
    pthread_mutex_unlock(&writer->mutex);

    if (is_last) {
        pthread_cond_destroy(&writer->changed);
        pthread_mutex_destroy(&writer->mutex);
        free(writer);
    }
}


/* With the mutex held.  Waits for the next job; NULL: no more will come. */
static background_job_t *
background_next(background_t *writer)
{
    background_job_t  *job;

    for ( ;; ) {
        job = writer->is_left ? NULL : background_pop(&writer->asked);

        if (job != NULL || writer->is_ending) {
            return job;
        }

        pthread_cond_wait(&writer->changed, &writer->mutex);
    }
}


static void *
background_main(void *data)
{
    background_t      *writer = data;
    background_job_t  *job;

    pthread_mutex_lock(&writer->mutex);

    while ((job = background_next(writer)) != NULL) {
        writer->is_busy = 1;
        pthread_mutex_unlock(&writer->mutex);

        job->run(job);

        pthread_mutex_lock(&writer->mutex);
        writer->is_busy = 0;
        background_push(&writer->written, job);
        pthread_cond_broadcast(&writer->changed);

        if (!writer->is_left) {
            ev_async_send(writer->loop, &writer->async);
        }
    }

    background_release(writer);

    return NULL;
}


static void
background_deliver(background_t *writer)
{
    background_job_t  *job;

    for ( ;; ) {
        pthread_mutex_lock(&writer->mutex);
        job = background_pop(&writer->written);
        pthread_mutex_unlock(&writer->mutex);

        if (job == NULL) {
            return;
        }

        job->done(job);
    }
}


static void
background_arrived(struct ev_loop *loop, ev_async *async, int events)
{
    background_deliver(async->data);
}


/* Signals are the loop's, whichever thread they would find. */
static int
background_start(background_t *writer)
{
    int             rc;
    sigset_t        all, before;
    pthread_t       thread;
    pthread_attr_t  attr;

    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&thread, &attr, background_main, writer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);

    return rc == 0 ? 0 : -1;
}


background_t *
background_create(struct ev_loop *loop)
{
    background_t            *writer;
    pthread_condattr_t   attr;

    writer = calloc(1, sizeof(background_t));
    if (writer == NULL) {
        return NULL;
    }

    writer->loop = loop;
    writer->holders = 2;
    pthread_mutex_init(&writer->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&writer->changed, &attr);
    pthread_condattr_destroy(&attr);

    if (background_start(writer) != 0) {
        pthread_cond_destroy(&writer->changed);
        pthread_mutex_destroy(&writer->mutex);
        free(writer);
        return NULL;
    }

    ev_async_init(&writer->async, background_arrived);
    writer->async.data = writer;
    ev_async_start(loop, &writer->async);

    return writer;
}


void
background_put(background_t *writer, background_job_t *job)
{
    pthread_mutex_lock(&writer->mutex);
    background_push(&writer->asked, job);
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);
}


/* With the mutex held. */
static void
background_wait(background_t *writer, double limit_s)
{
    struct timespec  until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t) limit_s;
    until.tv_nsec += (limit_s - (time_t) limit_s) * 1e9;

    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }

    while (writer->asked.first != NULL || writer->is_busy) {
        if (pthread_cond_timedwait(&writer->changed, &writer->mutex, &until)
            != 0)
        {
            return;
        }
    }
}


void
background_destroy(background_t *writer, double limit_s)
{
    ev_async_stop(writer->loop, &writer->async);

    pthread_mutex_lock(&writer->mutex);
    background_wait(writer, limit_s);
    writer->is_left = 1;
    writer->is_ending = 1;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);

    background_deliver(writer);

    pthread_mutex_lock(&writer->mutex);
    background_release(writer);
}
