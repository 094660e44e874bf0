
/* Members and status as JSON. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control/command_show.h"


/*
 * The state for display.  What a replica's own agent knows of it is more
 * certain than what others think of that agent, so DOWN and STOPPED come first.
 */
const char *
command_show_state(const llmgw_member_t *member, const char **cause)
{
    *cause = NULL;

    if (member->service == LLMGW_SERVICE_DOWN) {
        *cause = "down";
        return llmgw_liveness_name(LLMGW_LIVENESS_DEAD);
    }

    if (member->service == LLMGW_SERVICE_STOPPED) {
        return llmgw_liveness_name(LLMGW_LIVENESS_LEFT);
    }

    if (member->liveness == LLMGW_LIVENESS_DEAD) {
        *cause = "timeout";
    }

    return llmgw_liveness_name(member->liveness);
}


json_t *
command_show_models(const command_env_t *env, const llmgw_member_t *m)
{
    size_t       at, bytes;
    json_t      *shown;
    const char  *names;

    shown = json_array();
    names = m->models ? env->show_models(env->data, m->models, &bytes) : NULL;

    for (at = 0; names != NULL && at < bytes; at += strlen(names + at) + 1) {
        json_array_append_new(shown, json_string(names + at));
    }

    return shown;
}


static void
command_show_group(json_t *shown, const llmgw_member_t *m)
{
    char  lock[17];

    if (m->group[0] == '\0') {
        return;
    }

    snprintf(lock, sizeof(lock), "%016" PRIx64, m->group_lock);

    json_object_set_new(shown, "group", json_string(m->group));
    json_object_set_new(shown, "group_state",
                        json_string(llmgw_group_state_name(m->group_state)));
    json_object_set_new(shown, "group_epoch", json_integer(m->group_epoch));
    json_object_set_new(shown, "group_lock", json_string(lock));
}


/* Adds what the replica reports of its engine. */
static void
command_show_engine(const command_env_t *env, json_t *shown,
    const llmgw_member_t *m, const llmgw_engine_load_t *engine)
{
    if (m->models != 0 && !m->is_shard) {
        json_object_set_new(shown, "models", command_show_models(env, m));
    }

    if (m->models_cut != 0) {
        json_object_set_new(shown, "models_cut", json_integer(m->models_cut));
    }

    if (engine->reported & LLMGW_ENGINE_RUNNING) {
        json_object_set_new(shown, "running", json_integer(engine->running));
    }

    if (engine->reported & LLMGW_ENGINE_WAITING) {
        json_object_set_new(shown, "waiting", json_integer(engine->waiting));
    }

    if (engine->reported & LLMGW_ENGINE_KV) {
        json_object_set_new(shown, "kv_permille",
                            json_integer(engine->kv_permille));
    }

    if (engine->reported & LLMGW_ENGINE_FREE_BLOCKS) {
        json_object_set_new(shown, "kv_free_blocks",
                            json_integer(engine->kv_free_blocks));
    }

    if (engine->reported & LLMGW_ENGINE_HITS) {
        json_object_set_new(shown, "hit_permille",
                            json_integer(engine->hit_permille));
    }
}


json_t *
command_show_member(const command_env_t *env, const llmgw_member_t *m,
    const llmgw_member_load_t *load)
{
    json_t      *shown;
    const char  *state, *cause;

    state = command_show_state(m, &cause);

    shown = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:b, s:s, s:I, s:I, s:I,"
        " s:I}",
        "id", m->id, "address", m->address, "grpc", m->grpc,
        "role", llmgw_role_name(llmgw_member_role(m)),
        "state", state, "service", llmgw_service_name(m->service),
        "epoch", (json_int_t) m->epoch,
        "incarnation", (json_int_t) m->incarnation,
        "draining", m->draining,
        "model_version", m->model_version,
        "active_requests", (json_int_t) load->active_requests,
        "max_capacity", (json_int_t) m->max_capacity,
        "replica_start", (json_int_t) m->replica_start_ms,
        "weight", (json_int_t) m->weight);

    if (cause != NULL) {
        json_object_set_new(shown, "cause", json_string(cause));
    }

    if (!m->is_shard && m->resume_group[0] != '\0') {
        json_object_set_new(shown, "resume_group",
                            json_string(m->resume_group));
    }

    if (m->drain_owner[0] != '\0') {
        json_object_set_new(shown, "drain_owner",
                            json_string(m->drain_owner));
    }

    command_show_group(shown, m);
    command_show_shard(env, shown, m);
    command_show_engine(env, shown, m, &load->engine);

    return shown;
}


/* Adds what is known of a member and is not in the segment. */
static void
command_show_traits(json_t *shown, const command_traits_t *traits)
{
    if (traits->can_restart) {
        json_object_set_new(shown, "restartable", json_true());
    }

    if (traits->update[0] != '\0') {
        json_object_set_new(shown, "update", json_string(traits->update));
    }

    if (traits->detail[0] != '\0') {
        json_object_set_new(shown, "detail", json_string(traits->detail));
    }

    if (traits->pings_lost != 0) {
        json_object_set_new(shown, "pings_lost",
                            json_integer(traits->pings_lost));
    }

    if (traits->heard_ms >= 0) {
        json_object_set_new(shown, "heard_ms", json_integer(traits->heard_ms));
    }

    if (traits->has_clock) {
        json_object_set_new(shown, "clock_ahead_ms",
                            json_integer(traits->clock_ahead_ms));
    }
}


json_t *
command_show_members(const command_env_t *env)
{
    size_t             i;
    json_t            *list, *shown;
    llmgw_roster_t     roster;
    command_traits_t   traits;

    list = json_array();
    roster = env->show_roster(env->data);

    for (i = 0; i < roster.n; i++) {
        shown = command_show_member(env, &roster.members[i], &roster.loads[i]);
        env->show_traits(env->data, roster.members[i].id, &traits);
        command_show_traits(shown, &traits);
        json_array_append_new(list, shown);
    }

    return list;
}


static json_t *
command_show_counters(const swim_counters_t *counters)
{
    int      rc;
    json_t  *shown, *dropped;

    shown = json_object();
    dropped = json_object();

#define X(name, help)                                                         \
    json_object_set_new(shown, #name, json_integer(counters->name));
    SWIM_COUNTERS(X)
#undef X

    for (rc = PACKET_DONE + 1; rc < PACKET_NRC; rc++) {
        json_object_set_new(dropped, packet_rc_name(rc),
                            json_integer(counters->dropped[rc]));
    }

    json_object_set_new(shown, "dropped", dropped);

    return shown;
}


/* How many members there are of each liveness. */
static json_t *
command_show_counts(const command_env_t *env)
{
    size_t           i;
    unsigned         liveness;
    json_t          *shown;
    json_int_t       counts[LLMGW_LIVENESS_LEFT + 1] = { 0 };
    llmgw_roster_t   roster;

    roster = env->show_roster(env->data);

    for (i = 0; i < roster.n; i++) {
        counts[roster.members[i].liveness]++;
    }

    shown = json_object();

    for (liveness = 0; liveness <= LLMGW_LIVENESS_LEFT; liveness++) {
        json_object_set_new(shown, llmgw_liveness_name(liveness),
                            json_integer(counts[liveness]));
    }

    return shown;
}


/* What is not written, and why; empty: everything is written. */
static json_t *
command_show_troubles(const command_status_t *status)
{
    json_t  *shown;

    shown = json_object();

    if (status->segment_trouble != NULL) {
        json_object_set_new(shown, "segment",
                            json_string(status->segment_trouble));
    }

    if (status->state_trouble != NULL) {
        json_object_set_new(shown, "state",
                            json_string(status->state_trouble));
    }

    return shown;
}


static json_t *
command_show_files(const command_status_t *status)
{
    json_t                *shown;
    const command_file_t  *file;

    shown = json_object();

    for (file = status->files; file != NULL && file->option != NULL; file++) {
        if (file->path != NULL) {
            json_object_set_new(shown, file->option, json_string(file->path));
        }
    }

    return shown;
}


static json_t *
command_show_drop(const command_env_t *env, const command_status_t *status)
{
    uint64_t  ago_us;

    if (status->drop_reason == NULL) {
        return json_null();
    }

    ago_us = env->now_us(env->data) - status->drop_us;

    return json_pack("{s:s, s:s, s:I}", "reason", status->drop_reason,
                     "from", status->drop_from,
                     "ms", (json_int_t) (ago_us / 1000));
}


json_t *
command_show_status(const command_env_t *env)
{
    json_t                *shown;
    uint64_t               uptime_us;
    command_status_t       status;
    const llmgw_member_t  *own;

    env->show_status(env->data, &status);
    own = status.own;
    uptime_us = env->now_us(env->data) - env->started_us;

    shown = json_pack(
        "{s:b, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:I, s:I, s:I,"
        " s:I, s:I, s:I, s:s?, s:s?, s:o, s:o, s:o, s:i, s:o, s:o, s:o}",
        "ok", 1, "id", env->id, "role", env->role, "cluster", env->cluster,
        "version", LLMGW_VERSION, "address", own->address, "grpc", own->grpc,
        "service", llmgw_service_name(own->service),
        "joined", status.is_joined,
        "isolated", status.is_isolated,
        "epoch", (json_int_t) own->epoch,
        "incarnation", (json_int_t) own->incarnation,
        "uptime_ms", (json_int_t) (uptime_us / 1000),
        "backlog", (json_int_t) status.backlog,
        "local_health", (json_int_t) status.local_health,
        "doubt", (json_int_t) status.local_health,  /* the former name of
                                                       local_health */
        "segment", env->members_path,
        "key", status.key,
        "troubles", command_show_troubles(&status),
        "update", env->jobs->on_show_update(env->jobs_data),
        "last_drop", command_show_drop(env, &status),
        "pid", (int) getpid(),
        "files", command_show_files(&status),
        "members", command_show_counts(env),
        "counters", command_show_counters(status.counters));

    if (status.pipelines != NULL) {
        json_object_set(shown, "pipelines", status.pipelines);
    }

    if (status.callers != NULL) {
        json_object_set(shown, "callers", status.callers);
    }

    command_show_group(shown, own);

    if (status.is_lock_away) {
        json_object_set_new(shown, "group_lock_away", json_true());
    }

    command_show_shard(env, shown, own);
    command_show_engine(env, shown, own, &status.load->engine);

    return shown;
}
