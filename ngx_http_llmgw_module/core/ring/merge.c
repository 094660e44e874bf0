
/*
 * Building a ring out of one that differs little.
 *
 * A replica joins or leaves: of 1000 replicas' 150000 points 150 are other
 * ones, all others stand sorted in the ring that serves.  So those that
 * joined get a small ring of their own, from ring_build.c, and then the two
 * are merged, as sorted lists are:
 *
 *   CLEAR     zero the ends of the buckets
 *   MERGE     read both rings in order; leave out points of nodes that are
 *             gone, number the others anew; write points, ends of buckets
 *             and shares
 *   FILL      an empty bucket ends where the one before it does
 *
 * The result is the same ring, word for word, as the full build's.  A node
 * whose number of points has changed counts as gone, and as joined: a change
 * of weight needs no rule of its own.
 *
 * MERGE has no branch that depends on a point.  A gone one is written like any
 * other, and the next one over it: its number is one past the last node's,
 * where shares has a word to spare.
 */

#include <stdint.h>
#include <string.h>

#include "core/ring/ring.h"
#include "core/ring/ring_inner.h"


/* A unit of budget is some 25 to 45 ns, as in ring_build.c. */
#define CLEARED_PER_UNIT  32
#define MERGED_PER_UNIT   8
#define FILLED_PER_UNIT   32

/* With more than a quarter of the points new, a full build is as fast. */
#define JOINED_MAX(npoints)  ((npoints) / 4)

/* So it is where so few points are left of those that a merge would read. */
#define READ_MAX(npoints)  ((npoints) * 6)


/* The bits of a hash that its segment says, in their place. */
static uint64_t
segment_hash(const llmgw_ring_t *ring, size_t segment)
{
    return ring->node_bits == 0 ? 0
                                : (uint64_t) segment << (64 - ring->node_bits);
}


/* Goes to the next segment with a point.  0: there is none. */
static int
source_settle(llmgw_ring_source_t *source)
{
    unsigned             shift;
    const llmgw_ring_t  *ring;

    ring = source->ring;

    if (source->next == ring->npoints) {
        return 0;
    }

    shift = 64 - ring->bucket_shift - ring->node_bits;

    while (source->next == source->end) {
        source->segment++;
        source->end = ring->index[source->segment << shift];
    }

    return 1;
}


/* The point at which a settled source stands. */
static uint64_t
source_hash(const llmgw_ring_source_t *source)
{
    const llmgw_ring_t  *ring;

    ring = source->ring;

    return segment_hash(ring, source->segment - 1)
           | ring->points[source->next] >> ring->node_bits;
}


static uint32_t
source_number(const llmgw_ring_source_t *source)
{
    return source->numbers[llmgw_ring_node(source->ring, source->next)];
}


/*
 * Writes up to n points of a settled source, none beyond its segment, and of
 * those whose hash is `until` or more only `forced`.  Returns how many it
 * read.
 */
static size_t
copy_run(llmgw_ring_t *ring, llmgw_ring_source_t *source, size_t n,
    uint64_t until, size_t forced)
{
    size_t                 i, at, kept;
    uint64_t               high, mask, hash, last, number;
    unsigned               bits, shift;
    llmgw_ring_builder_t  *builder;
    const uint64_t        *points;

    builder = ring->builder;
    at = builder->merged;
    last = builder->last_hash;

    bits = source->ring->node_bits;
    mask = ((uint64_t) 1 << bits) - 1;
    high = segment_hash(source->ring, source->segment - 1);
    points = &source->ring->points[source->next];
    shift = ring->bucket_shift;

    if (n > source->end - source->next) {
        n = source->end - source->next;
    }

    for (i = 0; i < n; i++) {
        hash = high | points[i] >> bits;

        if (hash >= until && i >= forced) {
            break;
        }

        number = source->numbers[points[i] & mask];
        kept = number < ring->nnodes;

        ring->points[at] = hash << ring->node_bits | number;
        ring->shares[number] += (hash - last) >> 20;

        at += kept;
        last = kept ? hash : last;

        ring->index[(hash >> shift) + 1] = (uint32_t) at;
    }

    source->next += i;
    builder->merged = at;
    builder->last_hash = last;

    return i;
}


/* Of two points of one hash; a gone one is anywhere. */
static int
kept_is_first(const llmgw_ring_t *ring, const llmgw_ring_source_t *kept,
    const llmgw_ring_source_t *joined)
{
    uint32_t  number;

    if (source_hash(kept) != source_hash(joined)) {
        return 0;
    }

    number = source_number(kept);

    return number == ring->nnodes
           || llmgw_ring_is_id_after(ring, source_number(joined), number);
}


/* Zeroes the ends of the next n buckets. */
static size_t
clear_some(llmgw_ring_t *ring, size_t n)
{
    llmgw_ring_builder_t  *builder;

    builder = ring->builder;

    memset(&ring->index[builder->next + 1], 0, n * sizeof(uint32_t));
    builder->next += n;

    return n;
}


/* Up to n points of the kept before the next that joined, or else that one. */
static size_t
merge_run(llmgw_ring_t *ring, size_t n)
{
    size_t                done;
    llmgw_ring_source_t  *kept, *joined;

    kept = &ring->builder->kept_points;
    joined = &ring->builder->joined_points;

    if (!source_settle(joined)) {
        return source_settle(kept) ? copy_run(ring, kept, n, 0, n) : 0;
    }

    if (source_settle(kept)) {
        done = copy_run(ring, kept, n, source_hash(joined), 0);

        if (done != 0) {
            return done;
        }

        if (kept_is_first(ring, kept, joined)) {
            return copy_run(ring, kept, 1, 0, 1);
        }
    }

    return copy_run(ring, joined, 1, 0, 1);
}


static size_t
merge_some(llmgw_ring_t *ring, size_t n)
{
    size_t  left;

    for (left = n; left != 0; left -= merge_run(ring, left)) { /* void */ }

    ring->builder->next += n;

    return n;
}


static size_t
fill_some(llmgw_ring_t *ring, size_t n)
{
    size_t     i;
    uint32_t   end, *index;

    index = &ring->index[ring->builder->next];
    end = index[0];

    for (i = 1; i <= n; i++) {
        end = index[i] > end ? index[i] : end;
        index[i] = end;
    }

    ring->builder->next += n;

    return n;
}


const llmgw_ring_step_t  llmgw_ring_merge_steps[] = {
    { clear_some, CLEARED_PER_UNIT, LLMGW_RING_BY_BUCKET },
    { merge_some, MERGED_PER_UNIT,  LLMGW_RING_BY_MERGED },
    { fill_some,  FILLED_PER_UNIT,  LLMGW_RING_BY_BUCKET },
    { NULL,       0,                LLMGW_RING_BY_BUCKET }
};


/*
 * numbers[] gets each old node's number or nnodes, and behind them the numbers
 * of those that joined.  Returns how many these are, and their points.
 */
static size_t
number_nodes(const llmgw_ring_t *ring, const llmgw_ring_t *old,
    const uint32_t *before, uint32_t *numbers, size_t *npoints)
{
    size_t     n;
    uint32_t   i, was, *joined;

    n = 0;
    *npoints = 0;
    joined = &numbers[old->nnodes];

    for (i = 0; i < old->nnodes; i++) {
        numbers[i] = ring->nnodes;
    }

    for (i = 0; i < ring->nnodes; i++) {
        was = before[i];

        if (was < old->nnodes && numbers[was] == ring->nnodes
            && old->counts[was] == ring->counts[i])
        {
            numbers[was] = i;
            continue;
        }

        joined[n++] = i;
        *npoints += ring->counts[i];
    }

    return n;
}


static llmgw_ring_t *
joined_create(const llmgw_ring_t *ring, const llmgw_ring_node_t *nodes,
    const uint32_t *numbers, size_t n, uint32_t vnodes)
{
    size_t                      i;
    llmgw_ring_t               *joined;
    llmgw_ring_node_t          *some;
    const llmgw_ring_memory_t  *memory;

    memory = &ring->memory;

    some = memory->alloc(memory->data, (n + 1) * sizeof(llmgw_ring_node_t));
    if (some == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i++) {
        some[i] = nodes[numbers[i]];
    }

    joined = llmgw_ring_create(some, n, vnodes, memory);

    memory->free(memory->data, some);

    return joined;
}


int
llmgw_ring_merge_init(llmgw_ring_t *ring, const llmgw_ring_t *old,
    const uint32_t *before, const llmgw_ring_node_t *nodes, uint32_t vnodes)
{
    size_t                 n, npoints;
    uint32_t              *numbers;
    llmgw_ring_builder_t  *builder;

    builder = ring->builder;

    if (old->npoints > READ_MAX(ring->npoints)) {
        return 1;
    }

    numbers = ring->memory.alloc(ring->memory.data,
                                 ((size_t) old->nnodes + ring->nnodes + 1)
                                 * sizeof(uint32_t));
    if (numbers == NULL) {
        return -1;
    }

    n = number_nodes(ring, old, before, numbers, &npoints);

    if (npoints > JOINED_MAX(ring->npoints)) {
        ring->memory.free(ring->memory.data, numbers);
        return 1;
    }

    builder->step = llmgw_ring_merge_steps;
    builder->numbers = numbers;

    builder->joined = joined_create(ring, nodes, &numbers[old->nnodes], n,
                                    vnodes);
    if (builder->joined == NULL) {
        return -1;
    }

    builder->kept_points.ring = old;
    builder->kept_points.numbers = numbers;
    builder->joined_points.ring = builder->joined;
    builder->joined_points.numbers = &numbers[old->nnodes];

    return 0;
}
