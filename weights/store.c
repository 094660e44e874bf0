
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "weights/store_inner.h"


uint64_t
store_now_ms(void)
{
    struct timespec  now;

    clock_gettime(CLOCK_MONOTONIC, &now);

    return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}


void
store_send(store_conn_t *conn, json_t *json, int fd)
{
    char  *text;

    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);

    if (text == NULL) {
        return;
    }

    if (fd == -1) {
        line_conn_send(conn->line, text, strlen(text));

    } else {
        line_conn_send_fd(conn->line, text, strlen(text), fd);
    }

    free(text);
}


void
store_refuse(store_conn_t *conn, const char *reason)
{
    log_write(conn->store->log, LOG_INFO, "refused \"%s\" (pid %d): %s, %s",
              conn->engine, (int) conn->pid, reason, request_why(reason));
    store_send(conn, json_pack("{s:s, s:s, s:s}", "type", "refused",
                               "reason", reason, "error",
                               request_why(reason)), -1);
}


/* --- what the machine says */

static void
store_tell_granted(store_conn_t *conn)
{
    int             is_writer;
    const store_t  *store;

    store = conn->store;
    is_writer = conn->client.role == ROLES_WRITER;
    log_write(store->log, LOG_INFO, "\"%s\" (pid %d) %s", conn->engine,
              (int) conn->pid, is_writer ? "is the writer" : "reads");
    store_send(conn, json_pack("{s:s, s:s, s:b, s:s?}", "type", "granted",
                               "mode", is_writer ? "rw" : "ro", "committed",
                               !is_writer, "id",
                               is_writer ? NULL : store->id), -1);
}


static void
store_tell_done(store_conn_t *conn)
{
    store_t  *store;

    store = conn->store;

    if (store->roles.state == ROLES_HASHING) {
        store_send(conn, json_pack("{s:s, s:s, s:I}", "type", "committed",
                                   "id", store->id, "bytes",
                                   (json_int_t) store->file.bytes), -1);
        return;
    }

    log_write(store->log, LOG_INFO, "\"%s\" (pid %d) has the weights, and "
              "reads", conn->engine, (int) conn->pid);
    store_send(conn, json_pack("{s:s, s:s}", "type", "adopted", "id",
                               store->id), -1);
}


static void
store_on_event(void *data, roles_client_t *client, roles_event_t event)
{
    store_t       *store = data;
    store_conn_t  *conn = (store_conn_t *) client;

    switch (event) {
    case ROLES_GRANTED:
        store_tell_granted(conn);
        break;
    case ROLES_TIMED_OUT:
        log_write(store->log, LOG_INFO, "\"%s\" (pid %d) has waited in vain",
                  conn->engine, (int) conn->pid);
        store_send(conn, json_pack("{s:s}", "type", "timeout"), -1);
        break;
    case ROLES_REFUSED:
        store_refuse(conn, "committed");
        break;
    case ROLES_DONE:
        store_tell_done(conn);
        break;
    case ROLES_FAILED:
        store_refuse(conn, store->roles.state == ROLES_ADOPTING
                           ? "other_bytes" : "hash_failed");
        break;
    }
}


/* --- connections */

static void
store_conn_end(store_conn_t *conn)
{
    store_t       *store;
    roles_role_t   role;

    store = conn->store;
    role = conn->client.role;

    if (role != ROLES_NONE) {
        log_write(store->log, LOG_INFO, "\"%s\" (pid %d) has ended%s",
                  conn->engine, (int) conn->pid,
                  role == ROLES_WRITER && store->roles.state == ROLES_WRITING
                  ? " before it committed" : "");
    }

    roles_gone(&store->roles, &conn->client, store_now_ms());

    if (conn->prev != NULL) {
        conn->prev->next = conn->next;

    } else {
        store->conns = conn->next;
    }

    if (conn->next != NULL) {
        conn->next->prev = conn->prev;
    }

    store->nconns--;
    free(conn);
}


static void
store_conn_closed(line_conn_t *line, const char *reason)
{
    store_conn_end(line_conn_data(line));
}


static void
store_conn_line(line_conn_t *line, char *text, size_t len)
{
    store_conn_t  *conn;

    conn = line_conn_data(line);
    conn->line_at = ev_now(conn->store->loop);
    request_take(conn, text, len);
}


static void
store_conn_drop(store_conn_t *conn)
{
    line_conn_t  *line;

    line = conn->line;
    store_conn_end(conn);
    line_conn_destroy(line);
}


/* The one without a role that is silent for longest; NULL: none. */
static store_conn_t *
store_most_idle(const store_t *store)
{
    store_conn_t  *conn, *idle;

    idle = NULL;

    for (conn = store->conns; conn != NULL; conn = conn->next) {
        if (conn->client.role == ROLES_NONE
            && (idle == NULL || conn->line_at < idle->line_at))
        {
            idle = conn;
        }
    }

    return idle;
}


static void
store_expire(store_t *store)
{
    store_conn_t  *idle;

    while ((idle = store_most_idle(store)) != NULL
           && idle->line_at + STORE_IDLE_S <= ev_now(store->loop))
    {
        store_conn_drop(idle);
    }
}


static int
store_make_room(store_t *store)
{
    store_conn_t  *idle;

    if (store->nconns < STORE_MAX_CONNS) {
        return 0;
    }

    idle = store_most_idle(store);

    if (idle == NULL) {
        return -1;
    }

    store_conn_drop(idle);

    return 0;
}


/* It fits into a socket that has carried nothing yet. */
static void
store_refuse_conn(store_t *store, int fd)
{
    char  refusal[160];
    int   len;

    log_write(store->log, LOG_WARN, "%d connections, and all have a role: "
              "one is refused", STORE_MAX_CONNS);
    len = snprintf(refusal, sizeof(refusal), "{\"type\":\"refused\",\"reason\""
                   ":\"busy\",\"error\":\"%s\"}\n", request_why("busy"));
    (void) !send(fd, refusal, (size_t) len, MSG_NOSIGNAL);
    close(fd);
}


static void
store_link(store_t *store, store_conn_t *conn)
{
    conn->next = store->conns;

    if (conn->next != NULL) {
        conn->next->prev = conn;
    }

    store->conns = conn;
    store->nconns++;
}


static void
store_accept(void *data, int fd, const address_t *address)
{
    socklen_t      len;
    store_t       *store = data;
    struct ucred   who;
    store_conn_t  *conn;

    static const line_conn_callbacks_t  callbacks = {
        store_conn_line, store_conn_closed
    };

    if (store_make_room(store) != 0) {
        store_refuse_conn(store, fd);
        return;
    }

    conn = calloc(1, sizeof(store_conn_t));

    if (conn != NULL) {
        conn->line = line_conn_create(store->loop, fd, &callbacks, conn);
    }

    if (conn == NULL || conn->line == NULL) {
        log_write(store->log, LOG_ERROR, "no memory for a connection");
        close(fd);
        free(conn);
        return;
    }

    len = sizeof(who);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0) {
        conn->pid = who.pid;
    }

    strcpy(conn->engine, "-");
    conn->store = store;
    conn->line_at = ev_now(store->loop);
    store_link(store, conn);
}


static void
store_starved(void *data, int error)
{
    const store_t  *store = data;

    log_write(store->log, LOG_ERROR, "cannot accept a connection: %s",
              strerror(error));
}


/* --- time */

static void
store_on_wake(struct ev_loop *loop, ev_timer *wake, int events)
{
    store_t  *store = wake->data;

    ev_timer_stop(loop, wake);
    roles_tick(&store->roles, store_now_ms());
}


/* Before the loop sleeps: until when, as far as the machine is concerned. */
static void
store_on_prepare(struct ev_loop *loop, ev_prepare *prepare, int events)
{
    store_t   *store = prepare->data;
    uint64_t   now_ms, next_ms;

    ev_timer_stop(loop, &store->wake);
    next_ms = roles_next_ms(&store->roles);

    if (next_ms == UINT64_MAX) {
        return;
    }

    now_ms = store_now_ms();
    ev_now_update(loop);
    ev_timer_set(&store->wake, next_ms > now_ms
                               ? (double) (next_ms - now_ms) / 1000 : 0, 0);
    ev_timer_start(loop, &store->wake);
}


static void
store_on_beat(struct ev_loop *loop, ev_timer *beat, int events)
{
    store_t  *store = beat->data;

    store_expire(store);

    if (!store->is_deaf && !unix_listener_is_there(&store->socket)) {
        store->is_deaf = 1;
        log_write(store->log, LOG_ERROR, "socket \"%s\" was removed or "
                  "replaced, so no engine can come: a new start is due",
                  store->socket.path);
        ev_break(loop, EVBREAK_ALL);
    }

    if (bytes_are_hashed(store)) {
        bytes_tell_progress(store);
    }
}


static void
store_start_watchers(store_t *store)
{
    ev_prepare_init(&store->prepare, store_on_prepare);
    ev_init(&store->wake, store_on_wake);
    ev_init(&store->beat, store_on_beat);
    store->beat.repeat = STORE_TELL_S;
    store->prepare.data = store;
    store->wake.data = store;
    store->beat.data = store;

    ev_prepare_start(store->loop, &store->prepare);
    ev_timer_again(store->loop, &store->beat);
}


store_t *
store_create(struct ev_loop *loop, const log_t *log, const char *path,
    int64_t device, uint64_t adopt_window_ms, char *error)
{
    store_t  *store;

    static const roles_callbacks_t  callbacks = {
        store_on_event, bytes_reclaim
    };

    store = calloc(1, sizeof(store_t));

    if (store == NULL) {
        snprintf(error, UNIX_LISTENER_ERROR_BYTES, "out of memory");
        return NULL;
    }

    if (unix_listener_init(&store->socket, loop, path, store_accept, store,
                           error)
        != 0)
    {
        free(store);
        return NULL;
    }

    listener_on_starved(&store->socket.listener, store_starved, store);
    store->loop = loop;
    store->log = log;
    store->device = device;
    store->file.fd = -1;
    roles_init(&store->roles, store_now_ms() + adopt_window_ms, &callbacks,
               store);
    store_start_watchers(store);

    return store;
}


int
store_is_deaf(const store_t *store)
{
    return store->is_deaf;
}


void
store_destroy(store_t *store)
{
    if (bytes_are_hashed(store)) {
        digest_cancel(&store->digest);
    }

    while (store->conns != NULL) {
        store_conn_drop(store->conns);
    }

    if (store->roles.state == ROLES_RECLAIMING) {
        threads_join(&store->reclaim);

    } else if (store->file.fd != -1) {
        close(store->file.fd);
    }

    unix_listener_done(&store->socket);
    ev_prepare_stop(store->loop, &store->prepare);
    ev_timer_stop(store->loop, &store->wake);
    ev_timer_stop(store->loop, &store->beat);
    free(store);
}
