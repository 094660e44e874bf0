
/*
 * Shares of the ring: how evenly consistent hashing spreads prompts over few
 * replicas.
 *
 *     shares [VNODES [FLEETS]]
 *
 * For 3 to 10 replicas each, FLEETS fleets whose replicas have different names.
 * For each fleet, the largest and the smallest share of the circle are
 * computed, as multiples of the mean; printed are their median and 99th
 * percentile over the fleets.
 */

#include <stdio.h>
#include <stdlib.h>

#include "core/ring/ring.h"


#define REPLICAS_MAX  10
#define ID_BYTES      32
#define VNODES        150
#define FLEETS        2000

typedef struct {
    double  least;          /* multiple of the mean share */
    double  most;
} spread_t;


static void *
must(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }

    return memory;
}


static spread_t
spread_of(size_t n, uint32_t vnodes, unsigned fleet)
{
    char                 ids[REPLICAS_MAX][ID_BYTES];
    void                *memory, *builder;
    double               share;
    size_t               i;
    spread_t             spread = { n, 0 };
    llmgw_ring_t        *ring;
    llmgw_ring_node_t    nodes[REPLICAS_MAX] = { { 0 } };
    llmgw_ring_bytes_t   bytes;

    for (i = 0; i < n; i++) {
        nodes[i].id = ids[i];
        nodes[i].id_len = (size_t) snprintf(ids[i], ID_BYTES, "f%u-r%zu",
                                            fleet, i);
        nodes[i].weight = 1;
    }

    bytes = llmgw_ring_bytes(NULL, nodes, n, vnodes);
    memory = must(malloc(bytes.ring));
    builder = must(malloc(bytes.builder));
    ring = llmgw_ring_init(memory, builder, NULL, NULL, nodes, n, vnodes);

    while (!llmgw_ring_build(ring, 1 << 20)) {
        /* the rest of it */
    }

    for (i = 0; i < n; i++) {
        share = llmgw_ring_share_ppm(ring, (uint32_t) i) / 1e6 * (double) n;
        spread.least = share < spread.least ? share : spread.least;
        spread.most = share > spread.most ? share : spread.most;
    }

    free(builder);
    free(memory);

    return spread;
}


static int
by_value(const void *a, const void *b)
{
    double  x, y;

    x = *(const double *) a;
    y = *(const double *) b;

    return (x > y) - (x < y);
}


static void
print_row(size_t n, uint32_t vnodes, unsigned fleets)
{
    double    *least, *most;
    unsigned   i;
    spread_t   spread;

    least = must(calloc(fleets, sizeof(double)));
    most = must(calloc(fleets, sizeof(double)));

    for (i = 0; i < fleets; i++) {
        spread = spread_of(n, vnodes, i);
        least[i] = spread.least;
        most[i] = spread.most;
    }

    qsort(least, fleets, sizeof(double), by_value);
    qsort(most, fleets, sizeof(double), by_value);

    printf("| %zu | %.2f | %.2f | %.2f | %.2f |\n", n, most[fleets / 2],
           most[fleets - 1 - fleets / 100], least[fleets / 2],
           least[fleets / 100]);

    free(least);
    free(most);
}


int
main(int argc, char **argv)
{
    long                 vnodes, fleets;
    size_t               i;
    static const size_t  sizes[] = { 3, 4, 5, REPLICAS_MAX };

    vnodes = argc > 1 ? strtol(argv[1], NULL, 10) : VNODES;
    fleets = argc > 2 ? strtol(argv[2], NULL, 10) : FLEETS;

    if (vnodes < 1 || vnodes > 10000 || fleets < 1 || fleets > 1000000) {
        fprintf(stderr, "usage: shares [VNODES [FLEETS]]; 1 to 10000, 1 to "
                "1000000\n");
        return 2;
    }

    printf("| replicas | largest share | of 1 in 100 fleets | smallest share "
           "| of 1 in 100 fleets |\n|---|---|---|---|---|\n");

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        print_row(sizes[i], (uint32_t) vnodes, (unsigned) fleets);
    }

    return 0;
}
