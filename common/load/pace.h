
/*
 * Generates load on time: starts each thing when it is due, or, if there is no
 * room then, as soon as there is.
 *
 *                  its time has come            room
 *      source.next -----------------> due -----------------> source.start
 *                   timerfd            |  ^
 *                                      '--'  none: pace_look() tells of it
 *
 * A thing that waits for room keeps its due time, and its duration counts from
 * then.  A server then cannot hide a stall by delaying the requests that would
 * have shown it (coordinated omission).
 *
 * The timer is a timerfd: the loop's own timers have epoll's resolution, a
 * millisecond, which is coarser than what is measured.
 *
 * On a terminal, a program that runs for minutes also has a line of progress;
 * and it can be interrupted by Ctrl-C.
 */

#ifndef PACE_H
#define PACE_H

#include <ev.h>
#include <stdint.h>


#define PACE_NEVER  UINT64_MAX

typedef struct {
    /*
     * When the next thing is due, by mono_ns(); 0: at once; PACE_NEVER: no
     * further thing is known.
     */
    uint64_t  (*next)(void *data);

    /*
     * Starts that thing, and advances to the one after; due_ns is the present
     * time for a thing that is due at once.  0; or -1: no room, so it stays the
     * next.
     */
    int       (*start)(void *data, uint64_t due_ns);

    /* Everything due now was started, or waits for room. */
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
    ev_timer              progress;         /* only active on a terminal */
    ev_signal             interrupt;
} pace_t;


/*
 * loop and source must outlive it.  Nothing starts before pace_look().  0; or
 * -1 and errno: no descriptor.
 */
int pace_init(pace_t *pace, struct ev_loop *loop, const pace_source_t *source,
    void *data);

/* Idempotent; a pace that is all zero may be done, too. */
void pace_done(pace_t *pace);

/*
 * To be called when there may be room, or another next thing.  Not within the
 * source's functions.
 */
void pace_look(pace_t *pace);

/* Whether a line of progress is shown, which the user of pace has to end. */
int pace_has_progress(const pace_t *pace);

#endif /* PACE_H */
