
/*
 * A rolling update as a request: its fields are checked here; the driver
 * decides whether it can be done (jobs/update_request.c).
 */

#include <stdlib.h>
#include <string.h>

#include "control/command_inner.h"


#define COMMAND_UPDATE_TIMEOUT_MS  60000


static json_t *
command_update_wrong(const char *name)
{
    return json_pack("{s:b, s:o, s:s}", "ok", 0, "error",
                     json_sprintf("\"%s\" is missing or wrong", name),
                     "code", "bad_request");
}


static int
command_is_name(const char *text)
{
    return text != NULL && llmgw_name_is_valid(text, strlen(text));
}


/*
 * A text of the request.  NULL: the field is missing; *is_wrong is set unless
 * it is a string that is not empty.
 */
static const char *
command_update_text(const json_t *request, const char *name, int *is_wrong)
{
    json_t      *value;
    const char  *text;

    value = json_object_get(request, name);
    text = json_string_value(value);
    *is_wrong |= value != NULL && (text == NULL || text[0] == '\0');

    return text;
}


/*
 * Reads the list of ids.  -1: it is no list of ids.  ids points to the
 * request's own strings.
 */
static int
command_update_ids(const json_t *request, command_update_t *update)
{
    size_t   i;
    json_t  *list, *id;

    list = json_object_get(request, "members");

    if (list == NULL) {
        return 0;
    }

    update->nids = json_array_size(list);

    if (update->nids == 0) {
        return -1;
    }

    update->ids = calloc(update->nids, sizeof(char *));
    if (update->ids == NULL) {
        return -1;
    }

    json_array_foreach(list, i, id) {
        if (!command_is_name(json_string_value(id))) {
            return -1;
        }

        update->ids[i] = json_string_value(id);
    }

    return 0;
}


/* NULL: all fields are valid; otherwise the name of the one that is not. */
static const char *
command_update_decode(const json_t *request, command_update_t *update)
{
    int      is_wrong;
    json_t  *flag;

    is_wrong = 0;
    update->to = command_text(request, "to");
    update->stop = command_update_text(request, "stop", &is_wrong);

    if (!command_is_name(update->to)) {
        return "to";
    }

    /* a replica would be stopped, and never started */
    if (is_wrong || (update->stop != NULL
                     && json_object_get(request, "start") == NULL))
    {
        return "stop";
    }

    update->start = command_update_text(request, "start", &is_wrong);

    if (is_wrong) {
        return "start";
    }

    flag = json_object_get(request, "dry_run");
    update->is_dry = json_is_true(flag);

    if (flag != NULL && !json_is_boolean(flag)) {
        return "dry_run";
    }

    return command_update_ids(request, update) == 0 ? NULL : "members";
}


static const char *
command_update_decode_numbers(const json_t *request, command_update_t *update)
{
    size_t  i;

    const struct {
        const char  *name;
        json_int_t   least;
        json_int_t   most;
        json_int_t   otherwise;
        int64_t     *number;
    } fields[] = {
        { "drain_timeout_ms", 0, COMMAND_MAX_TIMEOUT_MS,
          COMMAND_UPDATE_TIMEOUT_MS, &update->drain_timeout_ms },
        { "rejoin_timeout_ms", 1, COMMAND_MAX_TIMEOUT_MS,
          COMMAND_UPDATE_TIMEOUT_MS, &update->rejoin_timeout_ms },
        { "max_unavailable", 1, COMMAND_MAX_MEMBERS, 1,
          &update->max_unavailable },
        { "min_available", 0, COMMAND_MAX_MEMBERS, -1,
          &update->min_available }
    };

    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (!command_number(request, fields[i].name, fields[i].least,
                            fields[i].most, fields[i].otherwise,
                            fields[i].number))
        {
            return fields[i].name;
        }
    }

    return NULL;
}


json_t *
command_rolling_update(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    json_t            *answer;
    const char        *wrong;
    command_update_t   update;

    if (peer->job != NULL) {
        return command_busy();
    }

    memset(&update, 0, sizeof(update));
    wrong = command_update_decode(request, &update);

    if (wrong == NULL) {
        wrong = command_update_decode_numbers(request, &update);
    }

    answer = wrong ? command_update_wrong(wrong)
                   : env->jobs->on_update(env->jobs_data, peer, &update);
    free(update.ids);

    return answer;
}


json_t *
command_update_abort(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    return peer->job != NULL ? command_busy()
                             : env->jobs->on_abort(env->jobs_data, peer);
}
