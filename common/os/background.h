
/*
 * Writes that wait for the disk, done in a thread of their own.
 *
 * fsync() on a slow disk takes seconds.  In the event loop that would be
 * seconds without a pong, and the member would be suspected.  So a write is a
 * job: its write() runs in the one thread of the writer, in the order in which
 * jobs were put, and its done() runs in the loop afterwards.
 *
 *     loop    background_put(job) ---.                     .---> done(job)
 *     thread                      '--> write(job) ----'
 *
 * A job is one malloc()ed block or owns what it needs: the thread must not
 * look at anything that the loop may change meanwhile.  The queue is bounded
 * by its users: each has one job under way at most.
 */

#ifndef BACKGROUND_H
#define BACKGROUND_H

#include <ev.h>


typedef struct background_s      background_t;
typedef struct background_job_s  background_job_t;

struct background_job_s {
    void          (*run)(background_job_t *job);      /* in the thread */
    void          (*done)(background_job_t *job);       /* in the loop, frees it */
    background_job_t   *next;                           /* the writer's */
};


/* NULL: no thread, or out of memory. */
background_t *background_create(struct ev_loop *loop);

/* The job is the writer's until its done(). */
void background_put(background_t *writer, background_job_t *job);

/*
 * Waits for the jobs that were put, limit_s at most, and calls their done().
 * A job that the disk has not taken by then is the thread's for ever: its
 * done() never comes, and its memory is not freed.
 */
void background_destroy(background_t *writer, double limit_s);

#endif /* BACKGROUND_H */
