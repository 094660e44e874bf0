
/*
 * How much of its prompts an engine finds in its cache: the share of the last
 * minute, out of two counters that only rise.
 *
 * The counters since the engine's start say little about today, and those
 * between two looks too little at all.  So the counters of some earlier looks
 * are kept, and the share is that of what came since the oldest one that is
 * not older than a minute.  While nothing is looked up the share stays as it
 * was: an engine without prompts has no other.  Pure: time is an argument.
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
 * The counters as they stand: blocks (or tokens) of prompts that were found in
 * the cache, and all that were looked up.  Smaller ones than before are those
 * of an engine that was started anew.  The share in permille; -1: nothing was
 * looked up yet.
 */
int32_t hits_permille(hits_t *hits, uint64_t now_ms, uint64_t found,
    uint64_t looked_up);

#endif /* HITS_H */
