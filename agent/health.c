
#include <stdlib.h>
#include <string.h>

#include "common/grpc_conn.h"
#include "health.h"
#include "health.pb-c.h"


/*
 * A replica that does report is back at its agent within 200 ms of the
 * agent's start: it is not judged by a check before.
 */
#define HEALTH_FIRST_S            0.3
#define HEALTH_INTERVAL_S         1.0
#define HEALTH_SILENT_S           2.5     /* seen by the third tick */
#define HEALTH_CONNECT_MS         1000
#define HEALTH_MAX_MESSAGE_BYTES  4096

#define HEALTH_HTTP2_CANCEL       8

typedef Grpc__Health__V1__HealthCheckResponse  health_response_t;

struct health_s {
    struct ev_loop       *loop;
    ev_timer              timer;
    address_t             address;
    grpc_conn_t          *conn;         /* NULL: none */
    llmgw_grpc_stream_t  *stream;       /* the question that is out */
    double                asked_at;     /* when the first unanswered one went */
    int                   has_answered; /* on this connection */
    int                   is_serving;   /* what the message said */
    health_verdict_pt     on_verdict;
    void                 *data;
};


static void
health_message(llmgw_grpc_stream_t *stream, const uint8_t *data, size_t len,
    size_t wire_bytes)
{
    health_t           *health;
    health_response_t  *response;

    health = llmgw_grpc_stream_data(stream);
    llmgw_grpc_stream_consume(stream, wire_bytes);

    response = grpc__health__v1__health_check_response__unpack(NULL, len,
                                                               data);
    if (response == NULL) {
        return;
    }

    health->is_serving = response->status
        == GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING;

    grpc__health__v1__health_check_response__free_unpacked(response, NULL);
}


static void
health_end(llmgw_grpc_stream_t *stream, int status, const char *message)
{
    health_t  *health;

    health = llmgw_grpc_stream_data(stream);
    health->has_answered = 1;
    health->asked_at = 0;

    if (status == LLMGW_GRPC_UNIMPLEMENTED
        || (status == LLMGW_GRPC_OK && health->is_serving))
    {
        health->on_verdict(health->data, LOCAL_SERVING);

    } else {
        health->on_verdict(health->data, LOCAL_NOT_SERVING);
    }
}


static void
health_close(llmgw_grpc_stream_t *stream, uint32_t http2_error,
    int is_refused)
{
    health_t  *health;

    health = llmgw_grpc_stream_data(stream);

    if (health->stream == stream) {
        health->stream = NULL;
    }
}


static const llmgw_grpc_callbacks_t  health_callbacks = {
    .on_message = health_message,
    .on_end = health_end,
    .on_close = health_close
};


static void
health_disconnect(health_t *health)
{
    if (health->stream != NULL) {
        llmgw_grpc_stream_reset(health->stream, HEALTH_HTTP2_CANCEL);
        health->stream = NULL;
    }

    if (health->conn != NULL) {
        grpc_conn_destroy(health->conn);
        health->conn = NULL;
    }
}


static void health_conn_closed(grpc_conn_t *conn, const char *reason);


static int
health_connect(health_t *health)
{
    llmgw_grpc_config_t  config;

    memset(&config, 0, sizeof(config));
    config.callbacks = &health_callbacks;
    config.data = health;
    config.max_message_bytes = HEALTH_MAX_MESSAGE_BYTES;

    health->has_answered = 0;
    health->conn = grpc_conn_connect(health->loop, &health->address, &config,
                                     HEALTH_CONNECT_MS, health_conn_closed);

    return health->conn ? 0 : -1;
}


/*
 * See the header: one that had answered is looked for before it is gone.  The
 * new connection waits for the next second's question.
 */
static void
health_conn_closed(grpc_conn_t *conn, const char *reason)
{
    health_t  *health;

    health = grpc_conn_data(conn);
    health->conn = NULL;
    health->stream = NULL;
    health->asked_at = 0;

    if (health->has_answered && health_connect(health) == 0) {
        return;
    }

    health->on_verdict(health->data, LOCAL_GONE);
}


/* Check of "", the server as a whole: an empty HealthCheckRequest. */
static void
health_ask(health_t *health)
{
    llmgw_grpc_call_t      call;
    llmgw_grpc_session_t  *session;

    session = grpc_conn_session(health->conn);

    memset(&call, 0, sizeof(call));
    call.path = "/grpc.health.v1.Health/Check";
    call.authority = "localhost";
    call.data = health;

    health->is_serving = 0;

    if (llmgw_grpc_call(session, &call, &health->stream) != LLMGW_GRPC_DONE) {
        health->stream = NULL;
        return;
    }

    llmgw_grpc_send_message(health->stream, (const uint8_t *) "", 0);
    llmgw_grpc_half_close(health->stream);
    grpc_conn_wake(health->conn);

    if (health->asked_at == 0) {
        health->asked_at = ev_now(health->loop);
    }
}


static void
health_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    health_t  *health = timer->data;

    if (health->asked_at != 0
        && ev_now(loop) - health->asked_at >= HEALTH_SILENT_S)
    {
        health_disconnect(health);
        health->asked_at = 0;
        health->on_verdict(health->data, LOCAL_SILENT);
        return;
    }

    if (health->conn == NULL && health_connect(health) != 0) {
        return;
    }

    if (health->stream == NULL) {
        health_ask(health);
    }
}


health_t *
health_create(struct ev_loop *loop, const address_t *address,
    health_verdict_pt on_verdict, void *data)
{
    health_t  *health;

    health = calloc(1, sizeof(health_t));
    if (health == NULL) {
        return NULL;
    }

    health->loop = loop;
    health->address = *address;
    health->on_verdict = on_verdict;
    health->data = data;

    ev_timer_init(&health->timer, health_tick, HEALTH_FIRST_S,
                  HEALTH_INTERVAL_S);
    health->timer.data = health;
    ev_timer_start(loop, &health->timer);

    return health;
}


void
health_destroy(health_t *health)
{
    ev_timer_stop(health->loop, &health->timer);
    health_disconnect(health);
    free(health);
}
