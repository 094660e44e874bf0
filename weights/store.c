
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/mono.h"
#include "weights/store_inner.h"


store_conn_t *
store_conn_of(const roles_client_t *client)
{
    return (store_conn_t *) ((uintptr_t) client
                             - offsetof(store_conn_t, client));
}


/* Refuses.  Temporary reasons are not logged, since clients ask again and
   again, and log them themselves. */
void
store_refuse(store_conn_t *conn, const char *reason)
{
    if (!request_passes(reason)) {
        log_write(conn->store->log, LOG_INFO, "refused \"%s\" (pid %d): %s, "
                  "%s", conn->engine, (int) conn->base.pid, reason,
                  request_why(reason));
    }

    service_refuse(&conn->base, reason, request_why(reason));
}


/* --- the machine's events */

static void
store_tell_granted(store_conn_t *conn)
{
    int             is_writer;
    const store_t  *store;

    store = conn->store;
    is_writer = conn->client.role == ROLES_WRITER;
    log_write(store->log, LOG_INFO, "\"%s\" (pid %d) %s", conn->engine,
              (int) conn->base.pid, is_writer ? "is the writer" : "reads");
    service_send(&conn->base, json_pack("{s:s, s:s, s:b, s:s?}", "type",
                                        "granted", "mode",
                                        is_writer ? "rw" : "ro", "committed",
                                        !is_writer, "id",
                                        is_writer ? NULL : store->id), -1);
}


static void
store_tell_done(store_conn_t *conn)
{
    store_t  *store;

    store = conn->store;

    if (store->roles.state == ROLES_HASHING) {
        service_send(&conn->base, json_pack("{s:s, s:s, s:I}", "type",
                                            "committed", "id", store->id,
                                            "bytes",
                                            (json_int_t) store->file.bytes),
                     -1);
        return;
    }

    log_write(store->log, LOG_INFO, "\"%s\" (pid %d) has the weights, and "
              "reads", conn->engine, (int) conn->base.pid);
    service_send(&conn->base, json_pack("{s:s, s:s}", "type", "adopted", "id",
                                        store->id), -1);
}


static void
store_on_event(void *data, roles_client_t *client, roles_event_t event)
{
    store_t       *store = data;
    store_conn_t  *conn;

    conn = store_conn_of(client);

    switch (event) {
    case ROLES_GRANTED:
        store_tell_granted(conn);
        break;
    case ROLES_TIMED_OUT:
        log_write(store->log, LOG_INFO, "\"%s\" (pid %d) timed out waiting",
                  conn->engine, (int) conn->base.pid);
        service_send(&conn->base, json_pack("{s:s}", "type", "timeout"), -1);
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
store_on_open(service_conn_t *base)
{
    store_conn_t  *conn = (store_conn_t *) base;

    strcpy(conn->engine, "-");
    conn->store = base->service->data;
}


static void
store_on_line(service_conn_t *base, char *text, size_t len)
{
    request_take((store_conn_t *) base, text, len);
}


static void
store_on_close(service_conn_t *base)
{
    store_t       *store;
    roles_role_t   role;
    store_conn_t  *conn = (store_conn_t *) base;

    store = conn->store;
    role = conn->client.role;

    if (role != ROLES_NONE) {
        log_write(store->log, LOG_INFO, "\"%s\" (pid %d) has ended%s",
                  conn->engine, (int) base->pid,
                  role == ROLES_WRITER && store->roles.state == ROLES_WRITING
                  ? " before it committed" : "");
    }

    roles_gone(&store->roles, &conn->client, mono_ms());
}


static int
store_is_idle(const service_conn_t *base)
{
    return ((const store_conn_t *) base)->client.role == ROLES_NONE;
}


static const service_type_t  store_type = {
    .conn_bytes = sizeof(store_conn_t),
    .conns_max = STORE_MAX_CONNS,
    .idle_ms = STORE_IDLE_MS,
    .full_reason = "busy",
    .full_error = "too many connections",
    .is_idle = store_is_idle,
    .on_open = store_on_open,
    .on_line = store_on_line,
    .on_close = store_on_close
};


/* --- time */

static void
store_on_wake(struct ev_loop *loop, ev_timer *wake, int events)
{
    store_t  *store = wake->data;

    ev_timer_stop(loop, wake);
    roles_tick(&store->roles, mono_ms());
}


/* Sets the timer to roles_next_ms(); called before the loop sleeps. */
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

    now_ms = mono_ms();
    ev_now_update(loop);
    ev_timer_set(&store->wake, next_ms > now_ms
                               ? (double) (next_ms - now_ms) / 1000 : 0, 0);
    ev_timer_start(loop, &store->wake);
}


static void
store_on_beat(struct ev_loop *loop, ev_timer *beat, int events)
{
    store_t  *store = beat->data;

    service_tick(&store->service);

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

    if (service_init(&store->service, loop, log, path, &store_type, store,
                     error)
        != 0)
    {
        free(store);
        return NULL;
    }

    store->loop = loop;
    store->log = log;
    store->device = device;
    store->file.fd = -1;
    roles_init(&store->roles, mono_ms() + adopt_window_ms, &callbacks,
               store);
    store_start_watchers(store);

    return store;
}


int
store_run(store_t *store)
{
    return service_run(&store->service);
}


void
store_destroy(store_t *store)
{
    if (store->is_hashing) {
        digest_cancel(&store->digest);
        close(store->file.fd);

    } else if (store->roles.state == ROLES_RECLAIMING) {
        threads_join(&store->reclaim);

    } else if (store->file.fd != -1) {
        close(store->file.fd);
    }

    service_done(&store->service);
    ev_prepare_stop(store->loop, &store->prepare);
    ev_timer_stop(store->loop, &store->wake);
    ev_timer_stop(store->loop, &store->beat);
    free(store);
}
