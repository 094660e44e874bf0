
/* Agents of a simulated fleet.  mesh.h says what they are for. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/node.h"
#include "sim/swim/fake_net.h"
#include "sim/swim/mesh.h"


#define MESH_WARM_US  3000000           /* how long it runs before time 0 */

/* The defaults of llmgw-agent. */
#define MESH_PING_US     200000
#define MESH_SUSPECT_US  2000000
#define MESH_PROBES      3

typedef struct {
    mesh_t    *mesh;
    node_t    *node;                    /* NULL: its machine is dead */
    size_t     host;
    char       id[LLMGW_MEMBERS_NAME_BYTES];
} mesh_host_t;

struct mesh_s {
    mesh_config_t    config;
    fake_net_t      *net;
    mesh_host_t     *hosts;             /* gateways, then replicas */
    size_t           n;
    mesh_change_pt   change;
    void            *data;
    int              is_warm;
};


/* --- reports of agents */

static void
mesh_fill(mesh_view_t *view, const member_t *member)
{
    *view = (mesh_view_t) { .liveness = LLMGW_LIVENESS_DEAD };

    if (member != NULL) {
        view->service = member->facts.service;
        view->liveness = member->facts.liveness;
        view->is_draining = member->facts.draining != 0;
        view->process = (uint32_t) (member->facts.replica_start_ms - 1);
        view->active = member->load.active_requests;
    }
}


static void
mesh_changed(void *data, const member_t *member, unsigned what)
{
    mesh_t        *mesh;
    mesh_host_t   *host = data;
    mesh_view_t    view;

    mesh = host->mesh;

    if (!mesh->is_warm || host->host >= mesh->config.gateways
        || member->facts.id[0] != 'r')
    {
        return;
    }

    mesh_fill(&view, what & MEMBER_REMOVED ? NULL : member);
    mesh->change(mesh->data, (uint32_t) host->host,
                 (uint32_t) strtoul(member->facts.id + 1, NULL, 10), &view);
}


static void
mesh_conflict(void *data, const char *address)
{
    /* ids are unique in a mesh */
}


static const swim_callbacks_t  mesh_callbacks = {
    .on_change = mesh_changed,
    .on_conflict = mesh_conflict
};


/* --- members */

static mesh_host_t *
mesh_replica(mesh_t *mesh, uint32_t replica)
{
    return &mesh->hosts[mesh->config.gateways + replica];
}


static int
mesh_start(mesh_t *mesh, size_t i)
{
    char            text[ADDRESS_TEXT_BYTES];
    address_t       address;
    mesh_host_t    *host = &mesh->hosts[i];
    swim_config_t   config;

    fake_net_address(i, &address);
    address_format(&address, text);

    config = (swim_config_t) {
        .cluster = "sim", .id = host->id, .address = text,
        .grpc = i < mesh->config.gateways ? "" : text,
        .role = i < mesh->config.gateways ? LLMGW_ROLE_GATEWAY
                                          : LLMGW_ROLE_REPLICA,
        .weight = 1,
        .epoch = clock_wall_us(fake_net_clock(mesh->net, i)),
        .period_us = mesh->config.period_us,
        .ping_timeout_us = MESH_PING_US,
        .suspect_timeout_us = MESH_SUSPECT_US,
        .indirect_probes = MESH_PROBES,
        .random_seed = mesh->config.seed * 65537 + i,
        .callbacks = &mesh_callbacks,
        .data = host
    };

    host->node = node_create(&config, fake_net_transport(mesh->net, i),
                             fake_net_clock(mesh->net, i));

    if (host->node == NULL) {
        return -1;
    }

    if (i != 0) {
        fake_net_address(0, &address);
        node_set_seeds(host->node, &address, 1);
    }

    return 0;
}


static int
mesh_start_all(mesh_t *mesh)
{
    size_t  i;

    for (i = 0; i < mesh->n; i++) {
        if (mesh_start(mesh, i) != 0) {
            return -1;
        }

        if (i >= mesh->config.gateways) {
            mesh_say(mesh, (uint32_t) (i - mesh->config.gateways),
                     LLMGW_SERVICE_READY, 0, 0);
        }
    }

    return 0;
}


/*
 * Gives each agent a view with all members, as from the segment of an earlier
 * run.
 */
static int
mesh_introduce(mesh_t *mesh)
{
    size_t                i;
    llmgw_members_view_t  view;

    memset(&view, 0, sizeof(view));
    view.members = calloc(mesh->n, sizeof(llmgw_member_t));
    view.loads = calloc(mesh->n, sizeof(llmgw_member_load_t));

    if (view.members == NULL || view.loads == NULL) {
        llmgw_members_view_done(&view);
        return -1;
    }

    view.n = mesh->n;

    for (i = 0; i < mesh->n; i++) {
        view.members[i] = swim_own(node_swim(mesh->hosts[i].node))->facts;
    }

    for (i = 0; i < mesh->n; i++) {
        view.members[i].epoch--;        /* its own is from an earlier run */
        node_restore(mesh->hosts[i].node, &view);
        view.members[i].epoch++;
    }

    llmgw_members_view_done(&view);

    return 0;
}


static void
mesh_name(mesh_t *mesh)
{
    size_t        i, gateways;
    mesh_host_t  *host;

    gateways = mesh->config.gateways;

    for (i = 0; i < mesh->n; i++) {
        host = &mesh->hosts[i];
        host->mesh = mesh;
        host->host = i;
        (void) snprintf(host->id, sizeof(host->id), "%c%zu",
                        i < gateways ? 'g' : 'r',
                        i < gateways ? i : i - gateways);
    }
}


mesh_t *
mesh_create(const mesh_config_t *config, mesh_change_pt change, void *data)
{
    mesh_t          *mesh;
    fake_weather_t  *weather;

    mesh = calloc(1, sizeof(mesh_t));

    if (mesh == NULL) {
        return NULL;
    }

    mesh->config = *config;
    mesh->change = change;
    mesh->data = data;
    mesh->n = (size_t) config->gateways + config->replicas;

    if (mesh->n <= MESH_MAX_MEMBERS) {
        mesh->net = fake_net_create(mesh->n, config->seed);
        mesh->hosts = calloc(mesh->n, sizeof(mesh_host_t));
    }

    if (mesh->net == NULL || mesh->hosts == NULL) {
        mesh_destroy(mesh);
        return NULL;
    }

    mesh_name(mesh);

    if (mesh_start_all(mesh) != 0 || mesh_introduce(mesh) != 0) {
        mesh_destroy(mesh);
        return NULL;
    }

    weather = fake_net_weather(mesh->net);
    weather->delay_us = config->delay_us;
    weather->jitter_us = config->jitter_us;
    weather->loss_permille = config->loss_permille;

    mesh_run(mesh, 0);
    mesh->is_warm = 1;

    return mesh;
}


void
mesh_destroy(mesh_t *mesh)
{
    size_t  i;

    if (mesh == NULL) {
        return;
    }

    for (i = 0; mesh->hosts != NULL && i < mesh->n; i++) {
        if (mesh->hosts[i].node != NULL) {
            node_destroy(mesh->hosts[i].node);
        }
    }

    if (mesh->net != NULL) {
        fake_net_destroy(mesh->net);
    }

    free(mesh->hosts);
    free(mesh);
}


/* --- time */

int64_t
mesh_next_us(const mesh_t *mesh)
{
    uint64_t  next_us;

    next_us = fake_net_next_us(mesh->net);

    return next_us == UINT64_MAX
           ? INT64_MAX
           : (int64_t) (next_us - FAKE_NET_START_US) - MESH_WARM_US;
}


int64_t
mesh_now_us(const mesh_t *mesh)
{
    return (int64_t) (fake_net_now_us(mesh->net) - FAKE_NET_START_US)
           - MESH_WARM_US;
}


void
mesh_run(mesh_t *mesh, int64_t until_us)
{
    fake_net_run(mesh->net, (uint64_t) (until_us + MESH_WARM_US)
                            + FAKE_NET_START_US);
}


/* --- events of replicas */

void
mesh_say(mesh_t *mesh, uint32_t replica, uint8_t service, int is_draining,
    uint32_t process)
{
    swim_own_t    own;
    mesh_host_t  *host = mesh_replica(mesh, replica);

    if (host->node == NULL) {
        return;
    }

    own = (swim_own_t) {
        .service = service, .draining = is_draining, .model_version = "v1",
        .replica_start_ms = 1 + process, .is_heard = 1
    };
    node_set_own(host->node, &own);
}


void
mesh_say_load(mesh_t *mesh, uint32_t replica, uint32_t active)
{
    llmgw_engine_load_t   engine = { 0 };
    const mesh_host_t    *host = mesh_replica(mesh, replica);

    if (host->node != NULL) {
        node_set_load(host->node, active, &engine);
    }
}


void
mesh_kill(mesh_t *mesh, uint32_t replica)
{
    mesh_host_t  *host = mesh_replica(mesh, replica);

    if (host->node != NULL) {
        node_destroy(host->node);
        host->node = NULL;
    }
}


void
mesh_revive(mesh_t *mesh, uint32_t replica)
{
    mesh_host_t  *host = mesh_replica(mesh, replica);

    if (host->node == NULL) {
        (void) mesh_start(mesh, host->host);
    }
}


void
mesh_view(const mesh_t *mesh, uint32_t gateway, uint32_t replica,
    mesh_view_t *view)
{
    const mesh_host_t  *host;

    host = &mesh->hosts[mesh->config.gateways + replica];
    mesh_fill(view, table_find(swim_table(node_swim(
                                   mesh->hosts[gateway].node)), host->id));
}
