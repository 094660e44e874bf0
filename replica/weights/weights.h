
/*
 * The weights of an engine, held in memory that processes share.
 *
 * For each device (a file of weights, or one part of a model in several files)
 * a weights service has a memfd: one engine fills it, others get the same one,
 * so the host holds one copy however many engines there are.  The protocol is
 * in docs/weights.md; here is its client.
 *
 *   open       connects to each service, retrying until it is there
 *   granted    rw: copies the file into a memfd, sends it, has it sealed
 *              ro: gets the memfd that another engine has filled
 *   on_ready   each is there: weights_path() can be opened, and mapped
 *   sleep      mapped: all stays; unmapped: memory and connections are released
 *   wake       mapped: the descriptors are still those of the beginning
 *              unmapped: gets them again, within remap_timeout_ms, and accepts
 *              only the bytes that were there before
 *
 * If a service ends before on_ready, the engine ends.  After that the weights
 * do not depend on the service, since sealed memory cannot change: the engine
 * gives them to the next service (ADOPT), for further engines.
 *
 * Long work (copying, mapping, unmapping) is done by a thread.  The caller's
 * loop never waits.
 */

#ifndef WEIGHTS_H
#define WEIGHTS_H

#include <ev.h>
#include <stddef.h>
#include <stdint.h>

#include "common/log.h"


#define WEIGHTS_DEVICES_MAX  64     /* parts of a model */
#define WEIGHTS_ERROR_BYTES  256

typedef struct weights_s  weights_t;

/* Options of the command line; strings live as long as the process. */
typedef struct {
    const char  *sockets;           /* PATH[,PATH]; NULL: no service */
    const char  *engine;            /* its id, for the services */
    int          is_reader;         /* loads no file, others do */
    int          is_unmapped;       /* it holds no memory while it is asleep */
    int          is_locked;         /* in memory: no page is swapped out */
    uint64_t     timeout_ms;        /* of each wait before on_ready */
    uint64_t     remap_timeout_ms;  /* from weights_wake() to on_awake */
    const char  *role;              /* as text; sets is_reader */
    const char  *sleep;             /* as text; sets is_unmapped */
    const char  *format;            /* bytes with which a file must begin:
                                       "GGUF"; NULL: any; set by the engine */
} weights_options_t;

/* Called from the loop, or from within weights_open() (only on_failed),
   weights_sleep() and weights_wake(). */
typedef struct {
    void  (*on_ready)(void *data);      /* of weights_open() */
    void  (*on_asleep)(void *data);     /* of weights_sleep() */
    void  (*on_awake)(void *data);      /* of weights_wake() */

    /* The last callback: the reason has been logged. */
    void  (*on_failed)(void *data);
} weights_callbacks_t;


/*
 * Reads role and sleep, and checks that the options are consistent.
 * waking_timeout_ms: of an engine that stands by, else 0.  0, or -1 and a line
 * that begins with the option's name.
 */
int weights_options_check(weights_options_t *options,
    uint64_t waking_timeout_ms, char error[WEIGHTS_ERROR_BYTES]);

/* Number of items in a list with commas; at most WEIGHTS_DEVICES_MAX in options
   that were checked. */
size_t weights_count(const char *list);

/*
 * files: the file for each service, as many as there are services.  is_mapped:
 * also maps them in this process, for an engine that does not do so.  NULL: it
 * cannot, and one line in the log says why.
 */
weights_t *weights_open(struct ev_loop *loop, const log_t *log,
    const weights_options_t *options, const char *const *files,
    int is_mapped, const weights_callbacks_t *callbacks, void *data);

/* To be called once, after the first on_ready; on_asleep follows. */
void weights_sleep(weights_t *weights);

/* To be called once, after on_asleep; on_awake or on_failed follows. */
void weights_wake(weights_t *weights);

size_t weights_devices(const weights_t *weights);

/*
 * After on_ready, and again after on_awake: the path to open for the i-th file.
 */
const char *weights_path(const weights_t *weights, size_t i);

/* Closes it in any state, but not from within a callback.  A mapping that the
   engine has made of a path remains. */
void weights_close(weights_t *weights);

#endif /* WEIGHTS_H */
