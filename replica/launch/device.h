
/*
 * Whether the devices of this machine have as much memory free as the engine
 * took the last time.
 *
 * A device frees the memory of a killed process late.  An engine that is
 * started too early fails for lack of memory, again and again.  So the memory
 * that was in use before a start is subtracted from what is in use when the
 * engine is ready: the rest is what it takes, on each device; and the next
 * start waits until so much is free.  At the first start nothing is known, and
 * nothing is waited for.  Memory that another process takes on the device in
 * the meantime is counted as the engine's, so the caller limits its wait.
 *
 * NVIDIA's management library is asked, if it is there, by dlopen().  It has no
 * time-out, so it is asked twice a start and not while streams run.
 */

#ifndef DEVICE_H
#define DEVICE_H

#include <stdint.h>


#define DEVICE_LIBRARY  "libnvidia-ml.so.1"
#define DEVICES_MAX     64

/* Share of the memory that may be missing, since other processes come and
   go. */
#define DEVICE_SLACK  64            /* a 64th */

typedef struct {
    uint64_t  free_bytes;
    uint64_t  used_bytes;
} device_memory_t;

typedef struct {
    void             *library;          /* NULL: none */
    int               count;            /* of devices */
    uint64_t          before[DEVICES_MAX];      /* in use before the start */
    uint64_t          took[DEVICES_MAX];        /* bytes that the engine takes;
                                                   0: not known */
} devices_t;


/* Without the library, or with one that fails, there are no devices. */
void devices_open(devices_t *devices);
void devices_close(devices_t *devices);

/*
 * 0: each device has free what the last start took, so the engine may be
 * started; their memory in use is stored.  -1: *lacking is the first device
 * that has less, *free_bytes what it has.
 */
int devices_are_free(devices_t *devices, int *lacking, uint64_t *free_bytes);

/* To be called when the engine is ready: computes what it takes. */
void devices_measure(devices_t *devices);

#endif /* DEVICE_H */
