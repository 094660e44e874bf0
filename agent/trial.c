
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/grpc_conn.h"
#include "llmgateway.pb-c.h"
#include "trial.h"


#define TRIAL_PROMPT  "Does this replica work?"

struct trial_s {
    struct ev_loop      *loop;
    ev_timer             limit;
    ev_timer             over;          /* due at once: outside of callbacks */
    grpc_conn_t         *conn;
    uint64_t             timeout_ms;
    int                  is_final;      /* a final message came */
    int                  has_ended;
    char                 error[TRIAL_ERROR_BYTES];  /* "": it works */
    trial_done_pt        on_done;
    void                *data;
};


/* The first word on it counts. */
static void
trial_end(trial_t *trial, const char *what, const char *detail)
{
    if (trial->has_ended) {
        return;
    }

    trial->has_ended = 1;
    snprintf(trial->error, sizeof(trial->error), "%s%s%s", what,
             detail[0] ? ": " : "", detail);
    ev_timer_start(trial->loop, &trial->over);
}


static void
trial_on_message(llmgw_grpc_stream_t *stream, const uint8_t *data, size_t len,
    size_t wire_bytes)
{
    trial_t                        *trial;
    Llmgateway__GenerateResponse   *response;

    trial = llmgw_grpc_stream_data(stream);
    llmgw_grpc_stream_consume(stream, wire_bytes);

    response = llmgateway__generate_response__unpack(NULL, len, data);
    if (response == NULL) {
        trial_end(trial, "its message cannot be read", "");
        return;
    }

    trial->is_final |= response->is_final;
    llmgateway__generate_response__free_unpacked(response, NULL);
}


static void
trial_on_end(llmgw_grpc_stream_t *stream, int status, const char *message)
{
    trial_t  *trial;

    trial = llmgw_grpc_stream_data(stream);

    if (status != LLMGW_GRPC_OK) {
        trial_end(trial, llmgw_grpc_status_name(status), message);

    } else if (!trial->is_final) {
        trial_end(trial, "it ended without a final token", "");

    } else {
        trial_end(trial, "", "");
    }
}


static void
trial_on_close(llmgw_grpc_stream_t *stream, uint32_t http2_error,
    int is_refused)
{
    trial_end(llmgw_grpc_stream_data(stream), "the stream was reset", "");
}


static const llmgw_grpc_callbacks_t  trial_callbacks = {
    .on_message = trial_on_message,
    .on_end = trial_on_end,
    .on_close = trial_on_close
};


static void
trial_on_closed(grpc_conn_t *conn, const char *reason)
{
    trial_t  *trial;

    trial = grpc_conn_data(conn);
    trial->conn = NULL;

    /* More than the stream's end says, which came before. */
    if (!trial->has_ended || strcmp(trial->error, "the stream was reset") == 0)
    {
        trial->has_ended = 0;
        trial_end(trial, reason ? reason : "it closed the connection", "");
    }
}


static void
trial_on_limit(struct ev_loop *loop, ev_timer *limit, int events)
{
    char      text[64];
    trial_t  *trial = limit->data;

    snprintf(text, sizeof(text), "no answer after %.3g s",
             trial->timeout_ms / 1e3);
    trial_end(trial, text, "");
}


static void
trial_on_over(struct ev_loop *loop, ev_timer *over, int events)
{
    char            error[TRIAL_ERROR_BYTES];
    void           *data;
    trial_t        *trial = over->data;
    trial_done_pt   on_done;

    memcpy(error, trial->error, sizeof(error));
    on_done = trial->on_done;
    data = trial->data;

    trial_destroy(trial);
    on_done(data, error[0] ? error : NULL);
}


static int
trial_ask(trial_t *trial, const char *authority, const char *request_id)
{
    uint8_t                       *out;
    llmgw_grpc_call_t              call;
    llmgw_grpc_stream_t           *stream;
    Llmgateway__GenerateRequest    request
        = LLMGATEWAY__GENERATE_REQUEST__INIT;

    memset(&call, 0, sizeof(call));
    call.path = "/llmgateway.LLMReplica/Generate";
    call.authority = authority;
    call.timeout_ms = trial->timeout_ms;
    call.data = trial;

    if (llmgw_grpc_call(grpc_conn_session(trial->conn), &call, &stream)
        != LLMGW_GRPC_DONE)
    {
        return -1;
    }

    request.request_id = (char *) request_id;
    request.prompt.data = (uint8_t *) TRIAL_PROMPT;
    request.prompt.len = sizeof(TRIAL_PROMPT) - 1;
    request.max_tokens = 1;

    out = llmgw_grpc_send_reserve(stream,
              llmgateway__generate_request__get_packed_size(&request));
    if (out == NULL) {
        return -1;
    }

    (void) llmgateway__generate_request__pack(&request, out);

    if (llmgw_grpc_half_close(stream) != LLMGW_GRPC_DONE) {
        return -1;
    }

    grpc_conn_wake(trial->conn);

    return 0;
}


static trial_t *
trial_create(struct ev_loop *loop, uint64_t timeout_ms, trial_done_pt on_done,
    void *data)
{
    trial_t  *trial;

    trial = calloc(1, sizeof(trial_t));
    if (trial == NULL) {
        return NULL;
    }

    trial->loop = loop;
    trial->timeout_ms = timeout_ms;
    trial->on_done = on_done;
    trial->data = data;

    ev_timer_init(&trial->limit, trial_on_limit, timeout_ms / 1e3, 0.);
    ev_timer_init(&trial->over, trial_on_over, 0., 0.);
    trial->limit.data = trial;
    trial->over.data = trial;
    ev_timer_start(loop, &trial->limit);

    return trial;
}


trial_t *
trial_start(struct ev_loop *loop, const char *address, const char *request_id,
    uint64_t timeout_ms, trial_done_pt on_done, void *data, char *error)
{
    trial_t              *trial;
    address_t             parsed;
    llmgw_grpc_config_t   config;

    if (address_parse(address, &parsed) != 0) {
        snprintf(error, TRIAL_ERROR_BYTES, "\"%s\" is no numeric address",
                 address);
        return NULL;
    }

    trial = trial_create(loop, timeout_ms, on_done, data);
    if (trial == NULL) {
        snprintf(error, TRIAL_ERROR_BYTES, "out of memory");
        return NULL;
    }

    memset(&config, 0, sizeof(config));
    config.callbacks = &trial_callbacks;
    config.data = trial;

    trial->conn = grpc_conn_connect(loop, &parsed, &config, timeout_ms,
                                    trial_on_closed);
    if (trial->conn == NULL || trial_ask(trial, address, request_id) != 0) {
        snprintf(error, TRIAL_ERROR_BYTES, "cannot connect: %s",
                 strerror(errno));
        trial_destroy(trial);
        return NULL;
    }

    return trial;
}


void
trial_destroy(trial_t *trial)
{
    trial->has_ended = 1;           /* whatever the streams say now */

    if (trial->conn != NULL) {
        grpc_conn_destroy(trial->conn);
    }

    ev_timer_stop(trial->loop, &trial->limit);
    ev_timer_stop(trial->loop, &trial->over);
    free(trial);
}
