
/*
 * The thread.  Jobs are run in the order in which they came; an ev_async
 * brings those that were run back into the loop.
 */

#include "replica/weights/weights_inner.h"


static void
work_append(work_job_t **list, work_job_t *job)
{
    while (*list != NULL) {
        list = &(*list)->next;
    }

    job->next = NULL;
    *list = job;
}


static void
work_on_finished(struct ev_loop *loop, ev_async *w, int revents)
{
    work_t      *work;
    work_job_t  *job;

    work = w->data;

    for ( ;; ) {
        pthread_mutex_lock(&work->lock);
        job = work->told;

        if (job != NULL) {
            work->told = job->next;
        }

        pthread_mutex_unlock(&work->lock);

        if (job == NULL) {
            return;
        }

        job->done(job, job->rc);
    }
}


/* Under the lock: NULL at the end. */
static work_job_t *
work_next(work_t *work)
{
    work_job_t  *job;

    while (work->todo == NULL && !atomic_load(&work->is_stopping)) {
        pthread_cond_wait(&work->more, &work->lock);
    }

    job = work->todo;

    if (job == NULL || atomic_load(&work->is_stopping)) {
        return NULL;
    }

    work->todo = job->next;

    return job;
}


static void *
work_main(void *data)
{
    work_t      *work;
    work_job_t  *job;

    work = data;
    pthread_mutex_lock(&work->lock);

    while ((job = work_next(work)) != NULL) {
        pthread_mutex_unlock(&work->lock);
        job->rc = job->run(job);
        pthread_mutex_lock(&work->lock);

        work_append(&work->told, job);
        ev_async_send(work->loop, &work->finished);
    }

    pthread_mutex_unlock(&work->lock);

    return NULL;
}


int
work_init(work_t *work, struct ev_loop *loop)
{
    work->loop = loop;
    pthread_mutex_init(&work->lock, NULL);
    pthread_cond_init(&work->more, NULL);
    ev_async_init(&work->finished, work_on_finished);
    work->finished.data = work;
    ev_async_start(loop, &work->finished);

    if (pthread_create(&work->thread, NULL, work_main, work) == 0) {
        return 0;
    }

    ev_async_stop(loop, &work->finished);
    pthread_mutex_destroy(&work->lock);
    pthread_cond_destroy(&work->more);

    return -1;
}


void
work_add(work_t *work, work_job_t *job)
{
    pthread_mutex_lock(&work->lock);
    work_append(&work->todo, job);
    pthread_cond_signal(&work->more);
    pthread_mutex_unlock(&work->lock);
}


void
work_done(work_t *work)
{
    pthread_mutex_lock(&work->lock);
    atomic_store(&work->is_stopping, 1);
    pthread_cond_signal(&work->more);
    pthread_mutex_unlock(&work->lock);

    pthread_join(work->thread, NULL);

    ev_async_stop(work->loop, &work->finished);
    pthread_mutex_destroy(&work->lock);
    pthread_cond_destroy(&work->more);
}
