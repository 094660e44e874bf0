
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/service/service.h"
#include "common/os/mono.h"


/* --- sending */

void
service_send(service_conn_t *conn, json_t *json, int fd)
{
    char  *text;

    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);

    if (text != NULL) {
        (void) line_conn_send_fd(conn->line, text, strlen(text), fd);
        free(text);
    }
}


void
service_refuse(service_conn_t *conn, const char *reason, const char *error)
{
    service_send(conn, json_pack("{s:s, s:s, s:s}", "type", "refused",
                                 "reason", reason, "error", error), -1);
}


/* --- connections */

static void
service_unlink(service_conn_t *conn)
{
    service_conn_t  **place;

    for (place = &conn->service->conns; *place != conn;
         place = &(*place)->next) { /* void */ }

    *place = conn->next;
    conn->service->nconns--;
}


void
service_drop(service_conn_t *conn)
{
    line_conn_destroy(conn->line);
    service_unlink(conn);
    free(conn);
}


static void
service_on_line(line_conn_t *line, char *text, size_t len)
{
    service_conn_t  *conn;

    conn = line_conn_data(line);
    conn->heard_ms = mono_ms();
    conn->service->type->on_line(conn, text, len);
}


static void
service_on_close(line_conn_t *line, const char *reason)
{
    service_conn_t  *conn;

    conn = line_conn_data(line);
    service_unlink(conn);
    conn->service->type->on_close(conn);
    free(conn);
}


/* The connection that has been silent for longest of those that may be dropped;
   NULL: there is none. */
static service_conn_t *
service_most_idle(const service_t *service)
{
    service_conn_t  *conn, *idle;

    idle = NULL;

    for (conn = service->conns; conn != NULL; conn = conn->next) {
        if (service->type->is_idle(conn)
            && (idle == NULL || conn->heard_ms <= idle->heard_ms))
        {
            idle = conn;
        }
    }

    return idle;
}


static int
service_make_room(service_t *service)
{
    service_conn_t  *idle;

    if (service->nconns < service->type->conns_max) {
        return 0;
    }

    idle = service_most_idle(service);

    if (idle == NULL) {
        return -1;
    }

    service_drop(idle);

    return 0;
}


/* the line fits into a socket that has carried nothing yet */
static void
service_turn_away(const service_t *service, int fd)
{
    int   len;
    char  line[256];

    log_write(service->log, LOG_WARN, "%u connections, and none is idle: one "
              "is refused", service->nconns);
    len = snprintf(line, sizeof(line), "{\"type\":\"refused\",\"reason\":"
                   "\"%s\",\"error\":\"%s\"}\n", service->type->full_reason,
                   service->type->full_error);
    (void) !send(fd, line, (size_t) len, MSG_NOSIGNAL);
    close(fd);
}


static void
service_link(service_t *service, service_conn_t *conn)
{
    socklen_t     len;
    struct ucred  peer;

    len = sizeof(peer);

    /* this does not fail for a connected unix socket */
    if (getsockopt(line_conn_fd(conn->line), SOL_SOCKET, SO_PEERCRED, &peer,
                   &len) == 0)
    {
        conn->pid = peer.pid;
        conn->uid = peer.uid;
    }

    conn->service = service;
    conn->heard_ms = mono_ms();
    conn->next = service->conns;
    service->conns = conn;
    service->nconns++;
}


static void
service_accept(void *data, int fd, const address_t *address)
{
    service_t       *service = data;
    service_conn_t  *conn;

    static const line_conn_callbacks_t  callbacks = {
        service_on_line, service_on_close
    };

    if (service_make_room(service) != 0) {
        service_turn_away(service, fd);
        return;
    }

    conn = calloc(1, service->type->conn_bytes);

    if (conn != NULL) {
        conn->line = line_conn_create(service->loop, fd, &callbacks, conn);
    }

    if (conn == NULL || conn->line == NULL) {
        log_write(service->log, LOG_ERROR, "no memory for a connection");
        close(fd);
        free(conn);
        return;
    }

    line_conn_hold_back(conn->line, SERVICE_ANSWERS_BYTES);
    service_link(service, conn);
    service->type->on_open(conn);
}


static void
service_starved(void *data, int error)
{
    const service_t  *service = data;

    log_write(service->log, LOG_ERROR, "cannot accept connections: %s",
              strerror(error));
}


/* --- from its start to its end */

int
service_init(service_t *service, struct ev_loop *loop, const log_t *log,
    const char *path, const service_type_t *type, void *data, char *error)
{
    signal(SIGPIPE, SIG_IGN);       /* the log's reader may be gone */

    if (unix_listener_init(&service->listener, loop, path, service_accept,
                           service, error)
        != 0)
    {
        return -1;
    }

    listener_on_starved(&service->listener.listener, service_starved,
                        service);
    service->loop = loop;
    service->log = log;
    service->type = type;
    service->data = data;

    return 0;
}


void
service_tick(service_t *service)
{
    service_conn_t  *idle;

    while ((idle = service_most_idle(service)) != NULL
           && mono_ms() >= idle->heard_ms + service->type->idle_ms)
    {
        service_drop(idle);
    }

    if (!service->is_deaf && !unix_listener_is_there(&service->listener)) {
        service->is_deaf = 1;
        log_write(service->log, LOG_ERROR, "socket \"%s\" was removed or "
                  "replaced, so no engine can connect: restart this service",
                  service->listener.path);
        ev_break(service->loop, EVBREAK_ALL);
    }
}


static void
service_on_signal(struct ev_loop *loop, ev_signal *w, int events)
{
    ev_break(loop, EVBREAK_ALL);
}


int
service_run(service_t *service)
{
    ev_signal  term, interrupt;

    ev_signal_init(&term, service_on_signal, SIGTERM);
    ev_signal_start(service->loop, &term);
    ev_signal_init(&interrupt, service_on_signal, SIGINT);
    ev_signal_start(service->loop, &interrupt);
    ev_run(service->loop, 0);
    ev_signal_stop(service->loop, &term);
    ev_signal_stop(service->loop, &interrupt);

    return service->is_deaf;
}


void
service_done(service_t *service)
{
    while (service->conns != NULL) {
        service_drop(service->conns);
    }

    unix_listener_done(&service->listener);
}
