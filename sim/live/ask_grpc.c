
/*
 * Asks a gateway by gRPC: Infer, as many streams on a connection as the server
 * allows, and as many connections as that takes.  A lost connection ends its
 * streams as errors; the next request opens another.
 */

#include <stdlib.h>
#include <string.h>

#include "common/grpc/asker.h"
#include "llmgateway.pb-c.h"
#include "sim/live/drive.h"

#define CONNECT_TIMEOUT_MS  10000
#define CANCEL              8           /* RFC 9113 */
#define WINDOW_BYTES        (16 * 1024 * 1024)

typedef struct {
    live_driver_t  *driver;
    grpc_conn_t    *grpc;               /* NULL: none, or lost */
} link_t;

typedef struct {
    address_t   address;
    link_t     *links;
    size_t      n;
} grpc_t;


static live_ask_t *
ask_of(llmgw_grpc_stream_t *stream)
{
    return llmgw_grpc_stream_data(stream);
}


/* Detaches the ask from its stream, so that nothing more is reported to it. */
static live_ask_t *
part(llmgw_grpc_stream_t *stream)
{
    live_ask_t  *ask;

    ask = ask_of(stream);
    llmgw_grpc_stream_set_data(stream, NULL);

    return ask;
}


static void
on_message(llmgw_grpc_stream_t *stream, const uint8_t *data, size_t len,
    size_t wire_bytes)
{
    live_ask_t                 *ask;
    Llmgateway__InferResponse  *response;

    ask = ask_of(stream);
    (void) llmgw_grpc_stream_consume(stream, wire_bytes);

    if (ask == NULL) {
        return;
    }

    response = llmgateway__infer_response__unpack(NULL, len, data);

    if (response == NULL) {
        llmgw_grpc_stream_reset(stream, CANCEL);
        live_ask_end(part(stream), "error", "a message is malformed");
        return;
    }

    if (response->token.len > 0) {
        live_ask_text(ask);
    }

    if (response->is_final) {
        strcpy(ask->finish_reason, "stop");
    }

    llmgateway__infer_response__free_unpacked(response, NULL);
}


static void
on_end(llmgw_grpc_stream_t *stream, int status, const char *message)
{
    live_ask_t  *ask;

    ask = part(stream);

    if (ask == NULL) {
        return;
    }

    if (status == LLMGW_GRPC_OK) {
        live_ask_end(ask, ask->finish_reason[0] != '\0' ? "ok" : "error",
                     ask->finish_reason[0] != '\0' ? ""
                     : "the stream ended without its last token");

    } else {
        live_ask_end(ask, status == LLMGW_GRPC_DEADLINE_EXCEEDED ? "timeout"
                     : "error", message);
    }
}


static void
on_close(llmgw_grpc_stream_t *stream, uint32_t http2_error, int is_refused)
{
    live_ask_t  *ask;

    ask = part(stream);

    if (ask != NULL) {
        live_ask_end(ask, "error", is_refused ? "the connection failed"
                                              : "the stream was reset");
    }
}


static void
on_closed(grpc_conn_t *conn, const char *reason)
{
    link_t  *link;

    link = grpc_conn_data(conn);
    link->grpc = NULL;
}


static int
link_open(link_t *link)
{
    grpc_t               *g;
    llmgw_grpc_config_t   config;

    static const llmgw_grpc_callbacks_t  callbacks = {
        .on_message = on_message,
        .on_end = on_end,
        .on_close = on_close
    };

    g = link->driver->own;
    memset(&config, 0, sizeof(config));
    config.callbacks = &callbacks;
    config.data = link;
    config.connection_window_bytes = WINDOW_BYTES;
    link->grpc = grpc_conn_connect(link->driver->loop, &g->address, &config,
                                   CONNECT_TIMEOUT_MS, on_closed);

    return link->grpc != NULL ? 0 : -1;
}


/*
 * The session of a connection that can take a further stream; NULL: there is
 * none.
 */
static llmgw_grpc_session_t *
find_session(grpc_t *g, link_t **link)
{
    size_t                 i;
    link_t                *closed;
    llmgw_grpc_session_t  *session;

    closed = NULL;

    for (i = 0; i < g->n; i++) {
        *link = &g->links[i];

        if ((*link)->grpc == NULL) {
            closed = closed != NULL ? closed : *link;
            continue;
        }

        session = grpc_conn_session((*link)->grpc);

        if (session != NULL && llmgw_grpc_session_can_call(session)) {
            return session;
        }
    }

    *link = closed;

    return closed != NULL && link_open(closed) == 0
           ? grpc_conn_session(closed->grpc) : NULL;
}


static int
send_request(live_ask_t *ask, llmgw_grpc_stream_t *stream)
{
    int                        rc;
    size_t                     len;
    char                      *prompt;
    Llmgateway__InferRequest   request = LLMGATEWAY__INFER_REQUEST__INIT;

    prompt = live_prompt(ask, &len);

    if (prompt == NULL) {
        return -1;
    }

    request.client_id = (char *) ask->request->client->text;
    request.request_id = ask->id;
    request.prompt.data = (uint8_t *) prompt;
    request.prompt.len = len;
    request.max_tokens = ask->request->output_tokens > 0
                         ? (int32_t) ask->request->output_tokens : 1;
    rc = asker_send(stream, &request.base);
    free(prompt);

    return rc;
}


static int
start(live_ask_t *ask)
{
    link_t                *link;
    llmgw_grpc_call_t      call;
    llmgw_grpc_field_t     fields[2];
    llmgw_grpc_stream_t   *stream;
    llmgw_grpc_session_t  *session;

    session = find_session(ask->driver->own, &link);

    if (session == NULL) {
        return -1;
    }

    memset(&call, 0, sizeof(call));
    call.path = "/llmgateway.InferenceGateway/Infer";
    call.authority = ask->driver->options->target;
    call.timeout_ms = (uint64_t) (ask->driver->options->timeout_us / 1000);
    call.data = ask;
    call.fields = fields;

    if (ask->request->slo_class->len > 0) {
        fields[call.nfields].name = "x-gateway-inference-objective";
        fields[call.nfields++].value = ask->request->slo_class->text;
    }

    if (ask->request->tenant->len > 0) {
        fields[call.nfields].name = "x-gateway-inference-fairness-id";
        fields[call.nfields++].value = ask->request->tenant->text;
    }

    if (llmgw_grpc_call(session, &call, &stream) != LLMGW_GRPC_DONE) {
        return -1;
    }

    if (send_request(ask, stream) != 0) {
        (void) part(stream);
        llmgw_grpc_stream_reset(stream, CANCEL);
        return -1;
    }

    ask->own = stream;
    grpc_conn_wake(link->grpc);

    return 0;
}


static void
cancel(live_ask_t *ask)
{
    llmgw_grpc_stream_t  *stream;

    stream = ask->own;
    (void) part(stream);
    llmgw_grpc_stream_reset(stream, CANCEL);
}


static int
grpc_open(live_driver_t *driver, work_error_t *error)
{
    char     why[128];
    size_t   i;
    grpc_t  *g;

    g = calloc(1, sizeof(*g));

    if (g == NULL) {
        return work_fail(error, driver->options->target, 0, "no memory left");
    }

    driver->own = g;

    if (address_resolve(driver->options->target, &g->address, why) != 0) {
        free(g);
        return work_fail(error, driver->options->target, 0, "%s", why);
    }

    /* Servers should allow at least 100 streams (RFC 9113, 6.5.2). */
    g->n = (size_t) driver->options->max_in_flight / 100 + 1;
    g->links = calloc(g->n, sizeof(*g->links));

    if (g->links == NULL) {
        free(g);
        return work_fail(error, driver->options->target, 0, "no memory left");
    }

    for (i = 0; i < g->n; i++) {
        g->links[i].driver = driver;
    }

    return 0;
}


static void
grpc_close(live_driver_t *driver)
{
    size_t   i;
    grpc_t  *g;

    g = driver->own;

    for (i = 0; i < g->n; i++) {
        if (g->links[i].grpc != NULL) {
            grpc_conn_destroy(g->links[i].grpc);
        }
    }

    free(g->links);
    free(g);
}


const live_protocol_t  live_grpc = {
    .open = grpc_open,
    .start = start,
    .cancel = cancel,
    .close = grpc_close
};
