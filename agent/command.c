
#include <string.h>

#include "command.h"
#include "command_show.h"


typedef json_t *(*command_pt)(const command_env_t *env, command_peer_t *peer,
    const json_t *request);

typedef struct {
    const char  *name;
    command_pt   answer;
} command_t;


static json_t *
command_error(const char *code, const char *text)
{
    return json_pack("{s:b, s:s, s:s}", "ok", 0, "error", text, "code", code);
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
    const char             *field;
    const command_error_t  *error;

    if (report_decode(&report, request, &field) != 0) {
        return json_pack("{s:b, s:o, s:s}", "ok", 0, "error",
                         json_sprintf("report: \"%s\" is missing or wrong",
                                      field),
                         "code", "bad_report");
    }

    is_first = !peer->is_reporter;
    error = env->on_report(env->data, peer, &report);

    if (error != NULL) {
        return command_error(error->code, error->text);
    }

    return is_first ? json_pack("{s:b}", "ok", 1) : NULL;
}


static const command_t  commands[] = {
    { "members", command_members },
    { "status",  command_status },
    { "report",  command_report }
};

#define COMMAND_N  (sizeof(commands) / sizeof(commands[0]))


static json_t *
command_dispatch(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    size_t       i;
    const char  *name;

    name = json_string_value(json_object_get(request, "cmd"));

    if (name == NULL) {
        return command_error("bad_request", "no \"cmd\" in the request");
    }

    for (i = 0; i < COMMAND_N; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return commands[i].answer(env, peer, request);
        }
    }

    return command_error("unknown_command", "there is no such command");
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
