
/*
 * Writes that wait for the disk, done in a thread of their own.
 *
 * fsync() on a slow disk takes seconds.  In the event loop that would be
 * seconds without a pong, and the member would be suspected.  So a write is a
 * job: its write() runs in the one thread of the writer, in the order in which
 * jobs were put, and its done() runs in the loop afterwards.
 *
 *     loop    writer_put(job) ---.                     .---> done(job)
 *     thread                      '--> write(job) ----'
 *
 * A job is one malloc()ed block or owns what it needs: the thread must not
 * look at anything that the loop may change meanwhile.  The queue is bounded
 * by its users: each has one job under way at most.
 */

#ifndef WRITER_H
#define WRITER_H

#include <ev.h>


typedef struct writer_s      writer_t;
typedef struct writer_job_s  writer_job_t;

struct writer_job_s {
    void          (*write)(writer_job_t *job);      /* in the thread */
    void          (*done)(writer_job_t *job);       /* in the loop, frees it */
    writer_job_t   *next;                           /* the writer's */
};


/* NULL: no thread, or out of memory. */
writer_t *writer_create(struct ev_loop *loop);

/* The job is the writer's until its done(). */
void writer_put(writer_t *writer, writer_job_t *job);

/*
 * Waits for the jobs that were put, limit_s at most, and calls their done().
 * A job that the disk has not taken by then is the thread's for ever: its
 * done() never comes, and its memory is not freed.
 */
void writer_destroy(writer_t *writer, double limit_s);

#endif /* WRITER_H */
