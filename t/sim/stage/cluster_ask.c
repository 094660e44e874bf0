
/* What members know of each other, and whether it is right. */

#include <string.h>

#include "t/sim/stage/cluster.h"


#define CLUSTER_STORM_MS  (9 * CLUSTER_PERIOD_MS)


const member_t *
cluster_view(const cluster_t *cluster, size_t viewer, size_t host)
{
    return table_find(swim_table(node_swim(cluster->hosts[viewer].node)),
                      cluster->hosts[host].id);
}


const llmgw_member_t *
cluster_facts(const cluster_t *cluster, size_t viewer, size_t host)
{
    const member_t  *member;

    member = cluster_view(cluster, viewer, host);
    holds(cluster, member != NULL);

    return &member->facts;
}


const swim_t *
cluster_swim(const cluster_t *cluster, size_t host)
{
    return node_swim(cluster->hosts[host].node);
}


const swim_counters_t *
cluster_counters(const cluster_t *cluster, size_t host)
{
    return swim_counters(cluster_swim(cluster, host));
}


void
cluster_set_service(cluster_t *cluster, size_t host, llmgw_service_t service)
{
    swim_own_t             own;
    const cluster_host_t  *says;

    says = &cluster->hosts[host];
    memset(&own, 0, sizeof(own));
    own.service = service;
    own.model_version = "v1";
    own.max_capacity = 10;
    own.models = says->models;
    own.models_bytes = says->models_bytes;
    own.group = says->group;
    own.group_state = says->group_state;
    own.group_epoch = says->group_epoch;
    own.group_lock = says->group_epoch;
    own.shard = says->shard;
    own.orchestrates = says->orchestrates;
    node_set_own(says->node, &own);
}


void
cluster_set_load(cluster_t *cluster, size_t host, uint32_t active_requests)
{
    node_set_load(cluster->hosts[host].node, active_requests,
                  &cluster->hosts[host].engine);
}


int
cluster_all_see(const cluster_t *cluster, size_t host,
    llmgw_liveness_t liveness)
{
    size_t           i;
    const member_t  *member;

    for (i = 0; i < cluster->n; i++) {
        if (i == host || cluster->hosts[i].node == NULL) {
            continue;
        }

        member = cluster_view(cluster, i, host);

        if (member == NULL || member->facts.liveness != liveness) {
            return 0;
        }
    }

    return 1;
}


int
cluster_all_see_alive(const cluster_t *cluster, size_t host)
{
    return cluster_all_see(cluster, host, LLMGW_LIVENESS_ALIVE);
}


int
cluster_all_see_dead(const cluster_t *cluster, size_t host)
{
    return cluster_all_see(cluster, host, LLMGW_LIVENESS_DEAD);
}


int
cluster_all_see_gone(const cluster_t *cluster, size_t host)
{
    size_t           i;
    const member_t  *member;

    for (i = 0; i < cluster->n; i++) {
        if (cluster->hosts[i].node == NULL) {
            continue;
        }

        member = cluster_view(cluster, i, host);

        if (member != NULL && member_is_present(member)) {
            return 0;
        }
    }

    return 1;
}


int
cluster_any_suspects(const cluster_t *cluster, size_t host)
{
    return cluster->hosts[host].suspected_us != 0;
}


/* Compares one record of a table with the truth. */
static int
cluster_is_right(const cluster_t *cluster, size_t viewer, size_t host)
{
    const member_t        *member;
    const llmgw_member_t  *own;

    member = cluster_view(cluster, viewer, host);

    if (cluster->hosts[host].node == NULL) {
        return member == NULL || !member_is_present(member);
    }

    own = &swim_own(cluster_swim(cluster, host))->facts;

    return member != NULL && member->facts.liveness == LLMGW_LIVENESS_ALIVE
           && member->facts.epoch == own->epoch
           && member->facts.incarnation == own->incarnation
           && strcmp(member->facts.address, own->address) == 0;
}


static int
cluster_is_seen_alive(const cluster_t *cluster, size_t viewer, size_t host)
{
    const member_t  *member;

    if (viewer == host || cluster->hosts[host].node == NULL) {
        return 1;
    }

    member = cluster_view(cluster, viewer, host);

    return member != NULL && member->facts.liveness == LLMGW_LIVENESS_ALIVE;
}


/*
 * Checks every running viewer's record of every host.  A thousand members have
 * a million such records, which are checked many times until all are right: so
 * the walk starts at the record that was wrong last time, which is probably
 * still wrong.
 */
static int
cluster_is_all(const cluster_t *cluster,
    int (*is)(const cluster_t *, size_t viewer, size_t host))
{
    size_t  left, line, lines;

    lines = cluster->n * cluster->n;
    line = *cluster->wrong_line;

    for (left = lines; left > 0; left--, line = (line + 1) % lines) {
        if (cluster->hosts[line / cluster->n].node != NULL
            && !is(cluster, line / cluster->n, line % cluster->n))
        {
            *cluster->wrong_line = line;
            return 0;
        }
    }

    return 1;
}


int
cluster_is_whole(const cluster_t *cluster, size_t host)
{
    return cluster_is_all(cluster, cluster_is_seen_alive);
}


int
cluster_is_settled(const cluster_t *cluster, size_t host)
{
    size_t  i;

    for (i = 0; i < cluster->n; i++) {
        if (cluster->hosts[i].node != NULL
            && swim_backlog(cluster_swim(cluster, i)) != 0)
        {
            return 0;
        }
    }

    return cluster_is_all(cluster, cluster_is_right);
}


uint64_t
cluster_settles(cluster_t *cluster, uint64_t max_ms)
{
    size_t           i, j;
    uint64_t         ms;
    fake_weather_t  *weather;

    weather = fake_net_weather(cluster->net);
    memset(weather, 0, sizeof(fake_weather_t));
    weather->delay_us = 500;

    for (i = 0; i < cluster->n; i++) {
        for (j = 0; j < cluster->n; j++) {
            fake_net_cut(cluster->net, i, j, 0);
        }
    }

    /* Waits for the longest period, that of the worst local health: at its end
       a ping that failed during the faults becomes a suspicion. */
    cluster_run_ms(cluster, CLUSTER_STORM_MS);

    for (ms = 0; ms < max_ms && !cluster_is_settled(cluster, 0); ms += 20) {
        cluster_run_ms(cluster, 20);
    }

    holds(cluster, cluster_is_settled(cluster, 0));
    cluster_run_ms(cluster, 2000);
    holds(cluster, cluster_is_settled(cluster, 0));

    return ms;
}


size_t
cluster_false_deaths(const cluster_t *cluster)
{
    size_t  i, n;

    n = 0;

    for (i = 0; i < cluster->n; i++) {
        n += cluster->hosts[i].ndeaths;
    }

    return n;
}
