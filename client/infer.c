
/*
 * llmgw-client infer.
 *
 * One call on one connection.  The first event that ends it is the outcome, and
 * infer_conclude() ignores later ones: the gateway's status, a connection that
 * is refused or breaks, our own timer.  The timeout is sent to the gateway
 * (grpc-timeout).  It is also enforced here, a little later, in case the
 * gateway can no longer do so.
 */

#include <ev.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/grpc/asker.h"
#include "common/options.h"
#include "client/client_key.h"
#include "client/client_tls.h"
#include "client/infer.h"
#include "client/infer_output.h"
#include "llmgateway.pb-c.h"


#define INFER_CONNECT_TIMEOUT_MS  10000
#define INFER_GRACE_MS            100
#define INFER_CANCEL              8         /* RFC 9113, CANCEL */
#define INFER_REASON_BYTES        64
#define INFER_MESSAGE_BYTES       512

typedef struct {
    const char  *gateway;
    const char  *prompt;
    const char  *client_id;
    int64_t      max_tokens;
    uint64_t     timeout_ms;
    int          is_hedged;
    int          is_json;
    client_tls_t tls;
    client_key_t key;
} infer_options_t;

typedef struct {
    infer_options_t   options;
    infer_output_t    output;
    struct ev_loop   *loop;
    ev_timer          timer;
    grpc_conn_t      *conn;         /* NULL: closed */
    double            started_at;
    int               is_final;     /* the final token was received */
    int               is_over;
    int               status;
    char              message[INFER_MESSAGE_BYTES];
    char              reason[INFER_REASON_BYTES];
} infer_t;


#define FIELD(name)  offsetof(infer_options_t, name)

static const option_t  infer_table[] = {

    { "gateway", OPTION_ADDRESS, FIELD(gateway), NULL, NULL,
      "where nginx listens", 0, 0, 1 },

    { "prompt", OPTION_STRING, FIELD(prompt), NULL, NULL,
      "the prompt", 0, 0, 1 },

    { "max-tokens", OPTION_INT, FIELD(max_tokens), NULL, NULL,
      "how many tokens to generate", 1, INT32_MAX, 1 },

    { "hedge", OPTION_FLAG, FIELD(is_hedged), NULL, NULL,
      "send it to two replicas, the faster one serves", 0, 0, 0 },

    { "client-id", OPTION_STRING, FIELD(client_id), "", "ID",
      "name of the client", 0, 0, 0 },

    { "json", OPTION_FLAG, FIELD(is_json), NULL, NULL,
      "one JSON object per token, with time and replica", 0, 0, 0 },

    { "timeout", OPTION_DURATION, FIELD(timeout_ms), "0", NULL,
      "limit for the whole stream; 0: no limit", 0, 86400000, 0 },

    CLIENT_TLS_OPTIONS,

    CLIENT_KEY_OPTION,

    { .name = NULL }
};

static const options_spec_t  infer_spec = {
    "llmgw-client infer",
    "--gateway HOST:PORT --prompt TEXT --max-tokens N [options]",
    "Streams the tokens of one prompt through the gateway.",
    "exit status: 0 the stream was complete, 1 it was not, 2 usage",
    infer_table
};


static void
infer_conclude(infer_t *infer, int status, const char *message)
{
    if (infer->is_over) {
        return;
    }

    infer->is_over = 1;
    infer->status = status;
    snprintf(infer->message, sizeof(infer->message), "%s",
             message != NULL ? message : "");
    ev_break(infer->loop, EVBREAK_ALL);
}


static infer_t *
infer_of(llmgw_grpc_stream_t *stream)
{
    return llmgw_grpc_stream_data(stream);
}


static void
infer_on_field(llmgw_grpc_stream_t *stream, const char *name, size_t name_len,
    const char *value, size_t value_len, int is_trailer)
{
    static const char  reason[] = "llmgw-reason";

    if (name_len == sizeof(reason) - 1 && memcmp(name, reason, name_len) == 0) {
        snprintf(infer_of(stream)->reason, INFER_REASON_BYTES, "%.*s",
                 (int) value_len, value);
    }
}


/*
 * The bytes of a field; an absent one is NULL, which jansson does not accept.
 */
static const char *
infer_text(const ProtobufCBinaryData *bytes)
{
    return bytes->len > 0 ? (const char *) bytes->data : "";
}


static void
infer_on_message(llmgw_grpc_stream_t *stream, const uint8_t *data, size_t len,
    size_t wire_bytes)
{
    infer_t                     *infer;
    infer_token_t                token;
    Llmgateway__InferResponse   *response;

    infer = infer_of(stream);
    (void) llmgw_grpc_stream_consume(stream, wire_bytes);

    response = llmgateway__infer_response__unpack(NULL, len, data);

    if (response == NULL) {
        infer_conclude(infer, LLMGW_GRPC_INTERNAL, "malformed message");
        return;
    }

    token.text = infer_text(&response->token);
    token.text_bytes = response->token.len;
    token.replica_id = infer_text(&response->replica_id);
    token.replica_id_bytes = response->replica_id.len;
    token.time_s = ev_time() - infer->started_at;
    token.is_final = response->is_final;
    infer->is_final = response->is_final;

    if (infer_output_token(&infer->output, &token) != 0) {
        infer_conclude(infer, LLMGW_GRPC_INTERNAL,
                       "a token cannot be written");
    }

    llmgateway__infer_response__free_unpacked(response, NULL);
}


static void
infer_on_end(llmgw_grpc_stream_t *stream, int status, const char *message)
{
    infer_t  *infer;

    infer = infer_of(stream);

    if (status == LLMGW_GRPC_OK && !infer->is_final) {
        infer_conclude(infer, LLMGW_GRPC_INTERNAL,
                       "the stream ended without its final token");
        return;
    }

    infer_conclude(infer, status, message);
}


static void
infer_on_close(llmgw_grpc_stream_t *stream, uint32_t http2_error,
    int is_refused)
{
    char  message[64];

    /* If the connection broke, infer_on_closed() reports the reason. */

    if (grpc_conn_session(infer_of(stream)->conn) == NULL) {
        return;
    }

    snprintf(message, sizeof(message), "stream reset, HTTP/2 error %u",
             http2_error);
    infer_conclude(infer_of(stream), LLMGW_GRPC_UNAVAILABLE, message);
}


static void
infer_on_closed(grpc_conn_t *conn, const char *reason)
{
    infer_t  *infer;

    infer = grpc_conn_data(conn);
    infer->conn = NULL;
    infer_conclude(infer, LLMGW_GRPC_UNAVAILABLE,
                   reason != NULL ? reason : "connection closed");
}


static void
infer_on_timeout(struct ev_loop *loop, ev_timer *w, int revents)
{
    infer_conclude(w->data, LLMGW_GRPC_DEADLINE_EXCEEDED,
                   "no answer within the timeout");
}


static int
infer_send(infer_t *infer, llmgw_grpc_stream_t *stream)
{
    Llmgateway__InferRequest  request = LLMGATEWAY__INFER_REQUEST__INIT;

    request.client_id = (char *) infer->options.client_id;
    request.prompt.data = (uint8_t *) infer->options.prompt;
    request.prompt.len = strlen(infer->options.prompt);
    request.max_tokens = (int32_t) infer->options.max_tokens;
    request.hedge = infer->options.is_hedged;

    return asker_send(stream, &request.base);
}


static int
infer_call(infer_t *infer)
{
    llmgw_grpc_call_t     call;
    llmgw_grpc_stream_t  *stream;

    memset(&call, 0, sizeof(call));
    call.path = "/llmgateway.InferenceGateway/Infer";
    call.authority = infer->options.gateway;
    call.timeout_ms = infer->options.timeout_ms;
    client_key_call(&infer->options.key, &call);
    call.data = infer;

    if (llmgw_grpc_call(grpc_conn_session(infer->conn), &call, &stream)
            != LLMGW_GRPC_DONE
        || infer_send(infer, stream) != 0)
    {
        return -1;
    }

    return 0;
}


static int
infer_connect(infer_t *infer)
{
    char                  error[TLS_ERROR_BYTES];
    address_t             address;
    client_tls_t         *tls;
    llmgw_grpc_config_t   config;

    static const llmgw_grpc_callbacks_t  callbacks = {
        .on_field = infer_on_field,
        .on_message = infer_on_message,
        .on_end = infer_on_end,
        .on_close = infer_on_close
    };

    tls = &infer->options.tls;

    if (client_tls_open(tls, infer->options.gateway, error) != 0
        || address_resolve(infer->options.gateway, &address, error) != 0)
    {
        infer_conclude(infer, LLMGW_GRPC_UNAVAILABLE, error);
        return -1;
    }

    memset(&config, 0, sizeof(config));
    config.callbacks = &callbacks;
    config.data = infer;

    infer->conn = grpc_conn_connect_with(infer->loop, &address,
                                         &tls->endpoint.conn, &config,
                                         INFER_CONNECT_TIMEOUT_MS,
                                         infer_on_closed);

    if (infer->conn == NULL || infer_call(infer) != 0) {
        infer_conclude(infer, LLMGW_GRPC_INTERNAL, "out of memory");
        return -1;
    }

    return 0;
}


static int
infer_run(infer_t *infer)
{
    infer->loop = ev_default_loop(EVFLAG_AUTO);

    if (infer->loop == NULL) {
        fprintf(stderr, "llmgw-client: no event loop\n");
        return 1;
    }

    infer->started_at = ev_time();
    infer_output_init(&infer->output, infer->options.is_json);

    ev_timer_init(&infer->timer, infer_on_timeout,
                  (double) (infer->options.timeout_ms + INFER_GRACE_MS) / 1000,
                  0);
    infer->timer.data = infer;

    if (infer->options.timeout_ms > 0) {
        ev_timer_start(infer->loop, &infer->timer);
    }

    if (infer_connect(infer) == 0) {
        ev_run(infer->loop, 0);
    }

    infer_output_end(&infer->output);

    if (infer->conn != NULL) {
        grpc_conn_destroy(infer->conn);
    }

    tls_endpoint_close(&infer->options.tls.endpoint);
    ev_loop_destroy(infer->loop);

    if (infer->status == LLMGW_GRPC_OK) {
        return 0;
    }

    infer_output_error(infer->status, infer->message, infer->reason);

    return 1;
}


int
infer_main(int argc, char **argv)
{
    int           rc, rest;
    char          error[TLS_ERROR_BYTES];
    infer_t       infer;
    options_rc_t  parsed;

    memset(&infer, 0, sizeof(infer));
    parsed = options_parse(&infer_spec, &infer.options, argc, argv, 0, &rest);
    rc = parsed == OPTIONS_EUSAGE ? 2 : 0;

    if (parsed == OPTIONS_DONE
        && (client_tls_check(&infer.options.tls, error) != 0
            || client_key_read(&infer.options.key, error) != 0))
    {
        fprintf(stderr, "llmgw-client infer: %s\n", error);
        rc = 2;

    } else if (parsed == OPTIONS_DONE) {
        rc = infer_run(&infer);
    }

    options_done(&infer_spec, &infer.options);

    return rc;
}
