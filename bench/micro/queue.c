
/*
 * What a request costs under the zone's lock: a claim and its end, for a pool
 * with room, and for a queue that is never empty.
 */

#include <stdlib.h>
#include <string.h>

#include "bench/micro/micro.h"
#include "core/admission/admission.h"


#define PEERS    10
#define WAITING  1000
#define TRIES    200000

typedef struct {
    llmgw_admission_t       *shared;
    llmgw_admission_self_t   self;
    llmgw_admission_view_t   view;
    llmgw_pick_peer_t        peers[PEERS];
    llmgw_place_t            places[PEERS];
    llmgw_breaker_conf_t     breaker;
    char                     ids[PEERS][3];
    llmgw_claim_t           *claims;        /* by entry of the queue */
    llmgw_lease_t            lease;
    uint64_t                 number;
} pool_t;


static void
pool_add(pool_t *pool, uint32_t i)
{
    llmgw_slot_t  *slot;

    (void) snprintf(pool->ids[i], sizeof(pool->ids[i]), "r%u", i % 10);
    pool->places[i].slot = llmgw_slots_attach(pool->shared, pool->ids[i], 2,
                                              1000);

    slot = llmgw_slot(pool->shared, pool->places[i].slot);
    pool->places[i].generation = slot->generation;
    pool->peers[i].counts = &slot->counts;
    pool->peers[i].breaker = &slot->breaker;
    pool->peers[i].weight = 1;
    pool->peers[i].state = LLMGW_PEER_ALIVE;
}


static void
pool_make_ring(pool_t *pool)
{
    uint32_t             i;
    void                *builder;
    llmgw_ring_t        *ring;
    llmgw_ring_node_t    nodes[PEERS];
    llmgw_ring_bytes_t   bytes;

    for (i = 0; i < PEERS; i++) {
        nodes[i] = (llmgw_ring_node_t) { .id = pool->ids[i], .id_len = 2,
                                         .weight = 1 };
    }

    bytes = llmgw_ring_bytes(NULL, nodes, PEERS, 160);
    builder = micro_must(malloc(bytes.builder));
    ring = llmgw_ring_init(micro_must(malloc(bytes.ring)), builder, NULL,
                           NULL, nodes, PEERS, 160);

    while (!llmgw_ring_build(ring, 1000000)) { /* void */ }

    free(builder);
    pool->view.pick.ring = ring;
}


static void
pool_init(pool_t *pool, const llmgw_flow_conf_t *conf)
{
    uint32_t                i;
    llmgw_admission_size_t  size = { 4, PEERS, sizeof(llmgw_slot_t),
                                     WAITING + 256, 0 };

    memset(pool, 0, sizeof(*pool));
    pool->shared = llmgw_admission_init(
        micro_must(calloc(1, llmgw_admission_bytes(&size))), &size);
    pool->self = (llmgw_admission_self_t) { pool->shared, 0, 1 };
    pool->claims = micro_must(calloc(WAITING + 256, sizeof(llmgw_claim_t)));

    for (i = 0; i < PEERS; i++) {
        pool_add(pool, i);
    }

    pool_make_ring(pool);

    pool->view.pick.peers = pool->peers;
    pool->view.pick.npeers = PEERS;
    pool->view.pick.breaker_conf = &pool->breaker;
    pool->view.places = pool->places;
    pool->view.queue_size = WAITING;

    (void) llmgw_admission_order(pool->shared, conf);
}


static llmgw_claim_t
pool_claim(pool_t *pool)
{
    uint64_t  n;

    n = ++pool->number;

    return (llmgw_claim_t) {
        .hash = n * 0x9e3779b97f4a7c15ull, .entry = LLMGW_QUEUE_NONE,
        .priority = (int32_t) (n % 5) - 2, .tenant = n % 7,
        .deadline_ms = 1000 + n % 97
    };
}


static void
pool_ask(pool_t *pool, llmgw_claim_t *claim)
{
    llmgw_admission_answer_t  answer;

    llmgw_admission_claim(&pool->self, &pool->view, claim, &pool->lease, 1000,
                          pool->number, &answer);
}


static void
pool_end(pool_t *pool)
{
    llmgw_admission_end_t  end;

    llmgw_admission_end(&pool->self, &pool->breaker, &pool->lease,
                        LLMGW_VERDICT_SUCCESS, 1000, &end);
}


static uint64_t
run_with_room(void *data, size_t n)
{
    size_t         i;
    pool_t        *pool = data;
    llmgw_claim_t  claim;

    for (i = 0; i < n; i++) {
        claim = pool_claim(pool);
        pool_ask(pool, &claim);
        pool_end(pool);
    }

    return pool->number;
}


/*
 * A request ends, the queue's head gets its place, and another request waits.
 */
static uint64_t
run_with_a_queue(void *data, size_t n)
{
    size_t         i;
    pool_t        *pool = data;
    uint32_t       head;
    llmgw_claim_t  claim;

    for (i = 0; i < n; i++) {
        pool_end(pool);
        head = llmgw_queue_head(&pool->shared->queue, 1000);
        pool_ask(pool, &pool->claims[head]);

        claim = pool_claim(pool);
        pool_ask(pool, &claim);
        pool->claims[claim.entry] = claim;
    }

    return pool->number;
}


static void
measure(const char *name, const llmgw_flow_conf_t *conf)
{
    char           what[80];
    pool_t         pool;
    uint32_t       i;
    llmgw_claim_t  claim;

    pool_init(&pool, conf);
    (void) snprintf(what, sizeof(what), "queue: claim and end, %s", name);
    micro_measure(what, run_with_room, &pool, TRIES);

    for (i = 0; i < PEERS; i++) {
        pool.peers[i].max_capacity = i == 0 ? 1 : 0;
        pool.peers[i].state = i == 0 ? LLMGW_PEER_ALIVE : LLMGW_PEER_UNUSABLE;
    }

    claim = pool_claim(&pool);
    pool_ask(&pool, &claim);

    for (i = 0; i < WAITING - 1; i++) {
        claim = pool_claim(&pool);
        pool_ask(&pool, &claim);
        pool.claims[claim.entry] = claim;
    }

    (void) snprintf(what, sizeof(what), "queue: the same, 1000 wait, %s",
                    name);
    micro_measure(what, run_with_a_queue, &pool, TRIES);

    free((void *) pool.view.pick.ring);
    free(pool.claims);
    free(pool.shared);
}


int
main(void)
{
    llmgw_flow_conf_t  priority = {
        .order = LLMGW_FLOW_PRIORITY, .fairness = LLMGW_FLOW_ROUND_ROBIN,
        .usage_limit = 1
    };
    llmgw_flow_conf_t  deadline = {
        .order = LLMGW_FLOW_SLO_DEADLINE, .usage_limit = 1
    };

    measure("first come", NULL);
    measure("priority, round robin", &priority);
    measure("slo-deadline", &deadline);

    return 0;
}
