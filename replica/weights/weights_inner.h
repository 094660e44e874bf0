
/*
 * The parts of weights_t: devices and their memory.
 */

#ifndef WEIGHTS_INNER_H
#define WEIGHTS_INNER_H

#include <jansson.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "common/os/background.h"
#include "common/os/redial.h"
#include "replica/weights/weights.h"


/* --- slot.c: the memory of one file */

#define SLOT_ID_BYTES    65         /* sha256 in hex and a NUL */
#define SLOT_NAME_BYTES  (NAME_MAX + 1)

typedef struct {
    int        fd;                  /* -1: none */
    void      *map;                 /* NULL: none */
    uint64_t   bytes;
    char       name[SLOT_NAME_BYTES];
    char       id[SLOT_ID_BYTES];
    dev_t      dev;                 /* of the memfd when it came */
    ino_t      ino;
    int        seals;
} slot_t;

/* The name of a file's slot. */
const char *slot_base(const char *file);

/*
 * Copies the file into a memfd of its own and names it; is_stopping ends it
 * early.  The memfd has no writable mapping, so it can be sealed at once.
 * format: as in weights_options_t.  These return 0, or -1 and a reason.
 */
int slot_fill(slot_t *slot, const char *file, const char *format,
    const log_t *log, const atomic_int *is_stopping,
    char error[WEIGHTS_ERROR_BYTES]);

/* Checks that the memfd is sealed and has the announced size, and stores its
   identity. */
int slot_note(slot_t *slot, char error[WEIGHTS_ERROR_BYTES]);

/* Checks that the memfd is the one that slot_note() has stored, unchanged. */
int slot_check(const slot_t *slot, char error[WEIGHTS_ERROR_BYTES]);

/* Maps the memfd with all its pages. */
int slot_map(slot_t *slot, int is_locked, const atomic_int *is_stopping,
    char error[WEIGHTS_ERROR_BYTES]);

/* Releases memfd and mapping; name, size and id stay. */
void slot_release(slot_t *slot);


/* --- device.c: one service, and its slot */

/* Longest silence of a service; while it hashes, it reports that each
   second. */
#define DEVICE_SILENCE_MS  60000

typedef enum {
    DEVICE_CONNECTING = 0,
    DEVICE_ASKED,               /* hello: waits for its turn */
    DEVICE_FILLING,             /* rw: the thread copies */
    DEVICE_COMMITTING,          /* the service seals and hashes */
    DEVICE_GETTING,             /* ro */
    DEVICE_MAPPING,             /* the thread maps */
    DEVICE_HELD,
    DEVICE_LOST,                /* the slot is held, and the service is away */
    DEVICE_ADOPTING,            /* the slot is held, and the service checks
                                   it */
    DEVICE_RELEASING,           /* the thread releases it */
    DEVICE_ASLEEP
} device_state_t;

typedef struct device_s  device_t;

/* Called in the thread, and in the loop afterwards with what run() returned. */
typedef int (*device_run_pt)(device_t *device);
typedef void (*device_ran_pt)(device_t *device, int rc);

struct device_s {
    background_job_t   job;         /* first: a job is its device */
    device_run_pt      run;
    device_ran_pt      ran;
    int                rc;          /* of run() */
    char               error[WEIGHTS_ERROR_BYTES];  /* of run() */
    weights_t         *weights;
    char              *socket;
    char              *file;
    char               path[32];    /* of the slot's descriptor */
    device_state_t     state;
    redial_t           service;
    ev_timer           deadline;    /* of the current wait */
    double             begun_at;
    slot_t             slot;
    unsigned           has_written:1;   /* this engine has filled the slot */
    unsigned           is_refused:1;    /* a refusal was logged */
};

struct weights_s {
    struct ev_loop       *loop;
    const log_t          *log;
    weights_options_t     options;
    weights_callbacks_t   callbacks;
    void                 *data;
    background_t         *thread;       /* copies, maps and releases */
    atomic_int            is_stopping;  /* long jobs check it */
    device_t             *devices;
    size_t                ndevices;
    unsigned              is_mapped:1;
    unsigned              is_waking:1;  /* it is waking or awake, not in its
                                           first start */
    unsigned              is_reported:1;    /* on_ready was called */
    unsigned              is_failed:1;
};

/* 0, or -1: out of memory.  Then device_done() is still to be called. */
int device_init(device_t *device, weights_t *weights, const char *socket,
    size_t len, const char *file);
void device_done(device_t *device);

/* Ends connection and timer; weights stay mapped. */
void device_stop(device_t *device);

/* Gets the weights, and calls weights_moved() when it holds them. */
void device_begin(device_t *device);

/* Releases them, and calls weights_moved() when that is done. */
void device_sleep(device_t *device);

/* For fetch.c: ends the engine, with a line in the log. */
void device_fail(device_t *device, const char *why);

/* Sets the deadline, from now. */
void device_await(device_t *device, uint64_t ms);

/* To be called when all is well: the next problem is logged again. */
void device_calm(device_t *device);

/* Sends a message, and frees it.  fd: sent with it; -1: none. */
void device_send(device_t *device, json_t *message, int fd);

/* Starts run() in the thread, and enters the state. */
void device_run(device_t *device, device_state_t state, device_run_pt run,
    device_ran_pt ran);

/* A text member of a message; "": it is absent, or no text. */
const char *device_text(const json_t *message, const char *name);


/* --- fetch.c: from hello to HELD */

void fetch_hello(device_t *device);
void fetch_on_granted(device_t *device, const json_t *message);
void fetch_on_committed(device_t *device, const json_t *message);
void fetch_on_slot(device_t *device, const json_t *message);


/* --- weights.c, for devices */

/* A device has come to HELD or ASLEEP: the owner is called when all have. */
void weights_moved(weights_t *weights);

/* A device has failed, and has logged it: calls on_failed, once. */
void weights_failed(weights_t *weights);

#endif /* WEIGHTS_INNER_H */
