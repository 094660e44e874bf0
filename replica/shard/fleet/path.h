
/*
 * Which shards compute a request: a shortest path over the layers of a model.
 *
 * A shard begins at its own first layer, and may stop after any of its layers.
 * So the nodes are boundaries between layers, and a shard of layers lo..hi is
 * an edge from lo to each boundary of lo + 1 .. hi + 1 at which another shard
 * begins or the path ends: {0-7, 4-15} of 16 is 0-3 and 4-15.
 *
 * The best path is the least of these, in this order:
 *
 *   1. boundaries of `keep` that a shard runs across;
 *   2. hops;
 *   3. hops in another zone;
 *   4. shards that would have to load first;
 *   5. the worst queue of its shards;
 *   6. the ids, hop by hop, as strcmp orders them.
 *
 * 1 to 4 add up along a path, 5 is a maximum, so this takes two passes of
 * Bellman's recursion from the last boundary back to the first one.  Pass one
 * finds the least sums, and among the paths that have these sums the smallest
 * value of 5.  Pass two leaves out shards with a longer queue than that, and
 * finds the least ids.
 *
 * Pure: no clock, no log.
 */

#ifndef FLEET_PATH_H
#define FLEET_PATH_H

#include <stddef.h>
#include <stdint.h>

#include "replica/shard/limits.h"


/* One shard, with the facts by which a path is chosen. */
typedef struct {
    const char  *id;
    uint32_t     first;
    uint32_t     last;          /* of its slice */
    uint32_t     queue;
    unsigned     is_far:1;      /* not in the zone that is preferred */
    unsigned     is_unloaded:1;
    unsigned     is_never_first:1;      /* may not compute layer 0 */
} path_shard_t;

typedef struct {
    size_t    shard;            /* index */
    uint32_t  first;
    uint32_t  last;             /* where it stops, at most its slice's last */
} path_hop_t;

typedef struct {
    uint32_t           from;    /* the first hop's own first layer */
    uint32_t           to;      /* the last layer of the path */
    const uint32_t    *keep;    /* boundaries, in any order */
    size_t             nkeep;
} path_query_t;

typedef enum {
    PATH_FOUND = 0,
    PATH_GAP,                   /* *layer is one that no shard computes */
    PATH_TOO_LONG,              /* more than SHARD_HOPS_MAX hops */
    PATH_NO_MEMORY
} path_rc_t;


/*
 * hops holds SHARD_HOPS_MAX; *n is written if PATH_FOUND is returned, *layer if
 * PATH_GAP is.  If the best path has too many hops, a path without `keep` is
 * tried.  from <= to < SHARD_LAYERS_MAX.
 */
path_rc_t path_find(const path_shard_t *shards, size_t nshards,
    const path_query_t *query, path_hop_t *hops, size_t *n, uint32_t *layer);

#endif /* FLEET_PATH_H */
