
/*
 * Work that may block, done in a thread of its own: writes that wait for the
 * disk, names that wait for a server, gigabytes that are copied and mapped.
 *
 * fsync() on a slow disk takes seconds, in which an event loop would not
 * answer.  So such work is a job: its run() runs in the one thread, in the
 * order in which jobs were put, and its done() runs in the loop afterwards.
 *
 *     loop    background_put(job) ---.                   .---> done(job)
 *     thread                          '--> run(job) ----'
 *
 * A job is one malloc()ed block, or, where background_destroy() waits for all
 * jobs, a member of the user's own structure.  What a job points to belongs to
 * the thread until the job's done() is called.  The queue has no limit of its
 * own: each user has at most as many jobs under way as it has files or sockets.
 */

#ifndef BACKGROUND_H
#define BACKGROUND_H

#include <ev.h>


typedef struct background_s      background_t;
typedef struct background_job_s  background_job_t;

struct background_job_s {
    void              (*run)(background_job_t *job);    /* in the thread */
    void              (*done)(background_job_t *job);   /* in the loop; frees a
                                                           malloc()ed job */
    background_job_t   *next;                           /* private */
};


/* NULL: no thread, or out of memory. */
background_t *background_create(struct ev_loop *loop);

/* Until its done(), the job belongs to the thread. */
void background_put(background_t *background, background_job_t *job);

#define BACKGROUND_FOREVER  1e9     /* s */

/*
 * Waits for the jobs that were put, and for those that their done() puts,
 * limit_s at most.  For other jobs done() is never called; their blocks are
 * freed, by the thread if it still runs one.  limit_s 0: waits for no job, and
 * calls no done().  Not to be called from within a done().
 */
void background_destroy(background_t *background, double limit_s);

#endif /* BACKGROUND_H */
