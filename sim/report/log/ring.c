
/*
 * The ring of a logged choice: a function of ids, weights and vnodes, which
 * the log has.
 */

#include <stdlib.h>
#include <string.h>

#include "sim/report/log/replay.h"


void
report_ring_free(report_ring_t *ring)
{
    free(ring->whole);
    free(ring->nodes);
    free(ring->ids);
    memset(ring, 0, sizeof(*ring));
}


static int
ring_is_of(const report_ring_t *ring, const report_log_entry_t *e)
{
    uint32_t  i;

    if (ring->whole == NULL || ring->n != e->n
        || ring->vnodes != e->pool->ring.vnodes)
    {
        return 0;
    }

    for (i = 0; i < e->n; i++) {
        if (ring->nodes[i].weight != e->candidates[i].weight
            || strcmp(ring->nodes[i].id, e->candidates[i].id) != 0)
        {
            return 0;
        }
    }

    return 1;
}


static int
ring_nodes(report_ring_t *ring, const report_log_entry_t *e)
{
    char      *id;
    uint32_t   i;

    ring->n = e->n;
    ring->vnodes = e->pool->ring.vnodes;
    ring->nodes = calloc(e->n, sizeof(*ring->nodes));
    ring->ids = calloc(e->n, REPORT_LOG_NAME_BYTES);

    if (ring->nodes == NULL || ring->ids == NULL) {
        return -1;
    }

    for (i = 0; i < e->n; i++) {
        id = ring->ids + (size_t) i * REPORT_LOG_NAME_BYTES;
        memcpy(id, e->candidates[i].id, REPORT_LOG_NAME_BYTES);
        ring->nodes[i].id = id;
        ring->nodes[i].id_len = strlen(id);
        ring->nodes[i].weight = e->candidates[i].weight;
    }

    return 0;
}


report_replay_rc_t
report_ring_build(report_ring_t *ring, const report_log_entry_t *e)
{
    void                *builder;
    llmgw_ring_bytes_t   bytes;

    if (ring_is_of(ring, e)) {
        return REPORT_REPLAYED;
    }

    report_ring_free(ring);

    if (ring_nodes(ring, e) != 0) {
        return REPORT_REPLAY_NO_MEMORY;
    }

    bytes = llmgw_ring_bytes(NULL, ring->nodes, ring->n, ring->vnodes);

    if (bytes.ring == 0) {
        return REPORT_REPLAY_LACKS;
    }

    ring->whole = malloc(bytes.ring);
    builder = malloc(bytes.builder);

    if (ring->whole == NULL || builder == NULL) {
        free(builder);
        report_ring_free(ring);
        return REPORT_REPLAY_NO_MEMORY;
    }

    llmgw_ring_init(ring->whole, builder, NULL, NULL, ring->nodes, ring->n,
                    ring->vnodes);

    while (!llmgw_ring_build(ring->whole, SIZE_MAX)) {
        /* void */
    }

    free(builder);

    return REPORT_REPLAYED;
}
