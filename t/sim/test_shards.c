
/*
 * Shards: which members learn of them, how soon, and how agents from before
 * shards take them.  Host 0 is a gateway, 2 a shard, 4 a replica that uses
 * shards.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "t/sim/stage/cluster.h"
#include "t/sim/stage/old_agent.h"


#define SEEDS    20
#define N        6
#define GATEWAY  0
#define SHARD    2
#define USER     4


static llmgw_role_t
role_of(size_t host)
{
    return host == GATEWAY ? LLMGW_ROLE_GATEWAY
           : host == SHARD ? LLMGW_ROLE_SHARD : LLMGW_ROLE_REPLICA;
}


/* olds: the odd hosts run agents from before shards. */
static cluster_t *
staged(size_t n, uint64_t seed, int olds)
{
    size_t      i;
    cluster_t  *cluster;

    cluster = cluster_create(n, seed);

    for (i = 0; i < n; i++) {
        if (olds && i % 2) {
            fake_net_filter(cluster->net, i, old_agent_shardless_filter);
        }

        cluster_start(cluster, i, role_of(i), i ? 0 : CLUSTER_NO_SEED);
        cluster_run_ms(cluster, 10);
    }

    holds(cluster, cluster_run_until(cluster, cluster_is_whole, 0, 5000)
                   != UINT64_MAX);
    cluster->hosts[USER].orchestrates = 1;
    cluster_set_service(cluster, USER, LLMGW_SERVICE_READY);

    return cluster;
}


/* The host's replica is a shard with these layers.  facts must stay valid
   until the next call. */
static void
compute(cluster_t *cluster, llmgw_shard_t *facts, unsigned first)
{
    memset(facts, 0, sizeof(llmgw_shard_t));
    facts->first = (uint16_t) first;
    facts->last = (uint16_t) first + 3;
    facts->layers = 16;
    facts->memory_bytes = 1ULL << 33;
    strcpy(facts->zone, "eu-1");
    cluster->hosts[SHARD].shard = facts;
    cluster->hosts[SHARD].models = "toy";
    cluster->hosts[SHARD].models_bytes = 4;
    cluster_set_service(cluster, SHARD, LLMGW_SERVICE_READY);
}


static int
knows_shard(const cluster_t *cluster, size_t viewer)
{
    const llmgw_member_t  *seen;

    seen = cluster_facts(cluster, viewer, SHARD);

    return llmgw_member_role(seen) == LLMGW_ROLE_SHARD
           && memcmp(&seen->shard, cluster->hosts[SHARD].shard,
                     sizeof(llmgw_shard_t)) == 0
           && cluster_view(cluster, viewer, SHARD)->models_bytes == 4;
}


static int
new_ones_know(const cluster_t *cluster, size_t host)
{
    return knows_shard(cluster, GATEWAY) && knows_shard(cluster, USER)
           && cluster_view(cluster, SHARD, USER)->traits.orchestrates
           && cluster_view(cluster, GATEWAY, USER)->traits.orchestrates;
}


/* To an agent from before shards the shard is a gateway, and ALIVE. */
static int
is_gateway_to_old_ones(const cluster_t *cluster)
{
    size_t                 i;
    const llmgw_member_t  *seen;

    for (i = 1; i < N; i += 2) {
        seen = cluster_facts(cluster, i, SHARD);

        if (seen->role != LLMGW_ROLE_GATEWAY || seen->is_shard
            || seen->resume_group[0] != '\0'
            || seen->liveness != LLMGW_LIVENESS_ALIVE)
        {
            return 0;
        }
    }

    return 1;
}


static void
new_ones_know_a_shard_whoever_passes_it_on(void **state)
{
    unsigned        first;
    uint64_t        seed;
    cluster_t      *cluster;
    llmgw_shard_t   facts[4];

    cluster_each_seed(seed, SEEDS) {
        cluster = staged(N, seed, 1);
        fake_net_weather(cluster->net)->loss_permille = 200;

        for (first = 0; first < 4; first++) {
            compute(cluster, &facts[first], first * 4);
            holds(cluster, cluster_run_until(cluster, new_ones_know, 0, 20000)
                           != UINT64_MAX);
        }

        holds(cluster, cluster_false_deaths(cluster) == 0);
        cluster_settles(cluster, 5000);
        holds(cluster, new_ones_know(cluster, 0));
        holds(cluster, is_gateway_to_old_ones(cluster));
        cluster_destroy(cluster);
    }
}


/* Cuts or heals the paths among the new agents. */
static void
cut_new_ones(cluster_t *cluster, unsigned what)
{
    size_t  i, j;

    for (i = 0; i < N; i += 2) {
        for (j = 0; j < N; j += 2) {
            if (i != j) {
                fake_net_cut(cluster->net, i, j, what);
            }
        }
    }
}


static int
gateway_has_its_word(const cluster_t *cluster, size_t host)
{
    return cluster_facts(cluster, GATEWAY, SHARD)->incarnation
           == swim_own(cluster_swim(cluster, SHARD))->facts.incarnation;
}


/* A shard is heard of through old agents alone: what is known of it stays, and
   the rest is asked for when the path is healed. */
static void
old_relays_take_nothing_of_a_shard_away(void **state)
{
    uint64_t        seed;
    cluster_t      *cluster;
    llmgw_shard_t   facts, later;

    cluster_each_seed(seed, SEEDS) {
        cluster = staged(N, seed, 1);
        compute(cluster, &facts, 4);
        holds(cluster, cluster_run_until(cluster, new_ones_know, 0, 20000)
                       != UINT64_MAX);

        cut_new_ones(cluster, FAKE_ALL);
        compute(cluster, &later, 8);
        cluster->hosts[SHARD].shard = &facts;
        holds(cluster, cluster_run_until(cluster, gateway_has_its_word, 0,
                                         15000) != UINT64_MAX);
        holds(cluster, knows_shard(cluster, GATEWAY));
        holds(cluster, cluster_view(cluster, GATEWAY, SHARD)->lacks_more);
        holds(cluster, is_gateway_to_old_ones(cluster));

        cut_new_ones(cluster, 0);
        cluster->hosts[SHARD].shard = &later;
        holds(cluster, cluster_run_until(cluster, new_ones_know, 0, 20000)
                       != UINT64_MAX);
        holds(cluster, cluster_false_deaths(cluster) == 0);
        cluster_settles(cluster, 5000);
        cluster_destroy(cluster);
    }
}


/* The gateway's agent restarts from its segment, which has what the shard
   computes (is_told), or not. */
static void
restart_gateway(cluster_t *cluster, int is_told)
{
    llmgw_shard_t         *facts;
    llmgw_members_view_t   view;

    cluster_segment(cluster, GATEWAY, &view);

    if (!is_told) {
        facts = &view.members[SHARD].shard;
        memset(facts, 0, sizeof(llmgw_shard_t));
    }

    cluster_crash(cluster, GATEWAY);
    cluster_start(cluster, GATEWAY, LLMGW_ROLE_GATEWAY, CLUSTER_NO_SEED);
    node_restore(cluster->hosts[GATEWAY].node, &view);
    llmgw_members_view_done(&view);
}


static int
gateway_knows_shard(const cluster_t *cluster, size_t host)
{
    return knows_shard(cluster, GATEWAY);
}


/* What the segment lacks comes with the shard's next record. */
static void
shard_is_restored_from_the_segment_or_learned(void **state)
{
    int                    is_told;
    uint64_t               seed;
    cluster_t             *cluster;
    llmgw_shard_t          facts;
    const llmgw_member_t  *seen;

    cluster_each_seed(seed, SEEDS) {
        for (is_told = 0; is_told <= 1; is_told++) {
            cluster = staged(N, seed, 0);
            compute(cluster, &facts, 4);
            holds(cluster, cluster_run_until(cluster, new_ones_know, 0, 5000)
                           != UINT64_MAX);

            restart_gateway(cluster, is_told);
            seen = cluster_facts(cluster, GATEWAY, SHARD);
            holds(cluster, llmgw_member_role(seen) == LLMGW_ROLE_SHARD);
            holds(cluster, seen->shard.layers
                           == (is_told ? 16 : 0));
            holds(cluster, cluster_run_until(cluster, gateway_knows_shard, 0,
                                             5000) != UINT64_MAX);
            cluster_destroy(cluster);
        }
    }
}


static int
user_sees_it_down(const cluster_t *cluster, size_t host)
{
    return cluster_facts(cluster, USER, SHARD)->service == LLMGW_SERVICE_DOWN;
}


/* To shards a replica that uses them is what a gateway is to replicas: it gets
   a change at once, and the load each second. */
static void
user_of_shards_has_their_word_at_once(void **state)
{
    size_t               s;
    uint64_t             seed;
    cluster_t           *cluster;
    llmgw_shard_t        facts;
    const member_t      *seen;

    cluster_each_seed(seed, SEEDS) {
        cluster = staged(60, seed, 0);
        compute(cluster, &facts, 0);
        holds(cluster, cluster_run_until(cluster, new_ones_know, 0, 10000)
                       != UINT64_MAX);

        for (s = 1; s <= 10; s++) {
            cluster_run_ms(cluster, 1000);
            cluster->hosts[SHARD].engine.waiting = (uint32_t) s;
            cluster->hosts[SHARD].engine.reported = LLMGW_ENGINE_WAITING;
            cluster_set_load(cluster, SHARD, (uint32_t) s);
            cluster_run_ms(cluster, 20);
            seen = cluster_view(cluster, USER, SHARD);
            holds(cluster, seen->load.active_requests == s);
            holds(cluster, seen->load.engine.waiting == s);
        }

        cluster_set_service(cluster, SHARD, LLMGW_SERVICE_DOWN);
        holds(cluster, cluster_run_until(cluster, user_sees_it_down, 0, 30)
                       != UINT64_MAX);
        cluster_destroy(cluster);
    }
}


static int
all_are_dead_from(const cluster_t *cluster, size_t host)
{
    for (/* void */; host < cluster->n; host++) {
        if (!cluster_all_see_dead(cluster, host)) {
            return 0;
        }
    }

    return 1;
}


/* Nine of thirteen members die at once, and all of them are shards. */
static void
death_of_all_shards_isolates_nobody(void **state)
{
    size_t      i;
    uint64_t    seed;
    cluster_t  *cluster;

    cluster_each_seed(seed, SEEDS) {
        cluster = cluster_create(13, seed);

        for (i = 0; i < 13; i++) {
            cluster_start(cluster, i, i == 0 ? LLMGW_ROLE_GATEWAY
                                      : i < 4 ? LLMGW_ROLE_REPLICA
                                              : LLMGW_ROLE_SHARD,
                          i ? 0 : CLUSTER_NO_SEED);
        }

        holds(cluster, cluster_run_until(cluster, cluster_is_whole, 0, 5000)
                       != UINT64_MAX);
        cluster_run_ms(cluster, 40000);

        for (i = 4; i < 13; i++) {
            cluster_crash(cluster, i);
        }

        holds(cluster, cluster_run_until(cluster, all_are_dead_from, 4, 60000)
                       != UINT64_MAX);

        for (i = 0; i < 4; i++) {
            holds(cluster, !swim_is_isolated(cluster_swim(cluster, i)));
        }

        cluster_destroy(cluster);
    }
}


static int
is_drained(const cluster_t *cluster, size_t host)
{
    return cluster_facts(cluster, host, SHARD)->draining;
}


static void
shard_is_drained_by_an_order(void **state)
{
    order_t         order;
    uint64_t        seed;
    cluster_t      *cluster;
    llmgw_shard_t   facts;

    cluster_each_seed(seed, SEEDS) {
        cluster = staged(N, seed, 0);
        compute(cluster, &facts, 0);
        memset(&order, 0, sizeof(order));
        strcpy(order.target_id, cluster->hosts[SHARD].id);
        strcpy(order.owner, "operator");
        order.verb = ORDER_DRAIN;
        node_order(cluster->hosts[GATEWAY].node, &order);
        holds(cluster, cluster_run_until(cluster, is_drained, USER, 5000)
                       != UINT64_MAX);
        holds(cluster, cluster->hosts[SHARD].ntold == 1);
        holds(cluster, knows_shard(cluster, USER));
        cluster_destroy(cluster);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(new_ones_know_a_shard_whoever_passes_it_on),
        cmocka_unit_test(old_relays_take_nothing_of_a_shard_away),
        cmocka_unit_test(shard_is_restored_from_the_segment_or_learned),
        cmocka_unit_test(user_of_shards_has_their_word_at_once),
        cmocka_unit_test(death_of_all_shards_isolates_nobody),
        cmocka_unit_test(shard_is_drained_by_an_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
