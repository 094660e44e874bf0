
/*
 * How much memory the devices of this machine have free, and whether that is
 * what the engine took the last time.
 *
 * A device frees the memory of a killed process late.  An engine that is
 * started too early fails for lack of memory, again and again.  So the memory
 * that was in use before a start is subtracted from what is in use when the
 * engine is ready: the rest is what it takes, on each device; and the next
 * start waits until so much is free.  At the first start nothing is known, and
 * nothing is waited for.  Another process that comes to the device between the
 * two is counted, too, so the caller does not wait for ever.
 *
 * NVIDIA's management library is asked, if it is there, by dlopen().  It has no
 * time-out, so it is asked twice a start and not while streams run.
 */

#ifndef DEVICE_H
#define DEVICE_H

#include <stdint.h>


#define DEVICE_LIBRARY  "libnvidia-ml.so.1"
#define DEVICES_MAX     64

/* This much may be missing, since other processes come and go. */
#define DEVICE_SLACK  64            /* a 64th */

typedef struct {
    uint64_t  free_bytes;
    uint64_t  used_bytes;
} device_memory_t;

typedef struct {
    void             *library;          /* NULL: none */
    int               count;            /* of devices */
    uint64_t          before[DEVICES_MAX];      /* used, at the start */
    uint64_t          took[DEVICES_MAX];        /* bytes; 0: not known */
} devices_t;


/* Without the library, or with one that fails, there are no devices. */
void devices_open(devices_t *devices);
void devices_close(devices_t *devices);

/*
 * 0: what the last start took is free everywhere, and a start may follow; else
 * -1, the first device that lacks it, and what it has.
 */
int devices_are_free(devices_t *devices, int *lacking, uint64_t *free_bytes);

/* The engine is ready. */
void devices_measure(devices_t *devices);

#endif /* DEVICE_H */
