
#include <stdlib.h>
#include <string.h>

#include "replica/shard/fleet/path.h"


/* The best path from a boundary to the end that a pass has found. */
typedef struct {
    uint32_t   skipped;
    uint32_t   hops;
    uint32_t   far;
    uint32_t   unloaded;
    uint32_t   queue;           /* the worst */
    uint32_t   next;            /* boundary after the first hop */
    size_t     shard;           /* of the first hop */
    int        is_known;
} path_node_t;

typedef struct {
    const path_shard_t  *shards;
    const path_query_t  *query;
    uint32_t             end;           /* boundary after the last layer */
    uint32_t             queue_max;     /* shards with a longer queue are left
                                           out */
    int                  is_by_id;      /* the second pass */

    /*
     * Shards in the order of their first layers, and the index at which the
     * shards of each layer begin; layers are counted from the query's first
     * one.
     */
    size_t              *order;
    size_t              *begins;
    uint32_t            *kept;          /* boundaries to keep before this one */
    path_node_t         *nodes;
} path_walk_t;


/* Whether the shard can be a hop: its first layer is within the path, and it
   may be used there. */
static int
shard_is_eligible(const path_walk_t *w, const path_shard_t *s)
{
    return s->first >= w->query->from && s->first <= w->query->to
           && s->last >= s->first && !(s->first == 0 && s->is_never_first);
}


static void
walk_done(path_walk_t *w)
{
    free(w->order);
    free(w->begins);
    free(w->kept);
    free(w->nodes);
}


/* Counts, then sorts: begins[l] is the index of the first shard whose first
   layer is l. */
static void
walk_sort(path_walk_t *w, size_t nshards, uint32_t layers)
{
    size_t    i;
    uint32_t  l;

    for (i = 0; i < nshards; i++) {
        if (shard_is_eligible(w, &w->shards[i])) {
            w->begins[w->shards[i].first - w->query->from + 2]++;
        }
    }

    for (l = 2; l < layers + 2; l++) {
        w->begins[l] += w->begins[l - 1];
    }

    for (i = 0; i < nshards; i++) {
        if (shard_is_eligible(w, &w->shards[i])) {
            w->order[w->begins[w->shards[i].first - w->query->from + 1]++] = i;
        }
    }
}


static void
walk_count_kept(path_walk_t *w, uint32_t layers)
{
    size_t    i;
    uint32_t  l;

    for (i = 0; i < w->query->nkeep; i++) {
        if (w->query->keep[i] > w->query->from
            && w->query->keep[i] <= w->query->to)
        {
            w->kept[w->query->keep[i] - w->query->from + 1] = 1;
        }
    }

    for (l = 1; l < layers + 2; l++) {
        w->kept[l] += w->kept[l - 1];
    }
}


static int
walk_init(path_walk_t *w, const path_shard_t *shards, size_t nshards,
    const path_query_t *query)
{
    uint32_t  layers;

    memset(w, 0, sizeof(*w));
    w->shards = shards;
    w->query = query;
    w->end = query->to + 1;
    layers = w->end - query->from;

    w->order = calloc(nshards + 1, sizeof(w->order[0]));
    w->begins = calloc(layers + 3, sizeof(w->begins[0]));
    w->kept = calloc(layers + 3, sizeof(w->kept[0]));
    w->nodes = calloc(layers + 1, sizeof(w->nodes[0]));

    if (w->order == NULL || w->begins == NULL || w->kept == NULL
        || w->nodes == NULL)
    {
        walk_done(w);
        return -1;
    }

    walk_sort(w, nshards, layers);
    walk_count_kept(w, layers);

    return 0;
}


static path_node_t *
walk_node(const path_walk_t *w, uint32_t boundary)
{
    return &w->nodes[boundary - w->query->from];
}


/* Two paths of equally many hops: strcmp of the first ids that differ. */
static int
compare_ids(const path_walk_t *w, const path_node_t *a, const path_node_t *b)
{
    int  rc;

    while (a->hops > 0) {
        rc = strcmp(w->shards[a->shard].id, w->shards[b->shard].id);

        if (rc != 0) {
            return rc;
        }

        a = walk_node(w, a->next);
        b = walk_node(w, b->next);
    }

    return 0;
}


static int
is_better(const path_walk_t *w, const path_node_t *a, const path_node_t *b)
{
    if (!b->is_known) {
        return 1;
    }

    if (a->skipped != b->skipped) {
        return a->skipped < b->skipped;
    }

    if (a->hops != b->hops) {
        return a->hops < b->hops;
    }

    if (a->far != b->far) {
        return a->far < b->far;
    }

    if (a->unloaded != b->unloaded) {
        return a->unloaded < b->unloaded;
    }

    return w->is_by_id ? compare_ids(w, a, b) < 0 : a->queue < b->queue;
}


/* Tries a path: the shard's hop from its first layer up to that boundary, and
   the best path from there. */
static void
walk_try(path_walk_t *w, size_t shard, uint32_t next)
{
    path_node_t          node, *at;
    const path_shard_t  *s;

    s = &w->shards[shard];
    at = walk_node(w, s->first);
    node = *walk_node(w, next);

    if (!node.is_known) {
        return;
    }

    node.skipped += w->kept[next - w->query->from]
                    - w->kept[s->first + 1 - w->query->from];
    node.hops++;
    node.far += s->is_far;
    node.unloaded += s->is_unloaded;
    node.queue = node.queue > s->queue ? node.queue : s->queue;
    node.next = next;
    node.shard = shard;

    if (is_better(w, &node, at)) {
        *at = node;
    }
}


static void
walk_from(path_walk_t *w, uint32_t boundary)
{
    size_t               i, at;
    uint32_t             next, last;
    const path_shard_t  *s;

    at = boundary - w->query->from;

    for (i = w->begins[at]; i < w->begins[at + 1]; i++) {
        s = &w->shards[w->order[i]];
        last = s->last < w->query->to ? s->last : w->query->to;

        if (s->queue > w->queue_max) {
            continue;
        }

        for (next = s->first + 1; next <= last + 1; next++) {
            walk_try(w, w->order[i], next);
        }
    }
}


static const path_node_t *
walk_pass(path_walk_t *w, uint32_t queue_max, int is_by_id)
{
    uint32_t  boundary;

    w->queue_max = queue_max;
    w->is_by_id = is_by_id;
    memset(w->nodes, 0, (w->end - w->query->from + 1) * sizeof(w->nodes[0]));
    walk_node(w, w->end)->is_known = 1;

    for (boundary = w->end; boundary-- > w->query->from; ) {
        walk_from(w, boundary);
    }

    return walk_node(w, w->query->from);
}


/* The first layer that no shard computes, by the shards in order. */
static uint32_t
walk_reach(const path_walk_t *w)
{
    size_t               i;
    uint32_t             reach;
    const path_shard_t  *s;

    reach = w->query->from;

    for (i = 0; i < w->begins[w->end - w->query->from]; i++) {
        s = &w->shards[w->order[i]];

        if (s->first <= reach && s->last >= reach) {
            reach = s->last + 1;
        }
    }

    return reach;
}


static void
walk_write(const path_walk_t *w, path_hop_t *hops, size_t *n)
{
    const path_node_t  *node;

    *n = 0;

    for (node = walk_node(w, w->query->from); node->hops > 0;
         node = walk_node(w, node->next))
    {
        hops[*n].shard = node->shard;
        hops[*n].first = w->shards[node->shard].first;
        hops[*n].last = node->next - 1;
        (*n)++;
    }
}


static path_rc_t
walk_find(path_walk_t *w, path_hop_t *hops, size_t *n, uint32_t *layer)
{
    const path_node_t  *node;

    node = walk_pass(w, UINT32_MAX, 0);

    if (!node->is_known) {
        *layer = walk_reach(w);
        return PATH_GAP;
    }

    if (node->hops > SHARD_HOPS_MAX) {
        return PATH_TOO_LONG;
    }

    (void) walk_pass(w, node->queue, 1);
    walk_write(w, hops, n);

    return PATH_FOUND;
}


path_rc_t
path_find(const path_shard_t *shards, size_t nshards,
    const path_query_t *query, path_hop_t *hops, size_t *n, uint32_t *layer)
{
    path_rc_t     rc;
    path_walk_t   walk;
    path_query_t  free_query;

    if (walk_init(&walk, shards, nshards, query) != 0) {
        return PATH_NO_MEMORY;
    }

    rc = walk_find(&walk, hops, n, layer);
    walk_done(&walk);

    if (rc != PATH_TOO_LONG || query->nkeep == 0) {
        return rc;
    }

    free_query = *query;
    free_query.nkeep = 0;

    return path_find(shards, nshards, &free_query, hops, n, layer);
}
