
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
 * What the loop and the thread share.  The last of the two to release it frees
 * it, so that an agent can end while a disk or a name server keeps the thread
 * waiting.
 */
struct background_s {
    struct ev_loop      *loop;
    ev_async             async;     /* a job has run */
    pthread_mutex_t      mutex;
    pthread_cond_t       changed;
    background_queue_t   asked;
    background_queue_t   finished;
    int                  is_busy;   /* the thread is running a job */
    int                  is_left;   /* the loop has left: done() is not called
                                       any more */
    int                  holders;
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


/* Releases bg.  Called with the mutex held; unlocks it. */
static void
background_release(background_t *bg)
{
    int  is_last;

    is_last = --bg->holders == 0;
    pthread_mutex_unlock(&bg->mutex);

    if (is_last) {
        pthread_cond_destroy(&bg->changed);
        pthread_mutex_destroy(&bg->mutex);
        free(bg);
    }
}


/* Waits for the next job, with the mutex held.  NULL: no more will come. */
static background_job_t *
background_next(background_t *bg)
{
    background_job_t  *job;

    for ( ;; ) {
        job = background_pop(&bg->asked);

        if (job != NULL || bg->is_left) {
            return job;
        }

        pthread_cond_wait(&bg->changed, &bg->mutex);
    }
}


static void *
background_main(void *data)
{
    background_t      *bg = data;
    background_job_t  *job;

    pthread_mutex_lock(&bg->mutex);

    while ((job = background_next(bg)) != NULL) {
        bg->is_busy = 1;
        pthread_mutex_unlock(&bg->mutex);

        job->run(job);

        pthread_mutex_lock(&bg->mutex);
        bg->is_busy = 0;

        if (bg->is_left) {
            free(job);

        } else {
            background_push(&bg->finished, job);
            pthread_cond_broadcast(&bg->changed);
            ev_async_send(bg->loop, &bg->async);
        }
    }

    background_release(bg);

    return NULL;
}


/* Calls done() of finished jobs.  The mutex is held, but not during done(). */
static void
background_deliver(background_t *bg)
{
    background_job_t  *job;

    while ((job = background_pop(&bg->finished)) != NULL) {
        pthread_mutex_unlock(&bg->mutex);
        job->done(job);
        pthread_mutex_lock(&bg->mutex);
    }
}


static void
background_arrived(struct ev_loop *loop, ev_async *async, int events)
{
    background_t  *bg = async->data;

    pthread_mutex_lock(&bg->mutex);
    background_deliver(bg);
    pthread_mutex_unlock(&bg->mutex);
}


/* The thread blocks all signals, since the loop handles them. */
static int
background_start(background_t *bg)
{
    int             rc;
    sigset_t        all, before;
    pthread_t       thread;
    pthread_attr_t  attr;

    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&thread, &attr, background_main, bg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);

    return rc == 0 ? 0 : -1;
}


background_t *
background_create(struct ev_loop *loop)
{
    background_t        *bg;
    pthread_condattr_t   attr;

    bg = calloc(1, sizeof(background_t));
    if (bg == NULL) {
        return NULL;
    }

    bg->loop = loop;
    bg->holders = 2;
    pthread_mutex_init(&bg->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&bg->changed, &attr);
    pthread_condattr_destroy(&attr);

    if (background_start(bg) != 0) {
        pthread_cond_destroy(&bg->changed);
        pthread_mutex_destroy(&bg->mutex);
        free(bg);
        return NULL;
    }

    ev_async_init(&bg->async, background_arrived);
    bg->async.data = bg;
    ev_async_start(loop, &bg->async);

    return bg;
}


void
background_put(background_t *bg, background_job_t *job)
{
    pthread_mutex_lock(&bg->mutex);
    background_push(&bg->asked, job);
    pthread_cond_broadcast(&bg->changed);
    pthread_mutex_unlock(&bg->mutex);
}


/* Waits for jobs, with the mutex held, also for those that a done() puts. */
static void
background_wait(background_t *bg, double limit_s)
{
    struct timespec  until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t) limit_s;
    until.tv_nsec += (limit_s - (time_t) limit_s) * 1e9;

    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }

    do {
        background_deliver(bg);
    } while ((bg->asked.first != NULL || bg->is_busy)
             && pthread_cond_timedwait(&bg->changed, &bg->mutex, &until) == 0);
}


static void
background_discard(background_queue_t *queue)
{
    background_job_t  *job;

    while ((job = background_pop(queue)) != NULL) {
        free(job);
    }
}


void
background_destroy(background_t *bg, double limit_s)
{
    ev_async_stop(bg->loop, &bg->async);

    pthread_mutex_lock(&bg->mutex);

    if (limit_s > 0) {
        background_wait(bg, limit_s);
    }

    bg->is_left = 1;
    background_discard(&bg->asked);
    background_discard(&bg->finished);
    pthread_cond_broadcast(&bg->changed);
    background_release(bg);
}
