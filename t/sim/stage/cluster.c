
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "swim/order/drain.h"
#include "t/sim/stage/cluster.h"


#define CLUSTER_LINE_BYTES  256


uint64_t
cluster_seeds(uint64_t n)
{
    const char  *text;

    text = getenv("LLMGW_SIM_SEEDS");

    return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 10) : n;
}


uint64_t
cluster_first_seed(void)
{
    const char  *text;

    text = getenv("LLMGW_SIM_FIRST");

    return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 10) : 1;
}


/* --- the log */

static void
cluster_say(cluster_t *cluster, const char *line)
{
    if (cluster->log != NULL) {
        fprintf(cluster->log, "%s\n", line);
    }
}


/* Logs the fate of a datagram. */
static void
cluster_tap(void *data, const char *what, size_t from, size_t to,
    const uint8_t *bytes, size_t len)
{
    char         line[CLUSTER_LINE_BYTES];
    packet_t     packet;
    cluster_t   *cluster = data;
    static const char *const  types[PACKET_NTYPES] = {
        "PING", "PING_REQ", "ACK", "NACK", "JOIN", "TABLE", "UPDATES", "SYNC",
        "ORDER", "ORDER_ACK"
    };

    if (packet_decode(&packet, cluster->name, bytes, len, UINT64_MAX / 2)
        == PACKET_DONE)
    {
        snprintf(line, sizeof(line), "%12.6f %s h%zu > h%zu %s %s #%llu, "
                 "%zu updates", fake_net_now_us(cluster->net) / 1e6, what,
                 from, to, types[packet.head.type], packet.head.target_id,
                 (unsigned long long) packet.head.sequence % 100000,
                 packet.nupdates);
    } else {
        snprintf(line, sizeof(line), "%12.6f %s h%zu > h%zu, %zu bytes",
                 fake_net_now_us(cluster->net) / 1e6, what, from, to, len);
    }

    cluster_say(cluster, line);
}


static void
cluster_format(const cluster_note_t *note, char *line)
{
    snprintf(line, CLUSTER_LINE_BYTES,
             "%12.6f h%zu: %s is %s%s, epoch %llu, incarnation %llu, "
             "%u confirmers", note->now_us / 1e6, note->viewer, note->id,
             note->is_removed ? "forgotten, was " : "",
             llmgw_liveness_name(note->liveness),
             (unsigned long long) note->epoch,
             (unsigned long long) note->incarnation, note->nconfirmers);
}


/* A thousand joins make a million notes, so notes become text only when they
   are printed. */
static void
cluster_note(cluster_host_t *viewer, const member_t *member, unsigned what)
{
    char             line[CLUSTER_LINE_BYTES];
    cluster_t       *cluster;
    cluster_note_t  *note;

    cluster = viewer->cluster;
    note = &cluster->notes[cluster->nnotes++ % CLUSTER_MAX_NOTES];

    note->now_us = fake_net_now_us(cluster->net);
    note->viewer = viewer - cluster->hosts;
    strcpy(note->id, member->facts.id);
    note->is_removed = (what & MEMBER_REMOVED) != 0;
    note->liveness = member->facts.liveness;
    note->epoch = member->facts.epoch;
    note->incarnation = member->facts.incarnation;
    note->nconfirmers = member->nconfirmers;

    if (cluster->log != NULL) {
        cluster_format(note, line);
        cluster_say(cluster, line);
    }
}


void
cluster_holds(const cluster_t *cluster, int is, const char *what,
    const char *file, int line)
{
    size_t  i;
    char    text[CLUSTER_LINE_BYTES];

    if (is) {
        return;
    }

    i = cluster->nnotes < CLUSTER_MAX_NOTES ? 0 : cluster->nnotes
                                                  - CLUSTER_MAX_NOTES;

    for ( /* void */ ; i < cluster->nnotes; i++) {
        cluster_format(&cluster->notes[i % CLUSTER_MAX_NOTES], text);
        print_error("%s\n", text);
    }

    print_error("seed %llu, at %.6f s, does not hold: %s\n"
                "  LLMGW_SIM_FIRST=%llu LLMGW_SIM_SEEDS=1 runs it alone, "
                "LLMGW_SIM_LOG=FILE tells all\n",
                (unsigned long long) cluster->random_seed,
                fake_net_now_us(cluster->net) / 1e6, what,
                (unsigned long long) cluster->random_seed);

    _assert_true(0, what, file, line);
}


/* --- what the members report */

/* The host with this id: host i for "m<i>", unless another host was started
   with that id. */
static cluster_host_t *
cluster_find(cluster_t *cluster, const char *id)
{
    size_t  i;

    i = strtoul(id + 1, NULL, 10);
    assert(i < cluster->n);

    if (strcmp(cluster->hosts[i].id, id) == 0) {
        return &cluster->hosts[i];
    }

    for (i = 0; strcmp(cluster->hosts[i].id, id) != 0; i++) {
        assert(i + 1 < cluster->n);
    }

    return &cluster->hosts[i];
}


/* A verdict of death on a running member is false. */
static void
cluster_change(void *data, const member_t *member, unsigned what)
{
    cluster_host_t  *viewer = data, *host;

    if (!(what & (MEMBER_LIVENESS|MEMBER_ADDED|MEMBER_REMOVED))) {
        return;
    }

    cluster_note(viewer, member, what);
    host = cluster_find(viewer->cluster, member->facts.id);

    if (what & MEMBER_LIVENESS
        && member->facts.liveness == LLMGW_LIVENESS_SUSPECT
        && host->suspected_us == 0)
    {
        host->suspected_us = fake_net_now_us(viewer->cluster->net);
    }

    if (what & MEMBER_LIVENESS
        && member->facts.liveness == LLMGW_LIVENESS_DEAD)
    {
        host->dead_us = fake_net_now_us(viewer->cluster->net);

        if (host->node != NULL
            && member->facts.epoch
               == swim_own(node_swim(host->node))->facts.epoch)
        {
            host->ndeaths++;
            viewer->nverdicts++;
        }
    }
}


static void
cluster_conflict(void *data, const char *address)
{
    cluster_host_t  *host = data;

    host->nconflicts++;
}


static void
cluster_drain(void *data, unsigned what)
{
    cluster_host_t  *host = data;

    host->ntold += (what & DRAIN_TELL) != 0;
    host->nuntold += (what & DRAIN_UNTELL) != 0;
}


static order_rc_t
cluster_restart(void *data, const char *version)
{
    cluster_host_t  *host = data;

    host->nrestarts++;
    strcpy(host->version, version);

    return ORDER_DONE;
}


static order_rc_t
cluster_switch(void *data)
{
    ((cluster_host_t *) data)->nswitches++;

    return ORDER_DONE;
}


static int
cluster_is_kept(void *data)
{
    return !((cluster_host_t *) data)->is_writing;
}


static void
cluster_skew(void *data, const char *id, const address_t *from,
    uint64_t ahead_us)
{
    cluster_host_t  *host = data;

    if (from == NULL) {
        host->nown_skews++;

    } else {
        host->nskews++;
    }
}


static void
cluster_group_skew(void *data, const char *id, const char *group,
    uint64_t ahead_us)
{
    cluster_host_t  *host = data;

    assert(ahead_us > PACKET_MAX_AHEAD_US);
    host->ngroup_skews++;
}


static void
cluster_ordered(void *data, uint64_t id, order_rc_t rc)
{
    cluster_host_t  *host = data;

    host->nordered++;
    host->ordered = rc;
}


static const swim_callbacks_t  cluster_callbacks = {
    .on_change = cluster_change,
    .on_conflict = cluster_conflict,
    .on_drain = cluster_drain,
    .on_restart = cluster_restart,
    .on_switch = cluster_switch,
    .is_kept = cluster_is_kept,
    .on_skew = cluster_skew,
    .on_group_skew = cluster_group_skew,
    .on_ordered = cluster_ordered
};


/* --- start and end */

cluster_t *
cluster_create(size_t n, uint64_t random_seed)
{
    size_t       i;
    cluster_t   *cluster;
    const char  *path;

    cluster = calloc(1, sizeof(cluster_t));
    cluster->n = n;
    cluster->random_seed = random_seed;
    cluster->name = FAKE_CLUSTER;
    cluster->weight = 1;
    cluster->net = fake_net_create(n, random_seed);
    cluster->hosts = calloc(n, sizeof(cluster_host_t));
    cluster->wrong_line = calloc(1, sizeof(size_t));

    for (i = 0; i < n; i++) {
        cluster->hosts[i].cluster = cluster;
        snprintf(cluster->hosts[i].id, sizeof(cluster->hosts[i].id), "m%zu",
                 i);
    }

    fake_net_weather(cluster->net)->delay_us = 500;
    path = getenv("LLMGW_SIM_LOG");

    if (path != NULL && path[0] != '\0') {
        cluster->log = fopen(path, "a");
        fake_net_tap(cluster->net, cluster_tap, cluster);
    }

    return cluster;
}


void
cluster_destroy(cluster_t *cluster)
{
    size_t  i;

    for (i = 0; i < cluster->n; i++) {
        cluster_crash(cluster, i);
    }

    if (cluster->log != NULL) {
        fclose(cluster->log);
    }

    fake_net_destroy(cluster->net);
    free(cluster->wrong_line);
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
    cluster_start_as(cluster, host, host, role, seed_host, epoch);
}


/* Gives `host` the id of `as`; if `as` does not run, it gets the other id. */
static void
cluster_rename(cluster_t *cluster, size_t host, size_t as)
{
    char             id[LLMGW_MEMBERS_NAME_BYTES];
    cluster_host_t  *hosts;

    if (host == as) {
        return;
    }

    hosts = cluster->hosts;
    strcpy(id, hosts[host].id);
    strcpy(hosts[host].id, hosts[as].id);

    if (hosts[as].node == NULL) {
        strcpy(hosts[as].id, id);
    }
}


static void
cluster_configure(const cluster_t *cluster, size_t host,
    swim_config_t *config)
{
    memset(config, 0, sizeof(swim_config_t));

    config->cluster = cluster->name;
    config->crypt = cluster->crypt;
    config->weight = cluster->weight;
    config->drain_kept = cluster->drain_kept;
    config->can_restart = cluster->can_restart;
    config->resume_group = cluster->resume_group;
    config->period_us = CLUSTER_PERIOD_MS * 1000;
    config->ping_timeout_us = 200000;
    config->suspect_timeout_us = 2000000;
    config->indirect_probes = 3;
    config->callbacks = &cluster_callbacks;
    config->data = &cluster->hosts[host];
}


void
cluster_start_as(cluster_t *cluster, size_t host, size_t as,
    llmgw_role_t role, size_t seed_host, uint64_t epoch)
{
    char             text[ADDRESS_TEXT_BYTES];
    address_t        address;
    swim_config_t    config;
    cluster_host_t  *self;

    self = &cluster->hosts[host];
    assert(self->node == NULL);
    cluster_rename(cluster, host, as);

    fake_net_address(host, &address);
    address_format(&address, text);
    self->epoch = epoch;
    self->role = role;
    self->started_us = fake_net_now_us(cluster->net);
    self->suspected_us = 0;
    self->dead_us = 0;

    cluster_configure(cluster, host, &config);
    config.id = self->id;
    config.address = text;
    config.grpc = role == LLMGW_ROLE_GATEWAY ? "" : "10.0.0.1:50051";
    config.role = role;
    config.epoch = epoch;
    config.random_seed = cluster->random_seed * 65537 + host * 257 + epoch;

    self->node = node_create(&config, fake_net_transport(cluster->net, host),
                             fake_net_clock(cluster->net, host));

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


cluster_t *
cluster_formed(size_t n, uint64_t random_seed)
{
    cluster_t  *cluster;

    cluster = cluster_create(n, random_seed);
    cluster_start_all(cluster);
    holds(cluster, cluster_run_until(cluster, cluster_is_whole, 0, 3000)
                   != UINT64_MAX);

    return cluster;
}


static void
cluster_view_init(llmgw_members_view_t *view, size_t n)
{
    memset(view, 0, sizeof(llmgw_members_view_t));
    view->members = calloc(n, sizeof(llmgw_member_t));
    view->loads = calloc(n, sizeof(llmgw_member_load_t));
    view->n = n;
}


void
cluster_segment(const cluster_t *cluster, size_t host,
    llmgw_members_view_t *view)
{
    size_t           i;
    const member_t  *member;

    cluster_view_init(view, cluster->n);
    view->isolated = swim_is_isolated(cluster_swim(cluster, host));
    view->heartbeat_ms = fake_net_now_us(cluster->net) / 1000;

    for (i = 0; i < cluster->n; i++) {
        member = cluster_view(cluster, host, i);
        holds(cluster, member != NULL);
        view->members[i] = member->facts;
        view->loads[i] = member->load;
    }
}


cluster_t *
cluster_restored(size_t n, uint64_t random_seed)
{
    size_t                i;
    cluster_t            *cluster;
    llmgw_members_view_t  view;

    cluster = cluster_create(n, random_seed);
    cluster_view_init(&view, n);

    for (i = 0; i < n; i++) {
        cluster_start(cluster, i, i ? LLMGW_ROLE_REPLICA : LLMGW_ROLE_GATEWAY,
                      i ? 0 : CLUSTER_NO_SEED);
        view.members[i] = swim_own(node_swim(cluster->hosts[i].node))->facts;
    }

    /* In the segment a member's own record is from before its restart. */
    for (i = 0; i < n; i++) {
        view.members[i].epoch--;
        node_restore(cluster->hosts[i].node, &view);
        view.members[i].epoch++;
    }

    llmgw_members_view_done(&view);

    return cluster;
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
