
#include <string.h>

#include "control/command_inner.h"
#include "control/command_show.h"


/* Enough for streams to end, and for a standby to wake. */
#define COMMAND_WAIT_TIMEOUT_MS  60000

typedef enum {
    COMMAND_ALL = 0,        /* every user that may open the socket */
    COMMAND_OWNER           /* root and the agent's own user */
} command_right_t;

typedef struct {
    const char       *name;
    command_right_t   right;
    command_pt        answer;
} command_t;


json_t *
command_error(const char *code, const char *text)
{
    return json_pack("{s:b, s:s, s:s}", "ok", 0, "error", text, "code", code);
}


const char *
command_text(const json_t *request, const char *name)
{
    return json_string_value(json_object_get(request, name));
}


static json_t *
command_members(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    return json_pack("{s:b, s:o}", "ok", 1, "members",
                     command_show_members(env));
}


static json_t *
command_status(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    return command_show_status(env);
}


static json_t *
command_report(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    int                     is_first;
    report_t                report;
    const char             *reason;
    const command_error_t  *error;

    if (report_decode(&report, request, &reason) != 0) {
        return json_pack("{s:b, s:o, s:s}", "ok", 0, "error",
                         json_sprintf("report: %s", reason),
                         "code", "bad_report");
    }

    is_first = !peer->is_reporter;
    error = env->on_report(env->data, peer, &report);

    if (error != NULL) {
        return command_error(error->code, error->text);
    }

    return is_first ? json_pack("{s:b}", "ok", 1) : NULL;
}


/* The answer is the present state, as an event; changes follow as they come. */
static json_t *
command_listen(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    peer->wants_events = 1;
    peer->waits_for_end = 1;

    return json_pack("{s:s, s:I, s:o}", "event", "members",
                     "time", (json_int_t) (env->wall_us(env->data) / 1000),
                     "members", command_show_members(env));
}


static json_t *
command_leave(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    peer->waits_for_end = 1;
    env->on_leave(env->data);

    return NULL;
}


/* The request's id; NULL: it has none. */
static const char *
command_id(const json_t *request)
{
    const char  *id;

    id = command_text(request, "id");

    return id != NULL && llmgw_name_is_valid(id, strlen(id)) ? id : NULL;
}


json_t *
command_busy(void)
{
    return command_error("busy", "a command of this connection still runs");
}


int
command_number(const json_t *request, const char *name, json_int_t least,
    json_int_t most, json_int_t otherwise, int64_t *number)
{
    json_t  *value;

    value = json_object_get(request, name);

    if (value == NULL) {
        *number = otherwise;
        return 1;
    }

    *number = json_integer_value(value);

    return json_is_integer(value) && *number >= least && *number <= most;
}


static int
command_timeout(const json_t *request, int64_t *timeout_ms)
{
    return command_number(request, "timeout_ms", 0, COMMAND_MAX_TIMEOUT_MS,
                          COMMAND_WAIT_TIMEOUT_MS, timeout_ms);
}


static json_t *
command_drain(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    json_t      *force;
    int64_t      timeout_ms;
    const char  *id;

    id = command_id(request);
    force = json_object_get(request, "force");

    if (id == NULL) {
        return command_error("bad_request", "\"id\" is missing or wrong");
    }

    if (!command_timeout(request, &timeout_ms)) {
        return command_error("bad_request", "\"timeout_ms\" is wrong");
    }

    if (force != NULL && !json_is_boolean(force)) {
        return command_error("bad_request", "\"force\" is wrong");
    }

    if (peer->job != NULL) {
        return command_busy();
    }

    env->jobs->on_drain(env->jobs_data, peer, id, timeout_ms,
                        json_is_true(force));

    return NULL;
}


static json_t *
command_undrain(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    const char  *id;

    id = command_id(request);

    if (id == NULL) {
        return command_error("bad_request", "\"id\" is missing or wrong");
    }

    if (peer->job != NULL) {
        return command_busy();
    }

    env->jobs->on_undrain(env->jobs_data, peer, id);

    return NULL;
}


static json_t *
command_group_switch(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    int64_t      timeout_ms;
    const char  *group;

    group = command_text(request, "group");

    if (group == NULL || !llmgw_group_is_valid(group, strlen(group))) {
        return command_error("bad_request", "\"group\" is missing or wrong");
    }

    if (!command_timeout(request, &timeout_ms)) {
        return command_error("bad_request", "\"timeout_ms\" is wrong");
    }

    if (peer->job != NULL) {
        return command_busy();
    }

    env->jobs->on_switch(env->jobs_data, peer, group, timeout_ms);

    return NULL;
}


static json_t *
command_inject_suspect(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    const char  *id;

    id = command_text(request, "id");

    if (id == NULL) {
        return command_error("bad_request", "\"id\" is missing");
    }

    if (env->on_inject(env->data, id) != 0) {
        return command_error("not_found", "no such member is ALIVE");
    }

    return json_pack("{s:b}", "ok", 1);
}


static const command_t  commands[] = {
    { "members",        COMMAND_ALL,   command_members },
    { "status",         COMMAND_ALL,   command_status },
    { "report",         COMMAND_ALL,   command_report },
    { "events",         COMMAND_ALL,   command_listen },
    { "drain",          COMMAND_OWNER, command_drain },
    { "undrain",        COMMAND_OWNER, command_undrain },
    { "group_switch",   COMMAND_OWNER, command_group_switch },
    { "rolling_update", COMMAND_OWNER, command_rolling_update },
    { "update_abort",   COMMAND_OWNER, command_update_abort },
    { "leave",          COMMAND_OWNER, command_leave },
    { "keyring_list",   COMMAND_ALL,   command_keyring_list },
    { "keyring_add",    COMMAND_OWNER, command_keyring_add },
    { "keyring_use",    COMMAND_OWNER, command_keyring_use },
    { "keyring_remove", COMMAND_OWNER, command_keyring_remove },
    { "inject_suspect", COMMAND_OWNER, command_inject_suspect }
};

#define COMMAND_N  (sizeof(commands) / sizeof(commands[0]))


static int
command_is_allowed(const command_env_t *env, const command_peer_t *peer,
    const command_t *command)
{
    return command->right == COMMAND_ALL || peer->uid == 0
           || peer->uid == env->uid;
}


static json_t *
command_dispatch(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    size_t       i;
    const char  *name;

    name = command_text(request, "cmd");

    if (name == NULL) {
        return command_error("bad_request", "no \"cmd\" in the request");
    }

    for (i = 0; i < COMMAND_N; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            break;
        }
    }

    if (i == COMMAND_N) {
        return command_error("unknown_command", "there is no such command");
    }

    if (!command_is_allowed(env, peer, &commands[i])) {
        return command_error("permission_denied",
                             "only root and the agent's own user may do this");
    }

    return commands[i].answer(env, peer, request);
}


json_t *
command_answer(const command_env_t *env, command_peer_t *peer,
    const char *line, size_t len)
{
    json_t  *request, *answer;

    request = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);

    if (!json_is_object(request)) {
        json_decref(request);
        return command_error("bad_json", "the line is no JSON object");
    }

    answer = command_dispatch(env, peer, request);
    json_decref(request);

    return answer;
}
