
/*
 * Connections.  A lost connection fails its streams and is opened again a
 * moment later, so measuring continues after a gateway's restart, and the
 * errors show the restart.  A connection lost before the run has begun ends
 * the run.
 */

#include <stddef.h>

#include "client/bench_inner.h"


#define BENCH_CONN_TIMEOUT_MS  10000
#define BENCH_CONN_AGAIN_S     0.1

/*
 * Large enough for one token of 10,000 streams at once, so that this client
 * does not slow a gateway down.
 */
#define BENCH_CONN_WINDOW      (16 * 1024 * 1024)


void
bench_idle_push(bench_idle_t *idle, bench_slot_t *slot)
{
    slot->next = NULL;

    if (idle->first == NULL) {
        idle->first = slot;

    } else {
        idle->last->next = slot;
    }

    idle->last = slot;
}


bench_slot_t *
bench_idle_pop(bench_idle_t *idle)
{
    bench_slot_t  *slot;

    slot = idle->first;

    if (slot != NULL) {
        idle->first = slot->next;
    }

    return slot;
}


static int
bench_conn_can_call(const bench_conn_t *conn)
{
    llmgw_grpc_session_t  *session;

    if (conn->grpc == NULL || !conn->is_up) {
        return 0;
    }

    session = grpc_conn_session(conn->grpc);

    return session != NULL && llmgw_grpc_session_can_call(session);
}


void
bench_conn_park(bench_slot_t *slot)
{
    slot->next = slot->conn->parked;
    slot->conn->parked = slot;
}


void
bench_conn_unpark(bench_conn_t *conn)
{
    bench_slot_t  *slot;

    while ((slot = conn->parked) != NULL) {
        conn->parked = slot->next;
        bench_idle_push(&conn->bench->idle, slot);
    }
}


static int bench_conn_open(bench_conn_t *conn);


static void
bench_conn_on_closed(grpc_conn_t *grpc, const char *reason)
{
    bench_t       *bench;
    bench_conn_t  *conn;

    conn = grpc_conn_data(grpc);
    bench = conn->bench;
    reason = reason != NULL ? reason : "closed by the peer";

    if (bench->phase == BENCH_CONNECTING) {
        conn->grpc = NULL;
        bench_run_abort(bench, "no connection to %s: %s",
                        bench->options.gateway, reason);
        return;
    }

    if (!conn->is_up) {
        bench_tally_add(&bench->tally, BENCH_TALLY_TRANSPORT, "reconnect",
                        reason);
    }

    conn->grpc = NULL;
    conn->is_up = 0;
    ev_timer_set(&conn->timer, BENCH_CONN_AGAIN_S, 0);
    ev_timer_start(bench->loop, &conn->timer);
}


void
bench_conn_on_settings(llmgw_grpc_session_t *session)
{
    bench_conn_t  *conn;

    conn = grpc_conn_data(llmgw_grpc_session_data(session));
    conn->is_up = 1;

    if (conn->bench->phase == BENCH_CONNECTING) {
        bench_run_connected(conn->bench);
        return;
    }

    bench_conn_unpark(conn);
    pace_look(&conn->bench->pace);
}


static void
bench_conn_on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
    bench_conn_t  *conn;

    conn = w->data;

    if (bench_conn_open(conn) != 0) {
        bench_run_abort(conn->bench, "out of memory or descriptors");
    }
}


static int
bench_conn_open(bench_conn_t *conn)
{
    bench_t              *bench;
    llmgw_grpc_config_t   config = {
        .callbacks = &bench_stream_callbacks,
        .data = conn,
        .max_message_bytes = BENCH_MESSAGE_BYTES,
        .connection_window_bytes = BENCH_CONN_WINDOW
    };

    bench = conn->bench;
    ev_init(&conn->timer, bench_conn_on_timer);
    conn->timer.data = conn;
    conn->is_up = 0;
    conn->grpc = grpc_conn_connect_with(bench->loop, &bench->address,
                                        &bench->options.tls.endpoint.conn,
                                        &config,
                                        BENCH_CONN_TIMEOUT_MS,
                                        bench_conn_on_closed);

    return conn->grpc != NULL ? 0 : -1;
}


static void
bench_conn_close(bench_conn_t *conn)
{
    ev_timer_stop(conn->bench->loop, &conn->timer);

    if (conn->grpc != NULL) {
        grpc_conn_destroy(conn->grpc);
        conn->grpc = NULL;
    }
}


const bench_protocol_t  bench_conn_protocol = {
    .open = bench_conn_open,
    .close = bench_conn_close,
    .can_call = bench_conn_can_call,
    .start = bench_stream_call
};
