
/*
 * The thread.  Jobs are run in the order in which they came; an ev_async
 * brings those that were run back into the loop.
 */

#include "replica/weights/weights_inner.h"


static void
thread_append(thread_job_t **list, thread_job_t *job)
{
    while (*list != NULL) {
        list = &(*list)->next;
    }

    job->next = NULL;
    *list = job;
}


static void
thread_on_finished(struct ev_loop *loop, ev_async *w, int revents)
{
    thread_t      *thread;
    thread_job_t  *job;

    thread = w->data;

    for ( ;; ) {
        pthread_mutex_lock(&thread->lock);
        job = thread->ended;

        if (job != NULL) {
            thread->ended = job->next;
        }

        pthread_mutex_unlock(&thread->lock);

        if (job == NULL) {
            return;
        }

        job->done(job, job->rc);
    }
}


/* The next job; called under the lock.  NULL: the thread is to end. */
static thread_job_t *
thread_next(thread_t *thread)
{
    thread_job_t  *job;

    while (thread->todo == NULL && !atomic_load(&thread->is_stopping)) {
        pthread_cond_wait(&thread->more, &thread->lock);
    }

    job = thread->todo;

    if (job == NULL || atomic_load(&thread->is_stopping)) {
        return NULL;
    }

    thread->todo = job->next;

    return job;
}


static void *
thread_main(void *data)
{
    thread_t      *thread;
    thread_job_t  *job;

    thread = data;
    pthread_mutex_lock(&thread->lock);

    while ((job = thread_next(thread)) != NULL) {
        pthread_mutex_unlock(&thread->lock);
        job->rc = job->run(job);
        pthread_mutex_lock(&thread->lock);

        thread_append(&thread->ended, job);
        ev_async_send(thread->loop, &thread->async);
    }

    pthread_mutex_unlock(&thread->lock);

    return NULL;
}


int
thread_init(thread_t *thread, struct ev_loop *loop)
{
    thread->loop = loop;
    pthread_mutex_init(&thread->lock, NULL);
    pthread_cond_init(&thread->more, NULL);
    ev_async_init(&thread->async, thread_on_finished);
    thread->async.data = thread;
    ev_async_start(loop, &thread->async);

    if (pthread_create(&thread->id, NULL, thread_main, thread) == 0) {
        return 0;
    }

    ev_async_stop(loop, &thread->async);
    pthread_mutex_destroy(&thread->lock);
    pthread_cond_destroy(&thread->more);

    return -1;
}


void
thread_add(thread_t *thread, thread_job_t *job)
{
    pthread_mutex_lock(&thread->lock);
    thread_append(&thread->todo, job);
    pthread_cond_signal(&thread->more);
    pthread_mutex_unlock(&thread->lock);
}


void
thread_done(thread_t *thread)
{
    pthread_mutex_lock(&thread->lock);
    atomic_store(&thread->is_stopping, 1);
    pthread_cond_signal(&thread->more);
    pthread_mutex_unlock(&thread->lock);

    pthread_join(thread->id, NULL);

    ev_async_stop(thread->loop, &thread->async);
    pthread_mutex_destroy(&thread->lock);
    pthread_cond_destroy(&thread->more);
}
