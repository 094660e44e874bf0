
/*
 * The parts of weights_t: devices, what they hold, and the thread.
 */

#ifndef WEIGHTS_INNER_H
#define WEIGHTS_INNER_H

#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "common/os/redial.h"
#include "replica/weights/weights.h"


/* --- thread.c: a thread that does one job after the other */

typedef struct thread_job_s  thread_job_t;

struct thread_job_s {
    thread_job_t  *next;
    int          (*run)(thread_job_t *job);         /* in the thread */
    void         (*done)(thread_job_t *job, int rc);        /* in the loop */
    int            rc;
};

typedef struct {
    struct ev_loop   *loop;
    ev_async          async;        /* a job was run */
    pthread_t         id;
    pthread_mutex_t   lock;
    pthread_cond_t    more;
    thread_job_t     *todo;
    thread_job_t     *ended;        /* run, and not done() yet */
    atomic_int        is_stopping;  /* a job that takes long looks at it */
} thread_t;

/* 0, or -1: no thread. */
int thread_init(thread_t *thread, struct ev_loop *loop);

/* The job is the caller's, and must stay until done() or thread_done(). */
void thread_add(thread_t *thread, thread_job_t *job);

/* Waits for the job that runs.  No done() is called any more. */
void thread_done(thread_t *thread);


/* --- slot.c: the memory of one file */

#define SLOT_ID_BYTES    65         /* sha256 in hex and a NUL */
#define SLOT_NAME_BYTES  (NAME_MAX + 1)

typedef struct {
    int        fd;                  /* -1: none */
    void      *map;                 /* NULL: none */
    uint64_t   bytes;
    char       name[SLOT_NAME_BYTES];
    char       id[SLOT_ID_BYTES];
    dev_t      dev;                 /* as they were when it came */
    ino_t      ino;
    int        seals;
} slot_t;

/* The name of a file's slot. */
const char *slot_base(const char *file);

/*
 * Copies the file into a memfd of its own and names it; is_stopping ends it
 * early.  It has no writable mapping, so it can be sealed at once.  format: as
 * in weights_options_t.  These return 0, or -1 and a reason.
 */
int slot_fill(slot_t *slot, const char *file, const char *format,
    const log_t *log, const atomic_int *is_stopping,
    char error[WEIGHTS_ERROR_BYTES]);

/* Whether it is sealed and has the announced size.  Notes what it is. */
int slot_note(slot_t *slot, char error[WEIGHTS_ERROR_BYTES]);

/* Whether it is unchanged since it was noted. */
int slot_check(const slot_t *slot, char error[WEIGHTS_ERROR_BYTES]);

/* Maps it with all its pages. */
int slot_map(slot_t *slot, int is_locked, const atomic_int *is_stopping,
    char error[WEIGHTS_ERROR_BYTES]);

/* Name, size and id stay. */
void slot_release(slot_t *slot);


/* --- device.c: one service, and what it has */

/* While it hashes, the service reports that each second. */
#define DEVICE_SILENCE_MS  60000

typedef enum {
    DEVICE_CONNECTING = 0,
    DEVICE_ASKED,               /* hello: waits for its turn */
    DEVICE_FILLING,             /* rw: the thread copies */
    DEVICE_COMMITTING,          /* the service seals and hashes */
    DEVICE_GETTING,             /* ro */
    DEVICE_MAPPING,             /* the thread maps */
    DEVICE_HELD,
    DEVICE_LOST,                /* held, and the service is away */
    DEVICE_ADOPTING,            /* held, and the service looks at it */
    DEVICE_RELEASING,           /* the thread lets go */
    DEVICE_ASLEEP
} device_state_t;

typedef struct {
    weights_t       *weights;
    char            *socket;
    char            *file;
    char             path[32];      /* of the slot's descriptor */
    device_state_t   state;
    redial_t         service;
    ev_timer         deadline;      /* of what it waits for */
    double           begun_at;
    slot_t           slot;
    thread_job_t     job;
    char             error[WEIGHTS_ERROR_BYTES];    /* of the job */
    unsigned         has_written:1; /* the slot: it was rw */
    unsigned         is_refused:1;  /* and the log has it */
} device_t;

struct weights_s {
    struct ev_loop       *loop;
    const log_t          *log;
    weights_options_t     options;
    weights_callbacks_t   callbacks;
    void                 *data;
    thread_t              thread;
    device_t             *devices;
    size_t                ndevices;
    unsigned              is_mapped:1;
    unsigned              is_waking:1;  /* or awake: not in its beginning */
    unsigned              is_reported:1;    /* ready, to the owner */
    unsigned              is_failed:1;
};

/* 0, or -1: out of memory.  Then device_done() is still to be called. */
int device_init(device_t *device, weights_t *weights, const char *socket,
    size_t len, const char *file);
void device_done(device_t *device);

/* Ends connection and timer; weights stay mapped. */
void device_stop(device_t *device);

/* Gets the weights, and weights_moved() when it holds them. */
void device_begin(device_t *device);

/* Lets go of them, and weights_moved() when that is done. */
void device_sleep(device_t *device);

/* For fetch.c: the end of the engine, with a line in the log. */
void device_fail(device_t *device, const char *why);

/* The deadline, from now. */
void device_await(device_t *device, uint64_t ms);

/* To be called when all is well: the next problem is logged again. */
void device_calm(device_t *device);

/* Takes the message over; fd is -1, or goes along. */
void device_send(device_t *device, json_t *message, int fd);

/* A job of the thread. */
void device_run(device_t *device, device_state_t state,
    int (*run)(thread_job_t *job), void (*done)(thread_job_t *job, int rc));
device_t *device_of(thread_job_t *job);

/* Of a message; "": it is not there, or no text. */
const char *device_text(const json_t *message, const char *name);


/* --- fetch.c: from hello to HELD */

void fetch_hello(device_t *device);
void fetch_on_granted(device_t *device, const json_t *message);
void fetch_on_committed(device_t *device, const json_t *message);
void fetch_on_slot(device_t *device, const json_t *message);


/* --- weights.c, for devices */

/* A device has come to HELD or ASLEEP: the owner hears of the last one. */
void weights_moved(weights_t *weights);

/* Of a device, whose line is in the log: once. */
void weights_failed(weights_t *weights);

#endif /* WEIGHTS_INNER_H */
