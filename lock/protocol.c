
#include <stdio.h>
#include <string.h>

#include "common/duration.h"
#include "common/service/service.h"
#include "lock/protocol.h"


#define PROTOCOL_NONCE_CHARS  (MACHINE_NONCE_BYTES - 1)

typedef const char *(*protocol_decode_pt)(protocol_command_t *command,
    json_t *json, char *error);


static const char *
protocol_wrong(char *error, const char *reason, const char *what)
{
    snprintf(error, PROTOCOL_ERROR_BYTES, "%s", what);

    return reason;
}


static int
protocol_is_nonce(const char *text)
{
    return strlen(text) == PROTOCOL_NONCE_CHARS
           && strspn(text, "0123456789abcdef") == PROTOCOL_NONCE_CHARS;
}


static const char *
protocol_claim_numbers(machine_claim_t *claim, json_t *json, char *error)
{
    claim->waking_timeout_ms = DURATION_MAX_MS;

    if (service_number(json, "last_epoch", INT64_MAX, &claim->last_epoch) != 0
        || service_number(json, "epoch", INT64_MAX, &claim->epoch) != 0)
    {
        return protocol_wrong(error, "bad_epoch", "last_epoch and epoch are "
                              "integers from 0, of microseconds");
    }

    if (service_number(json, "waking_timeout_ms", DURATION_MAX_MS,
                       &claim->waking_timeout_ms)
        != 0)
    {
        return protocol_wrong(error, "bad_line", "waking_timeout_ms is an "
                              "integer from 0, at most a year");
    }

    return NULL;
}


static const char *
protocol_acquire(protocol_command_t *command, json_t *json, char *error)
{
    const char       *group, *engine, *nonce;
    machine_claim_t  *claim;

    claim = &command->claim;
    group = service_text(json, "group");
    engine = service_text(json, "engine");
    nonce = service_text(json, "nonce");

    if (!llmgw_group_is_valid(group, strlen(group))) {
        return protocol_wrong(error, "bad_group", "group is 1 to 31 of "
                              "A-Z a-z 0-9 . _ - and does not begin with a "
                              "dot");
    }

    if (!llmgw_name_is_valid(engine, strlen(engine))) {
        return protocol_wrong(error, "bad_engine", "engine is the id of a "
                              "replica, 1 to 63 of A-Z a-z 0-9 . _ -");
    }

    if (!protocol_is_nonce(nonce)) {
        return protocol_wrong(error, "bad_nonce",
                              "nonce is 16 hex digits in lower case");
    }

    strcpy(claim->group, group);
    strcpy(claim->engine, engine);
    strcpy(claim->nonce, nonce);

    return protocol_claim_numbers(claim, json, error);
}


static const char *
protocol_take(protocol_command_t *command, json_t *json, char *error)
{
    return service_number(json, "epoch", INT64_MAX, &command->epoch) == 0
           && command->epoch != 0 ? NULL
           : protocol_wrong(error, "bad_epoch", "take names the epoch that "
                            "was offered");
}


static const char *
protocol_worker(protocol_command_t *command, json_t *json, char *error)
{
    return service_number(json, "pid", INT64_MAX, &command->pid) == 0
           && command->pid != 0 ? NULL
           : protocol_wrong(error, "bad_line", "worker names its pid");
}


static const char *
protocol_pong(protocol_command_t *command, json_t *json, char *error)
{
    const char           *name;
    llmgw_group_state_t   state;

    name = service_text(json, "state");

    for (state = LLMGW_GROUP_ACTIVE; state > LLMGW_GROUP_NONE; state--) {
        if (strcmp(name, llmgw_group_state_name(state)) == 0) {
            break;
        }
    }

    if (state == LLMGW_GROUP_NONE) {
        return protocol_wrong(error, "bad_line", "state is init, standby, "
                              "waking or active");
    }

    command->state = state;

    return service_number(json, "seq", INT64_MAX, &command->seq) == 0
           && service_number(json, "progress", INT64_MAX, &command->progress)
              == 0
           && service_number(json, "streams", INT64_MAX, &command->streams)
              == 0 ? NULL
           : protocol_wrong(error, "bad_line", "seq, progress and streams are "
                            "integers from 0");
}


static const char *
protocol_ping(protocol_command_t *command, json_t *json, char *error)
{
    return service_number(json, "seq", INT64_MAX, &command->seq) == 0 ? NULL
           : protocol_wrong(error, "bad_line", "seq is an integer from 0");
}


static const struct {
    const char          *name;
    protocol_verb_t      verb;
    protocol_decode_pt   decode;        /* NULL: it has no fields */
} protocol_verbs[] = {
    { "acquire",  PROTOCOL_ACQUIRE,  protocol_acquire },
    { "take",     PROTOCOL_TAKE,     protocol_take },
    { "worker",   PROTOCOL_WORKER,   protocol_worker },
    { "pong",     PROTOCOL_PONG,     protocol_pong },
    { "ping",     PROTOCOL_PING,     protocol_ping },
    { "release",  PROTOCOL_RELEASE,  NULL },
    { "status",   PROTOCOL_STATUS,   NULL }
};

#define PROTOCOL_NVERBS  (sizeof(protocol_verbs) / sizeof(protocol_verbs[0]))


static const char *
protocol_decode_json(protocol_command_t *command, json_t *json, char *error)
{
    size_t       i;
    const char  *verb;

    verb = service_text(json, "cmd");

    for (i = 0; i < PROTOCOL_NVERBS; i++) {
        if (strcmp(verb, protocol_verbs[i].name) == 0) {
            command->verb = protocol_verbs[i].verb;

            return protocol_verbs[i].decode != NULL
                   ? protocol_verbs[i].decode(command, json, error) : NULL;
        }
    }

    return protocol_wrong(error, "bad_line", "cmd is acquire, take, worker, "
                          "pong, ping, release or status");
}


const char *
protocol_decode(protocol_command_t *command, const char *line, size_t len,
    char *error)
{
    json_t      *json;
    const char  *reason;

    memset(command, 0, sizeof(protocol_command_t));

    if (len > PROTOCOL_LINE_BYTES) {
        return protocol_wrong(error, "bad_line", "a line has at most 4096 "
                              "bytes");
    }

    json = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);

    if (!json_is_object(json)) {
        json_decref(json);
        return protocol_wrong(error, "bad_line", "a line is a JSON object");
    }

    reason = protocol_decode_json(command, json, error);
    json_decref(json);

    return reason;
}


/* --- status */

static json_t *
protocol_waiters(const machine_group_t *g)
{
    json_t                  *list;
    const machine_engine_t  *e;

    list = json_array();

    for (e = g->queue; e != NULL; e = e->next) {
        json_array_append_new(list, json_pack("{s:s, s:i, s:s}", "engine",
            e->claim.engine, "position", (int) e->position, "state",
            e == g->offered ? "offered" : e->is_silent ? "silent"
                                                       : "waiting"));
    }

    return list;
}


/* A duration; null for what has not happened yet. */
static json_t *
protocol_ms(int64_t ms)
{
    return ms < 0 ? json_null() : json_integer((json_int_t) ms);
}


static json_t *
protocol_group(const machine_t *m, const machine_group_t *g)
{
    int                      is_kill;
    const machine_engine_t  *h;

    h = g->holder;
    is_kill = m->settings.is_kill && (h == NULL || h->claim.can_be_killed);

    return json_pack("{s:s, s:s?, s:I, s:o, s:i, s:s, s:s, s:s?, s:I, s:o,"
        " s:{s:o, s:o}}",
        "group", g->name, "holder", h ? h->claim.engine : NULL,
        "epoch", (json_int_t) g->epoch,
        "pid", h ? json_integer(h->claim.pid) : json_null(),
        "processes", h ? (int) h->nprocesses : 0,
        "state", machine_group_state(m, g),
        "fence", is_kill ? "kill" : "wait", "fault", h ? g->fault : NULL,
        "window_left_ms", (json_int_t) machine_window_ms(m, g),
        "waiters", protocol_waiters(g), "last",
        "gone_ms", protocol_ms(g->last_gone_ms),
        "grant_ms", protocol_ms(g->last_grant_ms));
}


json_t *
protocol_status(const machine_t *m, const char *id)
{
    size_t   i;
    json_t  *groups;

    groups = json_array();

    for (i = 0; i < MACHINE_GROUPS_MAX; i++) {
        if (m->groups[i].name[0] != '\0') {
            json_array_append_new(groups, protocol_group(m, &m->groups[i]));
        }
    }

    return json_pack("{s:b, s:s, s:o}", "ok", 1, "id", id, "groups", groups);
}
