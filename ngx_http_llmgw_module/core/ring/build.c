
/*
 * Building a ring in slices.
 *
 * Hashes are uniform, so that sorting them is mostly distributing them:
 *
 *   CLEAR     zero the counts of the bins
 *   TOUCH     write to the points' memory, in order
 *   HASH      hash each point, count it in its bin
 *   SUM       turn counts into first positions
 *   SCATTER   put each point at its bin's next free position
 *   SORT      order the few points of each bin, add up the nodes' shares, note
 *             in index[] where buckets end
 *
 * A bin is a part of a bucket, down to one or two points: the index that a
 * lookup wants small would leave SORT with half of the work still to do.
 *
 * Each is a loop over points or bins that can stop and go on anywhere.  A
 * comparison sort would need n log n and could not stop as simply.  The one
 * thing that a slice does not split is a group of 32 bins, some 40 points;
 * more only if somebody has forged hashes, or ids are given twice.
 *
 * TOUCH is there since SCATTER goes everywhere at once: in memory fresh from
 * the system its first slice would meet every page fault of the array, 3 ms at
 * 1.5 million points.
 *
 * Three roles of bins[], without a second array: HASH counts bin b in
 * bins[b + 2]; SUM makes bins[b + 1] the first position of bin b; SCATTER
 * moves it on to the end of b, which is where b + 1 begins.  So in the end
 * bins[b] is the first position of b.
 *
 * What only building needs (ids, hashes, bins) lives in the builder and is
 * freed with it in the last slice.
 */

#include <stdint.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/ring/ring.h"
#include "core/ring/ring_inner.h"


/*
 * How much of each step a unit of budget buys.  A unit is then 25 to 45 ns in
 * every step, at 150000 points in memory that is touched for the first time.
 */
#define CLEARED_PER_UNIT    32
#define TOUCHED_PER_UNIT    16
#define HASHED_PER_UNIT     5
#define SUMMED_PER_UNIT     128
#define SCATTERED_PER_UNIT  8
#define SORTED_PER_UNIT     10

/* Some 40 points: enough for foreseeable loops, and soon done. */
#define GROUP_BITS_MAX  5

/* Points ahead: long enough for memory to answer, few enough for its queue. */
#define FORESEEN  16


/*
 * The steps.  Each goes on from builder->next by up to n points or bins,
 * moves it, and returns the work done.
 */

static size_t
clear_some(llmgw_ring_t *ring, size_t n)
{
    llmgw_ring_builder_t  *builder;

    builder = ring->builder;

    memset(&builder->bins[builder->next + 2], 0, n * sizeof(uint32_t));
    builder->next += n;

    return n;
}


static size_t
touch_some(llmgw_ring_t *ring, size_t n)
{
    llmgw_ring_builder_t  *builder;

    builder = ring->builder;

    memset(&ring->points[builder->next], 0, n * sizeof(uint64_t));
    builder->next += n;

    return n;
}


static size_t
put_decimal(char *p, uint32_t value)
{
    size_t    len, i;
    uint32_t  rest;

    len = 1;

    for (rest = value; rest >= 10; rest /= 10) {
        len++;
    }

    for (i = len; i != 0; i--) {
        p[i - 1] = (char) ('0' + value % 10);
        value /= 10;
    }

    return len;
}


/*
 * Points fall anywhere in bins[] and points[], which at 10000 nodes are
 * larger than what the processor's tables of pages reach.  Asked for ahead,
 * the misses overlap: a build takes .8 of the time there, .65 in warm memory.
 */
static inline void
will_write(const void *p)
{
    __builtin_prefetch(p, 1);
}


/* The next points of a node, up to LLMGW_RING_BATCH. */
static void
hash_batch(llmgw_ring_t *ring, const llmgw_ring_member_t *node, size_t n)
{
    char                  *text;
    size_t                 i, prefix, lens[LLMGW_RING_BATCH];
    uint32_t              *bins;
    uint64_t              *hashes;
    llmgw_ring_builder_t  *builder;

    builder = ring->builder;
    bins = builder->bins + 2;
    hashes = &builder->hashes[builder->next];
    prefix = node->id_len + 1;

    for (i = 0; i < n; i++) {
        text = builder->texts + i * builder->text_size;
        lens[i] = prefix + put_decimal(text + prefix,
                                       builder->replica + (uint32_t) i);
    }

    for (i = 0; i < n; i++) {
        text = builder->texts + i * builder->text_size;
        hashes[i] = XXH3_64bits(text, lens[i]);
        will_write(&bins[hashes[i] >> builder->bin_shift]);
    }

    for (i = 0; i < n; i++) {
        bins[hashes[i] >> builder->bin_shift]++;
    }
}


static void
write_id(llmgw_ring_builder_t *builder, const llmgw_ring_member_t *node)
{
    char    *text;
    size_t   i;

    for (i = 0; i < LLMGW_RING_BATCH; i++) {
        text = builder->texts + i * builder->text_size;
        memcpy(text, node->id, node->id_len);
        text[node->id_len] = '#';
    }
}


/* Of `limit` points, how many of the current node are to be done. */
static size_t
portion_of_node(const llmgw_ring_t *ring, size_t limit)
{
    size_t  left;

    left = ring->counts[ring->builder->node] - ring->builder->replica;

    return left < limit ? left : limit;
}


static void
advance_points(llmgw_ring_t *ring, size_t n)
{
    llmgw_ring_builder_t  *builder;

    builder = ring->builder;

    builder->next += n;
    builder->replica += (uint32_t) n;

    if (builder->replica == ring->counts[builder->node]) {
        builder->node++;
        builder->replica = 0;
    }
}


static size_t
hash_some(llmgw_ring_t *ring, size_t n)
{
    size_t                      k, left;
    llmgw_ring_builder_t       *builder;
    const llmgw_ring_member_t  *node;

    builder = ring->builder;

    for (left = n; left != 0; left -= k) {
        node = &builder->nodes[builder->node];

        if (builder->replica == 0) {
            write_id(builder, node);
        }

        k = left < LLMGW_RING_BATCH ? left : LLMGW_RING_BATCH;
        k = portion_of_node(ring, k);

        hash_batch(ring, node, k);
        advance_points(ring, k);
    }

    return n;
}


static size_t
sum_some(llmgw_ring_t *ring, size_t n)
{
    size_t     i;
    uint32_t   sum, *bins;

    bins = &ring->builder->bins[ring->builder->next + 1];
    sum = bins[0];

    for (i = 1; i <= n; i++) {
        sum += bins[i];
        bins[i] = sum;
    }

    ring->builder->next += n;

    return n;
}


/* Point i is put in its place now: the bin of a later one, and then, of one
 * that is nearer, the place itself. */
static inline void
foresee(const llmgw_ring_t *ring, size_t i)
{
    unsigned   shift;
    uint32_t  *bins;
    uint64_t  *hashes;

    if (ring->npoints - i <= 2 * FORESEEN) {
        return;
    }

    bins = ring->builder->bins + 1;
    shift = ring->builder->bin_shift;
    hashes = &ring->builder->hashes[i];

    will_write(&bins[hashes[2 * FORESEEN] >> shift]);
    will_write(&ring->points[bins[hashes[FORESEEN] >> shift]]);
}


static size_t
scatter_some(llmgw_ring_t *ring, size_t n)
{
    size_t                 i, k, left;
    uint32_t              *bins;
    uint64_t               hash;
    llmgw_ring_builder_t  *builder;

    builder = ring->builder;
    bins = builder->bins + 1;

    for (left = n; left != 0; left -= k) {
        k = portion_of_node(ring, left);

        for (i = builder->next; i < builder->next + k; i++) {
            foresee(ring, i);

            hash = builder->hashes[i];
            ring->points[bins[hash >> builder->bin_shift]++]
                = hash << ring->node_bits | builder->node;
        }

        advance_points(ring, k);
    }

    return n;
}


int
llmgw_ring_is_id_after(const llmgw_ring_t *ring, size_t a, size_t b)
{
    int                         rc;
    const llmgw_ring_member_t  *x, *y;

    x = &ring->builder->nodes[a];
    y = &ring->builder->nodes[b];

    rc = memcmp(x->id, y->id, x->id_len < y->id_len ? x->id_len : y->id_len);

    return rc != 0 ? rc > 0 : x->id_len > y->id_len;
}


/* Whether two points of one group stand in the wrong order. */
static int
is_after(const llmgw_ring_t *ring, uint64_t a, uint64_t b)
{
    uint64_t  mask;

    if (((a ^ b) >> ring->node_bits) != 0) {
        return a > b;
    }

    mask = ((uint64_t) 1 << ring->node_bits) - 1;

    return llmgw_ring_is_id_after(ring, a & mask, b & mask);
}


/*
 * Swaps each point that is above its next neighbour, without a branch: half
 * of the guesses would be wrong.
 */
static void
sweep_group(uint64_t *points, size_t n)
{
    size_t    i;
    uint64_t  point, highest;

    if (n == 0) {
        return;
    }

    highest = points[0];

    for (i = 1; i < n; i++) {
        point = points[i];

        points[i - 1] = highest < point ? highest : point;
        highest = highest < point ? point : highest;
    }

    points[n - 1] = highest;
}


/*
 * SCATTER left few points out of order and none of them far from its place.
 * Two sweeps put nearly all right, then insertion is a mere check: 2.9 ns a
 * point, shares included, instead of 4.1 without sweeps, and 8.6 with
 * insertion in each bin.
 */
static void
sort_group(const llmgw_ring_t *ring, uint64_t *points, size_t n)
{
    size_t    i, k;
    uint64_t  point;

    sweep_group(points, n);
    sweep_group(points, n);

    for (i = 1; i < n; i++) {
        point = points[i];

        for (k = i; k != 0 && is_after(ring, points[k - 1], point); k--) {
            points[k] = points[k - 1];
        }

        points[k] = point;
    }
}


/*
 * Bins are sorted in groups, since branches at the ends of ever so short
 * loops cannot be foreseen.  Within a group points must compare like
 * hashes: what their words lost at the top is the same for all of it.
 */
static unsigned
group_bits(const llmgw_ring_t *ring)
{
    unsigned  bits;

    bits = 64 - ring->builder->bin_shift - ring->node_bits;

    return bits < GROUP_BITS_MAX ? bits : GROUP_BITS_MAX;
}


/* A point owns the arc from the point before it to itself. */
static void
add_shares(llmgw_ring_t *ring, size_t bin, size_t first, size_t n)
{
    size_t                 i;
    uint64_t               point, hash, high, low, node;
    llmgw_ring_builder_t  *builder;

    builder = ring->builder;
    node = ((uint64_t) 1 << ring->node_bits) - 1;
    low = UINT64_MAX >> ring->node_bits;
    high = ((uint64_t) bin << builder->bin_shift) & ~low;

    for (i = first; i < first + n; i++) {
        point = ring->points[i];
        hash = high | point >> ring->node_bits;

        ring->shares[point & node] += (hash - builder->last_hash) >> 20;
        builder->last_hash = hash;
    }
}


/* The first point owns the arc over zero, too. */
static void
close_circle(llmgw_ring_t *ring)
{
    uint64_t  arc;

    if (ring->npoints == 0) {
        return;
    }

    arc = 0 - ring->builder->last_hash;

    ring->shares[llmgw_ring_node(ring, 0)]
        += arc == 0 ? (uint64_t) 1 << 44 : arc >> 20;
}


/* A group is some whole buckets. */
static void
note_ends(llmgw_ring_t *ring, size_t bin, size_t group)
{
    size_t                       end, bucket;
    unsigned                     bits;
    const llmgw_ring_builder_t  *builder;

    builder = ring->builder;
    bits = ring->bucket_shift - builder->bin_shift;
    end = (bin + group) >> bits;

    for (bucket = bin >> bits; bucket < end; bucket++) {
        ring->index[bucket + 1] = builder->bins[(bucket + 1) << bits];
    }
}


/* Counts points, too: it need not trust in hashes to stop in time. */
static size_t
sort_some(llmgw_ring_t *ring, size_t n)
{
    size_t                 work, first, count, end, group;
    llmgw_ring_builder_t  *builder;

    builder = ring->builder;
    end = builder->next + n;
    group = (size_t) 1 << group_bits(ring);

    for (work = 0; work < n && builder->next < end; work += count + 1) {
        first = builder->bins[builder->next];
        count = builder->bins[builder->next + group] - first;

        sort_group(ring, &ring->points[first], count);
        add_shares(ring, builder->next, first, count);
        note_ends(ring, builder->next, group);

        builder->next += group;
    }

    return work;
}


const llmgw_ring_step_t  llmgw_ring_build_steps[] = {
    { clear_some,   CLEARED_PER_UNIT,   LLMGW_RING_BY_BIN },
    { touch_some,   TOUCHED_PER_UNIT,   LLMGW_RING_BY_POINT },
    { hash_some,    HASHED_PER_UNIT,    LLMGW_RING_BY_POINT },
    { sum_some,     SUMMED_PER_UNIT,    LLMGW_RING_BY_BIN },
    { scatter_some, SCATTERED_PER_UNIT, LLMGW_RING_BY_POINT },
    { sort_some,    SORTED_PER_UNIT,    LLMGW_RING_BY_BIN },
    { NULL,         0,                  LLMGW_RING_BY_BIN }
};


static size_t
step_total(const llmgw_ring_t *ring)
{
    switch (ring->builder->step->by) {

    case LLMGW_RING_BY_BUCKET:
        return ring->nbuckets;

    case LLMGW_RING_BY_BIN:
        return ring->builder->nbins;

    case LLMGW_RING_BY_POINT:
        return ring->npoints;

    default:
        return ring->builder->kept_points.ring->npoints
               + ring->builder->joined->npoints;
    }
}


static void
next_step(llmgw_ring_builder_t *builder)
{
    builder->step++;
    builder->next = 0;
    builder->node = 0;
    builder->replica = 0;
}


/* Goes on with the step in hand; returns the budget that is left. */
static size_t
build_some(llmgw_ring_t *ring, size_t budget)
{
    size_t                    n, left, total, used;
    const llmgw_ring_step_t  *step;

    step = ring->builder->step;
    total = step_total(ring);

    left = total - ring->builder->next;
    n = budget <= left / step->per_unit ? budget * step->per_unit : left;

    used = step->some(ring, n) / step->per_unit + 1;

    if (ring->builder->next == total) {
        next_step(ring->builder);
    }

    return used < budget ? budget - used : 0;
}


int
llmgw_ring_build(llmgw_ring_t *ring, size_t budget)
{
    llmgw_ring_t  *joined;

    joined = ring->builder ? ring->builder->joined : NULL;

    if (joined != NULL && joined->builder != NULL) {
        (void) llmgw_ring_build(joined, budget);
        return 0;
    }

    while (ring->builder != NULL && budget != 0) {
        budget = build_some(ring, budget);

        if (ring->builder->step->some == NULL) {
            close_circle(ring);
            llmgw_ring_builder_destroy(ring);
        }
    }

    return ring->builder == NULL;
}
