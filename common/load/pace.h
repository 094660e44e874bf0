
/*
 * Load on time: starts each thing when it is due, or, where there is no room
 * then, as soon as there is.
 *
 *                  its time has come            room
 *      source.next -----------------> due -----------------> source.start
 *                   timerfd            |  ^
 *                                      '--'  none: pace_look() tells of it
 *
 * What waits for room keeps its time, so that what it took counts from when it
 * was due.  A server then cannot hide a stall by delaying the requests that
 * would have shown it (coordinated omission).
 *
 * The timer is a timerfd: the loop's own have epoll's resolution, a
 * millisecond, which is coarser than what is measured.
 *
 * What runs for minutes before a user also has a line of progress, on a
 * terminal, and Ctrl-C.
 */

#ifndef PACE_H
#define PACE_H

#include <ev.h>
#include <stdint.h>


#define PACE_NEVER  UINT64_MAX

typedef struct {
    /*
     * When the next is due, by mono_ns(); 0: at once; PACE_NEVER: there is
     * none, as far as is known.
     */
    uint64_t  (*next)(void *data);

    /*
     * Starts it, and advances to the one after; due_ns is now for what is due
     * at once.  0, or -1: no room, it stays the next.
     */
    int       (*start)(void *data, uint64_t due_ns);

    /* All that is due now was started, or waits. */
    void      (*looked)(void *data);

    void      (*progress)(void *data);      /* twice a second */
    void      (*interrupt)(void *data);     /* SIGINT */
} pace_source_t;

typedef struct {
    struct ev_loop       *loop;             /* NULL: not initialized */
    const pace_source_t  *source;
    void                 *data;
    int                   fd;
    ev_io                 timer;
    ev_timer              progress;         /* active on a terminal alone */
    ev_signal             interrupt;
} pace_t;


/*
 * Of a loop that outlives it; source, too.  Nothing starts before pace_look().
 * 0, or -1 and errno: no descriptor.
 */
int pace_init(pace_t *pace, struct ev_loop *loop, const pace_source_t *source,
    void *data);

/* Idempotent; a pace that is all zero may be done, too. */
void pace_done(pace_t *pace);

/* There may be room, or another next.  Not from within the source's calls. */
void pace_look(pace_t *pace);

/* Whether there is a line of progress, which its user has to end. */
int pace_has_progress(const pace_t *pace);

#endif /* PACE_H */
