
/*
 * Work that may block, done in a thread of its own: writes that wait for the
 * disk, names that wait for a server.
 *
 * fsync() on a slow disk takes seconds.  In an event loop that would be seconds
 * without an answer.  So it is a job: its run() runs in the one thread, in the
 * order in which jobs were put, and its done() runs in the loop afterwards.
 *
 *     loop    background_put(job) ---.                   .---> done(job)
 *     thread                          '--> run(job) ----'
 *
 * A job is one malloc()ed block.  What it points to must not be looked at by
 * the loop until its done().  The queue is bounded by its users: each has one
 * job under way at most.
 */

#ifndef BACKGROUND_H
#define BACKGROUND_H

#include <ev.h>


typedef struct background_s      background_t;
typedef struct background_job_s  background_job_t;

struct background_job_s {
    void              (*run)(background_job_t *job);    /* in the thread */
    void              (*done)(background_job_t *job);   /* in the loop; frees
                                                           it */
    background_job_t   *next;                           /* ours */
};


/* NULL: no thread, or out of memory. */
background_t *background_create(struct ev_loop *loop);

/* The job is ours until its done(). */
void background_put(background_t *background, background_job_t *job);

/*
 * Waits for the jobs that were put, and for those that their done() puts,
 * limit_s at most.  Of other jobs done() never comes; the block of each is
 * freed, by the thread if that still runs it.  limit_s 0: waits for none, and
 * calls no done().
 */
void background_destroy(background_t *background, double limit_s);

#endif /* BACKGROUND_H */
