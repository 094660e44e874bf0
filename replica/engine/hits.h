
/*
 * How much of its prompts an engine finds in its cache: the share of the last
 * minute, out of two counters that only rise.
 *
 * The counters since the engine's start say little about today, and those
 * between two looks too little at all.  So the counters of some earlier looks
 * are kept, and the share is of what was counted since the oldest look that is
 * not older than a minute.  While no prompt is looked up, the share stays as it
 * was.  Pure: time is an argument.
 */

#ifndef HITS_H
#define HITS_H

#include <stddef.h>
#include <stdint.h>


#define HITS_WINDOW_MS  60000
#define HITS_LOOKS      12      /* in a window */

typedef struct {
    uint64_t  at_ms;
    uint64_t  found;
    uint64_t  looked_up;
} hits_look_t;

/* Zeroed: nothing is known. */
typedef struct {
    hits_look_t  looks[HITS_LOOKS + 1];     /* from the oldest */
    size_t       n;
    uint64_t     looked_up;                 /* at the last call */
    int32_t      permille;
} hits_t;


/*
 * Takes the engine's current counters: blocks (or tokens) of prompts that were
 * found in the cache, and all that were looked up.  Counters that are smaller
 * than before mean that the engine was restarted.  Returns the share in
 * permille; -1: nothing was looked up yet.
 */
int32_t hits_permille(hits_t *hits, uint64_t now_ms, uint64_t found,
    uint64_t looked_up);

#endif /* HITS_H */
