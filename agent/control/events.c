
/*
 * Changes as events: one event, with the old and the new value, for each
 * changed field that a listener may wait for.
 */

#include <string.h>

#include "control/command.h"
#include "control/command_show.h"


json_t *
command_event(const char *name, const char *id, uint64_t wall_us)
{
    return json_pack("{s:s, s:I, s:s}", "event", name,
                     "time", (json_int_t) (wall_us / 1000), "id", id);
}


static json_t *
command_event_words(const char *name, const llmgw_member_t *member,
    uint64_t wall_us, const char *from, const char *to)
{
    json_t  *event;

    event = command_event(name, member->id, wall_us);
    json_object_set_new(event, "from", json_string(from));
    json_object_set_new(event, "to", json_string(to));

    return event;
}


static void
command_add_words(json_t *events, const char *name,
    const llmgw_member_t *member, uint64_t wall_us, const char *from,
    const char *to)
{
    if (strcmp(from, to) != 0) {
        json_array_append_new(events, command_event_words(name, member,
                                                          wall_us, from, to));
    }
}


static void
command_add_numbers(json_t *events, const char *name,
    const llmgw_member_t *member, uint64_t wall_us, uint64_t from,
    uint64_t to)
{
    json_t  *event;

    if (from == to) {
        return;
    }

    event = command_event(name, member->id, wall_us);
    json_object_set_new(event, "from", json_integer(from));
    json_object_set_new(event, "to", json_integer(to));
    json_array_append_new(events, event);
}


static void
command_add_state(json_t *events, const llmgw_member_t *before,
    const llmgw_member_t *after, uint64_t wall_us)
{
    json_t      *event;
    const char  *from, *to, *was, *cause;

    from = command_show_state(before, &was);
    to = command_show_state(after, &cause);

    if (strcmp(from, to) == 0 && was == cause) {
        return;
    }

    event = command_event_words("state", after, wall_us, from, to);

    if (cause != NULL) {
        json_object_set_new(event, "cause", json_string(cause));
    }

    json_array_append_new(events, event);
}


static void
command_add_draining(json_t *events, const llmgw_member_t *before,
    const llmgw_member_t *after, uint64_t wall_us)
{
    json_t  *event;

    if (before->draining == after->draining
        && strcmp(before->drain_owner, after->drain_owner) == 0)
    {
        return;
    }

    event = command_event("draining", after->id, wall_us);
    json_object_set_new(event, "to", json_boolean(after->draining));
    json_object_set_new(event, "owner", json_string(after->drain_owner));
    json_array_append_new(events, event);
}


static void
command_add_group(json_t *events, const llmgw_member_t *before,
    const llmgw_member_t *after, uint64_t wall_us)
{
    json_t  *event;

    if (llmgw_member_groups_are_alike(before, after)) {
        return;
    }

    event = command_event_words("group", after, wall_us,
                                llmgw_group_state_name(before->group_state),
                                llmgw_group_state_name(after->group_state));
    json_object_set_new(event, "group", json_string(after->group));
    json_object_set_new(event, "epoch", json_integer(after->group_epoch));
    json_array_append_new(events, event);
}


static void
command_add_models(const command_env_t *env, json_t *events,
    const llmgw_member_t *before, const llmgw_member_t *after,
    uint64_t wall_us)
{
    json_t  *event;

    if (before->models == after->models || after->is_shard) {
        return;
    }

    event = command_event("models", after->id, wall_us);
    json_object_set_new(event, "from", command_show_models(env, before));
    json_object_set_new(event, "to", command_show_models(env, after));
    json_array_append_new(events, event);
}


static void
command_add_came(const command_env_t *env, json_t *events,
    const llmgw_member_t *member, uint64_t wall_us)
{
    json_t                     *event;
    const llmgw_member_load_t   unknown = { 0 };

    event = command_event("joined", member->id, wall_us);
    json_object_set_new(event, "member",
                        command_show_member(env, member, &unknown));
    json_array_append_new(events, event);
}


static void
command_add_changes(const command_env_t *env, json_t *events,
    const llmgw_member_t *a, const llmgw_member_t *b, uint64_t wall_us)
{
    command_add_numbers(events, "restarted", b, wall_us, a->epoch, b->epoch);
    command_add_words(events, "address", b, wall_us, a->address, b->address);
    command_add_words(events, "grpc", b, wall_us, a->grpc, b->grpc);
    command_add_state(events, a, b, wall_us);
    command_add_words(events, "service", b, wall_us,
                      llmgw_service_name(a->service),
                      llmgw_service_name(b->service));
    command_add_group(events, a, b, wall_us);
    command_add_draining(events, a, b, wall_us);
    command_add_words(events, "version", b, wall_us, a->model_version,
                      b->model_version);
    command_add_models(env, events, a, b, wall_us);
    command_add_numbers(events, "capacity", b, wall_us, a->max_capacity,
                        b->max_capacity);
    command_add_numbers(events, "weight", b, wall_us, a->weight, b->weight);
}


json_t *
command_events(const command_env_t *env, const llmgw_member_t *before,
    const llmgw_member_t *after, uint64_t wall_us)
{
    json_t  *events;

    events = json_array();

    if (before == NULL) {
        command_add_came(env, events, after, wall_us);

    } else if (after == NULL) {
        json_array_append_new(events, command_event("forgotten", before->id,
                                                    wall_us));
    } else {
        command_add_changes(env, events, before, after, wall_us);
    }

    if (after != NULL) {
        command_add_shard(env, events, before, after, wall_us);
    }

    return events;
}
