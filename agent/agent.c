
/* The wiring: creates the parts and connects them. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent_inner.h"
#include "net/clock_ev.h"
#include "net/transport_udp.h"


#define AGENT_HEARTBEAT_S  1.0

_Static_assert(RESOLVE_MAX_SEEDS <= SWIM_MAX_SEEDS, "seeds");

/* Runs before the loop sleeps. */
static void
agent_flush(struct ev_loop *loop, ev_prepare *prepare, int events)
{
    agent_t  *agent = prepare->data;

    /* the last line of a command is about what was published before */
    if (agent_segment_flush(agent)) {
        jobs_look(&agent->jobs);
    }

    if (agent_life_is_over(agent)) {
        ev_break(loop, EVBREAK_ALL);
    }
}


static void
agent_heartbeat(struct ev_loop *loop, ev_timer *timer, int events)
{
    agent_t  *agent = timer->data;

    agent_keep_retry(agent);
    agent_segment_beat(agent);
}


/* --- what the swim reports */

static void
agent_member_changed(void *data, const member_t *member, unsigned what)
{
    agent_t  *agent = data;

    if (what == MEMBER_LOAD) {
        publish_load(agent->publish, member->facts.id, &member->load);

    } else {
        publish_mark(agent->publish);
    }

    jobs_changed(&agent->jobs);
}


static void
agent_conflict(void *data, const char *address)
{
    agent_t  *agent = data;

    if (!agent->has_conflict) {
        log_write(agent->log, LOG_ERROR,
                  "id \"%s\" is in use by a living agent at %s, ending",
                  agent->settings->id, address);
    }

    agent->has_conflict = 1;
    agent_child_stop(agent);
}


static void
agent_skew(void *data, const char *id, const address_t *from,
    uint64_t ahead_us)
{
    char       address[ADDRESS_TEXT_BYTES];
    double     hours;
    agent_t   *agent = data;

    hours = ahead_us / 3.6e9;

    if (from == NULL) {
        log_write(agent->log, LOG_WARN, "own epoch is %.0f hours ahead of "
                  "this clock, which no other member would accept: a new "
                  "epoch was taken from the clock", hours);
        return;
    }

    address_format(from, address);
    log_write(agent->log, LOG_WARN, "epoch of member \"%s\" at %s is %.0f "
              "hours ahead of this clock: its datagrams are dropped until one "
              "of the two clocks is corrected", id, address, hours);
}


static void
agent_group_skew(void *data, const char *id, const char *group,
    uint64_t ahead_us)
{
    agent_t  *agent = data;

    log_write(agent->log, LOG_WARN, "replica \"%s\" has an epoch of group "
              "\"%s\" that is %.0f hours ahead of this clock: it does not "
              "count as active", id, group, ahead_us / 3.6e9);
}


static void
agent_ordered(void *data, uint64_t id, order_rc_t rc)
{
    agent_t  *agent = data;

    jobs_ordered(&agent->jobs, id, rc);
}


static const swim_callbacks_t  agent_swim_callbacks = {
    .on_change = agent_member_changed,
    .on_conflict = agent_conflict,
    .on_drain = agent_drain_act,
    .on_restart = agent_child_restart,
    .on_switch = agent_handover_begin,
    .is_kept = agent_keep_is_done,
    .find_models = agent_segment_models,
    .on_skew = agent_skew,
    .on_group_skew = agent_group_skew,
    .on_ordered = agent_ordered
};


/* --- seeds */

static void
agent_seeds(void *data, const address_t *addresses, size_t n)
{
    agent_t  *agent = data;

    node_set_seeds(agent->node, addresses, n);
}


static int
agent_is_alone(void *data)
{
    agent_t  *agent = data;

    return swim_is_alone(node_swim(agent->node));
}


static uint64_t
agent_now_us(void *data)
{
    agent_t  *agent = data;

    return clock_mono_us(agent->clock);
}


static uint64_t
agent_wall_us(void *data)
{
    agent_t  *agent = data;

    return clock_wall_us(agent->clock);
}


static int
agent_inject(void *data, const char *id)
{
    agent_t  *agent = data;

    return node_inject_suspect(agent->node, id);
}


/* --- connections that find no descriptor */

static void
agent_starved(agent_t *agent, const char *where, int error)
{
    log_write(agent->log, LOG_WARN, "cannot accept connections at %s: %s, "
              "retrying", where, strerror(error));
}


static void
agent_gossip_starved(void *data, int error)
{
    agent_starved(data, "the gossip address", error);
}


static void
agent_control_starved(void *data, int error)
{
    agent_starved(data, "the control socket", error);
}


/* --- beginning and end */

static void
agent_start_timers(agent_t *agent)
{
    ev_timer_init(&agent->heartbeat, agent_heartbeat, 0., AGENT_HEARTBEAT_S);
    agent->heartbeat.data = agent;
    ev_timer_start(agent->loop, &agent->heartbeat);

    ev_prepare_init(&agent->flush, agent_flush);
    agent->flush.data = agent;
    ev_prepare_start(agent->loop, &agent->flush);
}


/*
 * Draws the epoch.  A disk that does not take it keeps no agent from starting.
 */
static int
agent_next_epoch(agent_t *agent, uint64_t *epoch, char *error)
{
    char        text[STATE_FILE_BYTES];
    uint64_t    ahead_us;
    epoch_rc_t  rc;

    rc = epoch_next(agent->settings->state_dir, agent->settings->id,
                    clock_wall_us(agent->clock), epoch, &ahead_us, error);

    if (rc == EPOCH_UNKEPT) {
        snprintf(text, sizeof(text), "%" PRIu64, *epoch);
        agent_keep_lacking(agent, AGENT_EPOCH, text, errno);
    }

    if (ahead_us != 0) {
        agent_skew(agent, agent->settings->id, NULL, ahead_us);
    }

    return rc == EPOCH_REFUSED ? -1 : 0;
}


static int
agent_create_node(agent_t *agent, char *error)
{
    uint64_t           epoch;
    swim_config_t      config;
    const settings_t  *settings;

    settings = agent->settings;

    if (agent_next_epoch(agent, &epoch, error) != 0) {
        return -1;
    }

    memset(&config, 0, sizeof(config));
    config.cluster = settings->cluster;
    config.id = settings->id;
    config.address = settings->advertised;
    config.grpc = settings->grpc_text;
    config.role = settings->role;
    config.weight = settings->weight;
    config.resume_group = settings->resume_group;
    config.epoch = epoch;
    config.period_us = settings->period_ms * 1000;
    config.ping_timeout_us = settings->ping_timeout_ms * 1000;
    config.suspect_timeout_us = settings->suspect_timeout_ms * 1000;
    config.indirect_probes = settings->indirect_probes;
    config.drain_kept = agent_drain_kept(agent);
    config.can_restart = settings->command != NULL;
    config.crypt = agent->crypt;
    config.callbacks = &agent_swim_callbacks;
    config.data = agent;

    if (getrandom(&config.random_seed, sizeof(config.random_seed), 0) == -1) {
        config.random_seed = epoch;
    }

    transport_udp_lose(agent->transport, settings->test_loss,
                       config.random_seed + 1);

    agent->node = node_create(&config, agent->transport, agent->clock);
    if (agent->node == NULL) {
        snprintf(error, AGENT_ERROR_BYTES, "out of memory");
        return -1;
    }

    publish_mark(agent->publish);
    agent_segment_restore(agent);

    return 0;
}


static int
agent_create_control(agent_t *agent, char *error)
{
    struct stat        st;
    command_env_t     *env;
    const settings_t  *settings;

    settings = agent->settings;
    agent->is_successor = lstat(settings->control_path, &st) == 0
                          && S_ISSOCK(st.st_mode);

    if (settings->control == NULL) {
        mkdir(SETTINGS_RUN_DIR, 0755);  /* if this fails, bind() fails and
                                           reports it */
    }

    env = &agent->env;
    env->id = settings->id;
    env->role = settings->role_name;
    env->cluster = settings->cluster;
    env->members_path = settings->members;
    env->started_us = clock_mono_us(agent->clock);
    env->uid = geteuid();
    env->now_us = agent_now_us;
    env->wall_us = agent_wall_us;
    env->show_roster = agent_facts_roster;
    env->show_traits = agent_facts_traits;
    env->show_status = agent_facts_status;
    env->show_models = agent_segment_models;
    env->on_report = agent_replica_report;
    env->jobs = &jobs_commands;
    env->jobs_data = &agent->jobs;
    env->on_leave = agent_leave;
    env->on_keys = agent_seal_command;
    env->on_inject = agent_inject;
    env->data = agent;
    agent_facts_files(agent);

    agent->control = control_create(agent->loop, settings->control_path, env,
                                    agent_replica_lost, error);

    if (agent->control == NULL) {
        return -1;
    }

    control_on_starved(agent->control, agent_control_starved, agent);

    return 0;
}


static void
agent_init_jobs(agent_t *agent)
{
    jobs_t  *jobs;

    jobs = &agent->jobs;
    jobs->id = agent->settings->id;
    jobs->role = agent->settings->role;
    jobs->has_keyring = agent->keyring != NULL;
    jobs->loop = agent->loop;
    jobs->log = agent->log;
    jobs->clock = agent->clock;
    jobs->node = agent->node;
    jobs->publish = agent->publish;
    jobs->conn = &agent->endpoint.conn;
    jobs_init(jobs);
}


static int
agent_create_resolve(agent_t *agent, char *error)
{
    char  reason[RESOLVE_ERROR_BYTES];

    if (agent->settings->join == NULL) {
        return 0;
    }

    agent->resolve = resolve_create(
        agent->loop, agent->settings->join,
        agent->settings->bind_address.ss.ss_family, agent_seeds,
        agent_is_alone, agent, reason);
    if (agent->resolve == NULL) {
        snprintf(error, AGENT_ERROR_BYTES, "--join: %s", reason);
        return -1;
    }

    return 0;
}


static int
agent_open_door(agent_t *agent, char *error)
{
    if (tls_endpoint_open(&agent->endpoint, &agent->settings->tls, agent->log,
                          error)
        != 0)
    {
        return -1;
    }

    agent->endpoint.conn.names = agent->settings->id;

    return 0;
}


/*
 * The parts that another process may hold come first: if one is held, nothing
 * is changed.
 */
static int
agent_create_parts(agent_t *agent, char *error)
{
    if (agent_seal_create(agent, error) != 0
        || agent_open_door(agent, error) != 0)
    {
        return -1;
    }

    agent->clock = clock_ev_create(agent->loop);
    if (agent->clock == NULL) {
        snprintf(error, AGENT_ERROR_BYTES, "out of memory");
        return -1;
    }

    agent->transport = transport_udp_create(agent->loop,
                                            &agent->settings->bind_address,
                                            error);
    if (agent->transport == NULL) {
        return -1;
    }

    transport_udp_on_starved(agent->transport, agent_gossip_starved, agent);

    if (agent_segment_create(agent, error) != 0
        || agent_keep_create(agent, error) != 0
        || agent_drain_create(agent, error) != 0
        || agent_create_node(agent, error) != 0)
    {
        return -1;
    }

    agent_init_jobs(agent);

    return agent_create_control(agent, error) != 0
           || agent_replica_watch(agent, error) != 0
           || agent_create_resolve(agent, error) != 0 ? -1 : 0;
}


agent_t *
agent_create(const settings_t *settings, log_t *log, char *error)
{
    agent_t  *agent;

    agent = calloc(1, sizeof(agent_t));
    if (agent == NULL) {
        snprintf(error, AGENT_ERROR_BYTES, "out of memory");
        return NULL;
    }

    agent->settings = settings;
    agent->log = log;
    agent->loop = ev_default_loop(0);
    agent_replica_init(agent);
    agent_segment_init(agent);
    agent_start_timers(agent);
    agent_life_init(agent);
    agent_handover_init(agent);

    if (agent_create_parts(agent, error) != 0) {
        agent_destroy(agent);
        return NULL;
    }

    return agent;
}


int
agent_run(agent_t *agent)
{
    log_write(agent->log, LOG_INFO,
              "serving, role %s, gossip %s, control \"%s\"",
              agent->settings->role_name, agent->settings->advertised,
              agent->settings->control_path);

    agent_segment_publish(agent);   /* READY promises that the segment is
                                       there */
    agent_life_begin(agent);
    ev_run(agent->loop, 0);

    if (agent->has_conflict) {
        return AGENT_CONFLICT;
    }

    agent_segment_publish(agent);
    log_write(agent->log, LOG_INFO, "left");

    return 0;
}


static void
agent_stop_watchers(agent_t *agent)
{
    ev_timer_stop(agent->loop, &agent->heartbeat);
    ev_prepare_stop(agent->loop, &agent->flush);
    agent_life_done(agent);
}


void
agent_destroy(agent_t *agent)
{
    agent_stop_watchers(agent);
    agent_keep_destroy(agent);

    if (agent->resolve != NULL) {
        resolve_destroy(agent->resolve);
    }

    agent_replica_done(agent);

    jobs_done(&agent->jobs);        /* followers of an update get its last
                                       line */

    if (agent->control != NULL) {
        control_destroy(agent->control);
    }

    agent_handover_done(agent);
    agent_drain_destroy(agent);

    if (agent->node != NULL) {
        node_destroy(agent->node);
    }

    agent_segment_destroy(agent);

    if (agent->transport != NULL) {
        transport_udp_destroy(agent->transport);
    }

    if (agent->clock != NULL) {
        clock_ev_destroy(agent->clock);
    }

    agent_seal_destroy(agent);
    tls_endpoint_close(&agent->endpoint);
    ev_loop_destroy(agent->loop);
    free(agent);
}
