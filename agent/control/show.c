
/* Members and status as JSON. */

#include "control/show.h"


/*
 * What the replica's own agent knows of it is surer than what others think of
 * the agent, so DOWN and STOPPED come first.
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
command_show_member(const llmgw_member_t *m, const llmgw_member_load_t *load)
{
    json_t      *shown;
    const char  *state, *cause;

    state = command_show_state(m, &cause);

    shown = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:b, s:s, s:I, s:I, s:I,"
        " s:I}",
        "id", m->id, "address", m->address, "grpc", m->grpc,
        "role", m->role == LLMGW_ROLE_GATEWAY ? "gateway" : "replica",
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

    if (m->drain_owner[0] != '\0') {
        json_object_set_new(shown, "drain_owner",
                            json_string(m->drain_owner));
    }

    return shown;
}


/* What is not in the segment, as far as it has come. */
static void
command_show_traits(json_t *shown, const member_t *member)
{
    if (member == NULL) {
        return;
    }

    if (member->traits.can_restart) {
        json_object_set_new(shown, "restartable", json_true());
    }

    if (member->traits.update[0] != '\0') {
        json_object_set_new(shown, "update",
                            json_string(member->traits.update));
    }
}


json_t *
command_show_members(const command_env_t *env)
{
    size_t                      i, n;
    json_t                     *list, *shown;
    const llmgw_member_t       *members;
    const llmgw_member_load_t  *loads;

    list = json_array();
    members = publish_members(env->publish, &n);
    loads = publish_loads(env->publish);

    for (i = 0; i < n; i++) {
        shown = command_show_member(&members[i], &loads[i]);
        command_show_traits(shown, table_find(swim_table(env->swim),
                                              members[i].id));
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
    size_t                 i, n;
    unsigned               liveness;
    json_t                *shown;
    json_int_t             counts[LLMGW_LIVENESS_LEFT + 1] = { 0 };
    const llmgw_member_t  *members;

    members = publish_members(env->publish, &n);

    for (i = 0; i < n; i++) {
        counts[members[i].liveness]++;
    }

    shown = json_object();

    for (liveness = 0; liveness <= LLMGW_LIVENESS_LEFT; liveness++) {
        json_object_set_new(shown, llmgw_liveness_name(liveness),
                            json_integer(counts[liveness]));
    }

    return shown;
}


/* What gossip is sealed with; JSON's null: nothing. */
static json_t *
command_show_key(const keyring_t *keyring)
{
    char  id[KEYRING_ID_TEXT_BYTES];

    if (keyring == NULL) {
        return json_null();
    }

    keyring_id_text(keyring, keyring_primary(keyring), id);

    return json_string(id);
}


json_t *
command_show_status(const command_env_t *env)
{
    uint64_t               uptime_us;
    const llmgw_member_t  *own;

    own = &swim_own(env->swim)->facts;
    uptime_us = env->now_us(env->data) - env->started_us;

    return json_pack(
        "{s:b, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:I, s:I, s:I,"
        " s:I, s:I, s:s?, s:o, s:o, s:o, s:o}",
        "ok", 1, "id", env->id, "role", env->role, "cluster", env->cluster,
        "version", LLMGW_VERSION, "address", own->address, "grpc", own->grpc,
        "service", llmgw_service_name(own->service),
        "joined", !swim_is_alone(env->swim),
        "isolated", swim_is_isolated(env->swim),
        "epoch", (json_int_t) own->epoch,
        "incarnation", (json_int_t) own->incarnation,
        "uptime_ms", (json_int_t) (uptime_us / 1000),
        "backlog", (json_int_t) swim_backlog(env->swim),
        "doubt", (json_int_t) swim_doubt(env->swim),
        "segment", env->members_path,
        "key", command_show_key(env->keyring),
        "update", env->on_show_update(env->data),
        "members", command_show_counts(env),
        "counters", command_show_counters(swim_counters(env->swim)));
}
