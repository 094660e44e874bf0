
/*
 * Micro-benchmark of ring and pick: ns per lookup and per pick, and ms per
 * build, from nothing and from a ring that one node leaves and one joins.
 *
 *     cd ngx_http_llmgw_module
 *     gcc -O2 -std=gnu11 -I. -o /tmp/bench_ring ../bench/micro/ring.c \
 *         core/ring/{ring,build}.c core/policy/pick.c core/breaker.c
 *     taskset -c 1 /tmp/bench_ring
 *
 * Every key depends on the answer before it, so that the processor cannot
 * overlap the cache misses of lookups that are milliseconds apart in practice.
 * Each figure is the least of several rounds: the code's cost, without the
 * machine's noise.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/policy/pick.h"
#include "core/ring/ring.h"


#define LOOKUPS  1000000
#define PICKS    200000
#define PICKS_A_MS  20
#define VNODES   150
#define ROUNDS   7
#define SLICE    8192   /* units, as in a worker */
#define ID_SIZE  24

typedef struct {
    size_t                n;
    char                (*ids)[ID_SIZE];
    llmgw_ring_node_t    *nodes;
    llmgw_peer_counts_t  *counts;
    llmgw_pick_peer_t    *peers;
    llmgw_breaker_t      *breakers;
    llmgw_ring_t         *ring;
    uint32_t             *before;       /* by node: its index in the ring
                                           before, or LLMGW_RING_NEW for one
                                           node */
} fleet_t;


static double
now_ns(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (double) ts.tv_sec * 1e9 + (double) ts.tv_nsec;
}


static uint64_t
mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;

    return x * 0x94d049bb133111ebull;
}


static void
must(const void *p)
{
    if (p == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
}


static void
fleet_init(fleet_t *fleet, size_t n)
{
    size_t  i;

    fleet->n = n;
    fleet->ids = calloc(n, ID_SIZE);
    fleet->nodes = calloc(n, sizeof(llmgw_ring_node_t));
    fleet->counts = calloc(n, sizeof(llmgw_peer_counts_t));
    fleet->peers = calloc(n, sizeof(llmgw_pick_peer_t));
    fleet->breakers = calloc(n, sizeof(llmgw_breaker_t));
    fleet->before = calloc(n, sizeof(uint32_t));
    fleet->ring = NULL;

    must(fleet->ids);
    must(fleet->nodes);
    must(fleet->counts);
    must(fleet->peers);
    must(fleet->breakers);
    must(fleet->before);

    for (i = 0; i < n; i++) {
        fleet->before[i] = i == n / 2 ? LLMGW_RING_NEW : (uint32_t) i;
        fleet->nodes[i].id = fleet->ids[i];
        fleet->nodes[i].id_len = (size_t) snprintf(fleet->ids[i], ID_SIZE,
                                                   "replica-%zu", i);
        fleet->nodes[i].weight = 1;

        fleet->peers[i].counts = &fleet->counts[i];
        fleet->peers[i].weight = 1;
        fleet->peers[i].state = LLMGW_PEER_ALIVE;
    }
}


static void
fleet_done(fleet_t *fleet)
{
    free(fleet->ring);
    free(fleet->before);
    free(fleet->breakers);
    free(fleet->peers);
    free(fleet->counts);
    free(fleet->nodes);
    free(fleet->ids);
}


/*
 * Builds in slices as a worker does, from nothing or from `old`; *longest is
 * the time of the longest slice.
 */
static llmgw_ring_t *
build_ring(fleet_t *fleet, const llmgw_ring_t *old, double *longest)
{
    int                  whole;
    void                *memory, *builder;
    double               before, after, slice;
    llmgw_ring_t        *ring;
    llmgw_ring_bytes_t   bytes;

    *longest = 0;
    before = now_ns();

    bytes = llmgw_ring_bytes(old, fleet->nodes, fleet->n, VNODES);
    memory = malloc(bytes.ring);
    builder = malloc(bytes.builder);
    must(memory);
    must(builder);

    ring = llmgw_ring_init(memory, builder, old, fleet->before, fleet->nodes,
                           fleet->n, VNODES);

    do {
        whole = llmgw_ring_build(ring, SLICE);

        after = now_ns();
        slice = after - before;
        before = after;
        *longest = slice > *longest ? slice : *longest;
    } while (!whole);

    free(builder);

    return ring;
}


/* The least time of a build, from nodes to a whole ring. */
static double
measure_build(fleet_t *fleet, double *slice)
{
    int     round;
    double  start, took, least, longest;

    least = 0;
    *slice = 0;

    for (round = 0; round < ROUNDS; round++) {
        start = now_ns();
        free(build_ring(fleet, NULL, &longest));
        took = now_ns() - start;

        least = round == 0 || took < least ? took : least;
        *slice = round == 0 || longest < *slice ? longest : *slice;
    }

    return least;
}


static double
measure_find(fleet_t *fleet)
{
    int       round;
    size_t    i, position;
    double    start, took, least;
    uint64_t  hash;

    least = 0;
    hash = 1;

    for (round = 0; round < ROUNDS; round++) {
        start = now_ns();

        for (i = 0; i < LOOKUPS; i++) {
            position = llmgw_ring_find(fleet->ring, hash);
            hash = mix(hash + llmgw_ring_node(fleet->ring, position) + i);
        }

        took = now_ns() - start;

        if (round == 0 || took < least) {
            least = took;
        }
    }

    return hash == 0 ? 0 : least / LOOKUPS;
}


/* The cost of measure_find()'s loop without a lookup. */
static double
measure_loop(void)
{
    int       round;
    size_t    i;
    double    start, took, least;
    uint64_t  hash;

    least = 0;
    hash = 1;

    for (round = 0; round < ROUNDS; round++) {
        start = now_ns();

        for (i = 0; i < LOOKUPS; i++) {
            hash = mix(hash + (hash & 7) + i);
        }

        took = now_ns() - start;

        if (round == 0 || took < least) {
            least = took;
        }
    }

    return hash == 0 ? 0 : least / LOOKUPS;
}


static double
measure_pick(fleet_t *fleet, size_t picks)
{
    int                round;
    size_t             i;
    double             start, took, least;
    llmgw_picked_t     picked;
    llmgw_pick_key_t   key = { 0 };
    llmgw_pick_pool_t  pool = { 0 };
    llmgw_pick_sums_t  sums = { 0 };

    static const llmgw_breaker_conf_t  breaker_conf = {
        .cooldown_ms = 5000, .max_cooldown_ms = 60000, .probes = 1,
        .enabled = 1
    };

    pool.breaker_conf = &breaker_conf;
    pool.ring = fleet->ring;
    pool.peers = fleet->peers;
    pool.npeers = fleet->n;
    pool.load_factor_permille = 1250;
    pool.min_load = 8;
    pool.sums = &sums;

    key.hash = 1;
    key.now_ms = 1;
    key.random = 1;

    picked.peer = 0;
    least = 0;

    for (round = 0; round < ROUNDS; round++) {
        start = now_ns();

        for (i = 0; i < picks; i++) {
            (void) llmgw_pick(&pool, &key, &picked);
            key.hash = mix(key.hash + picked.peer + i);
            key.now_ms = 1 + i / PICKS_A_MS;
        }

        took = now_ns() - start;

        if (round == 0 || took < least) {
            least = took;
        }
    }

    return least / (double) picks;
}


static void
set_load(fleet_t *fleet, uint32_t load, uint32_t capacity)
{
    size_t  i;

    for (i = 0; i < fleet->n; i++) {
        fleet->counts[i].in_flight = load;
        fleet->peers[i].max_capacity = capacity;
    }
}


static void
set_breakers(fleet_t *fleet, llmgw_breaker_state_t state)
{
    size_t  i;

    for (i = 0; i < fleet->n; i++) {
        fleet->peers[i].breaker = &fleet->breakers[i];
        fleet->breakers[i].state = (uint8_t) state;
        fleet->breakers[i].cooldown_ms = 5000;
    }
}


/*
 * The least time to replace one node by another, as in a worker: each ring is
 * made from the ring before it, in memory from malloc().
 */
static double
measure_change(fleet_t *fleet, double *slice)
{
    int                 round;
    size_t              changed;
    double              start, took, least, longest;
    llmgw_ring_t       *old;
    llmgw_ring_node_t  *node;

    least = 0;
    changed = fleet->n / 2;
    node = &fleet->nodes[changed];
    fleet->before[changed] = LLMGW_RING_NEW;

    for (round = 0; round < 2 * ROUNDS; round++) {
        node->id = round % 2 ? fleet->ids[changed] : "replica-other";
        node->id_len = strlen(node->id);

        old = fleet->ring;
        start = now_ns();
        fleet->ring = build_ring(fleet, old, &longest);
        free(old);
        took = now_ns() - start;

        least = round == 0 || took < least ? took : least;
        *slice = round == 0 || longest < *slice ? longest : *slice;
    }

    return least;
}


static void
measure(size_t n)
{
    double   build, slice, change, change_slice;
    double   find, idle, closed, bounded, full, open;
    size_t   picks;
    fleet_t  fleet;

    fleet_init(&fleet, n);

    build = measure_build(&fleet, &slice);

    fleet.ring = build_ring(&fleet, NULL, &change_slice);
    change = measure_change(&fleet, &change_slice);

    find = measure_find(&fleet);
    idle = measure_pick(&fleet, PICKS);

    set_breakers(&fleet, LLMGW_BREAKER_CLOSED);
    closed = measure_pick(&fleet, PICKS);

    picks = PICKS / n + 100;

    set_load(&fleet, 20, 0);
    bounded = measure_pick(&fleet, picks);

    set_load(&fleet, 20, 20);
    full = measure_pick(&fleet, picks);

    set_load(&fleet, 20, 0);
    set_breakers(&fleet, LLMGW_BREAKER_OPEN);
    open = measure_pick(&fleet, picks);

    printf("%8zu %8.3f %7.1f %8.3f %7.1f %7.1f %7.1f %7.1f %8.1f %8.1f "
           "%8.1f\n",
           n, build / 1e6, slice / 1e3, change / 1e6,
           change_slice / 1e3, find, idle, closed, bounded, full, open);

    fleet_done(&fleet);
}


int
main(void)
{
    size_t               i;
    static const size_t  sizes[] = { 3, 10, 100, 1000, 10000 };

    printf("build: ms; slice: us, the longest of budget %d;\nchange: ms, out "
           "of a ring of which one node is another\nfind and pick: ns, %.1f "
           "of it the loop; breaker: all have one, closed, from here on;\n"
           "bounded: the mean is needed; full: nobody has room; open: all "
           "circuits are\n\n"
           "%8s %8s %7s %8s %7s %7s %7s %7s %8s %8s %8s\n",
           SLICE, measure_loop(), "replicas", "build", "slice", "change",
           "slice", "find", "pick", "breaker", "bounded", "full", "open");

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        measure(sizes[i]);
    }

    return 0;
}
