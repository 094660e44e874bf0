
/*
 * The socket that `llmgw add`, `remove` and `status` ask: one JSON object a
 * line, in the form of the agents' control socket.  Any process that can open
 * the socket may use it: its directory belongs to this user; if that is root,
 * the peer's uid is checked.
 */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "up/up.h"


#define CONTROL_CONNS_MAX  16
#define CONTROL_IDLE_MS    60000


static int
control_is_idle(const service_conn_t *conn)
{
    return 1;
}


static void
control_on_open(service_conn_t *conn)
{
    /* void */
}


static void
control_on_close(service_conn_t *conn)
{
    /* void */
}


static void
control_fail(service_conn_t *conn, const char *error)
{
    service_send(conn, json_pack("{s:b, s:s}", "ok", 0, "error", error), -1);
}


static void
control_done(service_conn_t *conn)
{
    service_send(conn, json_pack("{s:b}", "ok", 1), -1);
}


static void
control_change(service_conn_t *conn, up_t *up, int is_add, const char *word)
{
    char      error[SOURCE_ERROR_BYTES + FILES_ERROR_BYTES];
    source_t  source;

    if (conn->uid != geteuid() && conn->uid != 0) {
        control_fail(conn, "this needs the user of the gateway");

    } else if (up->state >= UP_ENDING_NGINX) {
        control_fail(conn, "the gateway ends");

    } else if (is_add) {

        if (source_read(&source, word, error) != 0
            || fleet_add(&up->fleet, &source, error) != 0)
        {
            control_fail(conn, error);
            return;
        }

        control_done(conn);

    /* By the text as given, as normalized, or by its engine's id. */
    } else if (fleet_remove(&up->fleet, word) == 0
               || (source_read(&source, word, error) == 0
                   && fleet_remove(&up->fleet, source.text) == 0))
    {
        control_done(conn);

    } else {
        snprintf(error, sizeof(error), "there is no engine \"%.900s\"", word);
        control_fail(conn, error);
    }
}


static json_t *
control_pair(const pair_t *p)
{
    char     text[PAIR_TEXT_BYTES], name[DIALECT_VERSION_BYTES + 32];
    json_t  *object;

    pair_text(p, text, sizeof(text));
    probe_name(&p->probe, name, sizeof(name));

    object = json_pack("{s:s, s:s, s:b, s:s, s:s, s:I, s:I, s:i, s:i}",
                       "id", p->id, "url", p->target,
                       "ready", pair_is_ready(p), "state", text,
                       "model", p->seen.model,
                       "max_capacity", p->seen.capacity,
                       "active_requests", p->seen.active,
                       "adapter_pid", (int) p->adapter.child.pid,
                       "agent_pid", (int) p->agent.child.pid);

    if (p->probe.is_known) {
        json_object_set_new(object, "engine", json_string(name));
        json_object_set_new(object, "context_tokens",
                            json_integer(p->probe.facts.context));
    }

    return object;
}


static void
control_status(service_conn_t *conn, const up_t *up)
{
    json_t        *engines;
    const pair_t  *p;

    engines = json_array();

    for (p = up->fleet.pairs; p != NULL; p = p->next) {
        json_array_append_new(engines, control_pair(p));
    }

    service_send(conn, json_pack("{s:b, s:s, s:s, s:s, s:i, s:i, s:s, s:o}",
                                 "ok", 1, "base", up->base,
                                 "listen", up->listen,
                                 "dir", up->place.dir,
                                 "nginx_pid", (int) up->nginx.child.pid,
                                 "agent_pid", (int) up->agent.child.pid,
                                 "state", up->state == UP_STARTING
                                 ? "starting" : up->state == UP_SERVING
                                 ? "serving" : "ending",
                                 "engines", engines), -1);
}


static void
control_on_line(service_conn_t *conn, char *text, size_t len)
{
    up_t        *up;
    json_t      *request;
    const char  *cmd;

    up = conn->service->data;
    request = json_loadb(text, len, 0, NULL);
    cmd = service_text(request, "cmd");

    if (strcmp(cmd, "status") == 0) {
        control_status(conn, up);

    } else if (strcmp(cmd, "add") == 0 || strcmp(cmd, "remove") == 0) {
        control_change(conn, up, cmd[0] == 'a', service_text(request, "url"));

    } else {
        control_fail(conn, "cmd is status, add or remove");
    }

    json_decref(request);
}


int
control_init(up_t *up, char error[UP_ERROR_BYTES])
{
    char  path[PATH_MAX];

    static const service_type_t  type = {
        .conn_bytes = sizeof(service_conn_t),
        .conns_max = CONTROL_CONNS_MAX,
        .idle_ms = CONTROL_IDLE_MS,
        .full_reason = "full",
        .full_error = "too many connections",
        .is_idle = control_is_idle,
        .on_open = control_on_open,
        .on_line = control_on_line,
        .on_close = control_on_close
    };

    files_path(path, up->place.run, UP_SOCKET, "");

    return service_init(&up->service, up->loop, &up->log, path, &type, up,
                        error);
}
