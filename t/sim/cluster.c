
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"


/* A verdict over a member that runs is false. */
static void
cluster_change(void *data, const member_t *member, unsigned what)
{
    size_t           i;
    cluster_t       *cluster;
    cluster_host_t  *viewer = data, *host;

    if (!(what & MEMBER_LIVENESS)) {
        return;
    }

    cluster = viewer->cluster;
    i = strtoul(member->facts.id + 1, NULL, 10);
    assert(i < cluster->n);
    host = &cluster->hosts[i];

    if (member->facts.liveness == LLMGW_LIVENESS_SUSPECT
        && host->suspected_us == 0)
    {
        host->suspected_us = fake_net_now_us(cluster->net);
    }

    if (member->facts.liveness == LLMGW_LIVENESS_DEAD) {
        host->dead_us = fake_net_now_us(cluster->net);
        host->ndeaths += host->node != NULL
                         && member->facts.epoch == host->epoch;
    }
}


static void
cluster_conflict(void *data, const char *address)
{
    cluster_host_t  *host = data;

    host->nconflicts++;
}


static const swim_callbacks_t  cluster_callbacks = {
    NULL, cluster_change, cluster_conflict
};


cluster_t *
cluster_create(size_t n, uint64_t random_seed)
{
    size_t      i;
    cluster_t  *cluster;

    cluster = calloc(1, sizeof(cluster_t));
    cluster->n = n;
    cluster->random_seed = random_seed;
    cluster->net = fake_net_create(n, random_seed);
    cluster->hosts = calloc(n, sizeof(cluster_host_t));

    for (i = 0; i < n; i++) {
        cluster->hosts[i].cluster = cluster;
        snprintf(cluster->hosts[i].id, sizeof(cluster->hosts[i].id), "m%zu",
                 i);
    }

    fake_net_weather(cluster->net)->delay_us = 500;

    return cluster;
}


void
cluster_destroy(cluster_t *cluster)
{
    size_t  i;

    for (i = 0; i < cluster->n; i++) {
        cluster_crash(cluster, i);
    }

    fake_net_destroy(cluster->net);
    free(cluster->hosts);
    free(cluster);
}


void
cluster_start(cluster_t *cluster, size_t host, llmgw_role_t role,
    size_t seed_host)
{
    cluster_start_at(cluster, host, role, seed_host,
                     clock_wall_us(fake_net_clock(cluster->net, host)));
}


void
cluster_start_at(cluster_t *cluster, size_t host, llmgw_role_t role,
    size_t seed_host, uint64_t epoch)
{
    char             text[ADDRESS_TEXT_BYTES];
    address_t        address;
    swim_config_t    config;
    clock_source_t  *clock;
    cluster_host_t  *self;

    self = &cluster->hosts[host];
    assert(self->node == NULL);

    clock = fake_net_clock(cluster->net, host);
    fake_net_address(host, &address);
    address_format(&address, text);
    self->epoch = epoch;
    self->suspected_us = 0;
    self->dead_us = 0;

    memset(&config, 0, sizeof(config));
    config.cluster = "test";
    config.id = self->id;
    config.address = text;
    config.grpc = role == LLMGW_ROLE_GATEWAY ? "" : "10.0.0.1:50051";
    config.role = role;
    config.weight = 1;
    config.epoch = self->epoch;
    config.period_us = 500000;
    config.ping_timeout_us = 200000;
    config.suspect_timeout_us = 2000000;
    config.indirect_probes = 3;
    config.random_seed = cluster->random_seed * 65537 + host * 257
                         + self->epoch;
    config.callbacks = &cluster_callbacks;
    config.data = self;

    self->node = node_create(&config, fake_net_transport(cluster->net, host),
                             clock);

    if (seed_host != CLUSTER_NO_SEED) {
        fake_net_address(seed_host, &address);
        node_set_seeds(self->node, &address, 1);
    }
}


void
cluster_start_all(cluster_t *cluster)
{
    size_t  i;

    cluster_start(cluster, 0, LLMGW_ROLE_GATEWAY, CLUSTER_NO_SEED);

    for (i = 1; i < cluster->n; i++) {
        cluster_run_ms(cluster, 10);
        cluster_start(cluster, i, LLMGW_ROLE_REPLICA, 0);
    }
}


void
cluster_crash(cluster_t *cluster, size_t host)
{
    if (cluster->hosts[host].node != NULL) {
        node_destroy(cluster->hosts[host].node);
        cluster->hosts[host].node = NULL;
    }
}


void
cluster_run_ms(cluster_t *cluster, uint64_t ms)
{
    fake_net_run(cluster->net, fake_net_now_us(cluster->net) + ms * 1000);
}


uint64_t
cluster_run_until(cluster_t *cluster, cluster_ask_pt ask, size_t host,
    uint64_t max_ms)
{
    uint64_t  ms;

    for (ms = 0; ms <= max_ms; ms++) {
        if (ask(cluster, host)) {
            return ms;
        }

        cluster_run_ms(cluster, 1);
    }

    return UINT64_MAX;
}


const member_t *
cluster_view(const cluster_t *cluster, size_t viewer, size_t host)
{
    return table_find(swim_table(node_swim(cluster->hosts[viewer].node)),
                      cluster->hosts[host].id);
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
cluster_any_suspects(const cluster_t *cluster, size_t host)
{
    return cluster->hosts[host].suspected_us != 0;
}


int
cluster_is_whole(const cluster_t *cluster, size_t host)
{
    size_t  i;

    for (i = 0; i < cluster->n; i++) {
        if (cluster->hosts[i].node != NULL
            && !cluster_all_see(cluster, i, LLMGW_LIVENESS_ALIVE))
        {
            return 0;
        }
    }

    return 1;
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
