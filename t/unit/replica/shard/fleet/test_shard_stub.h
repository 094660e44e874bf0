
/*
 * A shard in the test's own loop, over real sockets.  It answers in the way
 * that it is told, so that a test can get each wrong answer; it adds 1 to the
 * values that it gets, and its logits are positions.
 */

#ifndef TEST_SHARD_STUB_H
#define TEST_SHARD_STUB_H

#include "replica/shard/fleet/peer.h"
#include "shard.pb-c.h"
#include "t/unit/replica/shard/fleet/test_fleet_support.h"


#define PORT_FIRST    21600
#define PORT_LAST     21699

/* How the shard answers. */
typedef enum {
    RIGHT = 0,
    IS_SILENT,              /* no answer to the Open */
    REFUSES_OPEN,
    OPENS_WIDER,
    OPENS_TWICE,
    OPENS_WITHOUT_ROWS,
    OPENS_ANOTHER,
    NEVER_STARTS,           /* a Result without a Started */
    STARTS_ANOTHER,
    STARTS_TWICE,
    RESULT_OF_ANOTHER,
    RESULT_TWICE,
    RESULT_SHORT,           /* one row less, and so declared */
    RESULT_CUT,             /* one byte less than declared */
    RESULT_CHUNKED,         /* more chunks than declared */
    RESULT_LOGITS,          /* logits of a shard with none */
    SAYS_NOTHING,           /* a message without a kind */
    SAYS_GARBAGE,
    REFUSES_STEP,
    FINISHES,               /* with a status; a reason or none */
    RESETS,
    KEEPS_STEPS             /* never answers a Step */
} way_t;

typedef struct {
    grpc_server_t         *server;
    address_t              address;
    way_t                  way;
    shard_reason_t         refusal;
    uint32_t               width;
    tensor_dtype_t         dtype;
    int                    nopens;
    int                    ncloses;
    int                    nended;      /* ended by the client */
    int                    nreset;
    uint32_t               last_rows;
    Llmgateway__Shard__Open  *open;     /* the last one; unpacked */
    Llmgateway__Shard__Request  *request;
} shard_t;


/* --- the shard */

static inline void
reply(llmgw_grpc_stream_t *stream, Llmgateway__Shard__Reply *message)
{
    size_t    len;
    uint8_t  *to;

    len = llmgateway__shard__reply__get_packed_size(message);
    to = llmgw_grpc_send_reserve(stream, len);
    assert_non_null(to);
    llmgateway__shard__reply__pack(message, to);
}


static inline void
reply_refused(llmgw_grpc_stream_t *stream, uint64_t session,
    shard_reason_t reason)
{
    llmgw_grpc_field_t           field;
    Llmgateway__Shard__Reply     message = LLMGATEWAY__SHARD__REPLY__INIT;
    Llmgateway__Shard__Refused   refused = LLMGATEWAY__SHARD__REFUSED__INIT;

    refused.session = session;
    refused.reason = (char *) shard_reason_name(reason);
    refused.text = "no\nplace";
    message.kind_case = LLMGATEWAY__SHARD__REPLY__KIND_REFUSED;
    message.refused = &refused;
    reply(stream, &message);

    field.name = "llmgw-reason";
    field.value = shard_reason_name(reason);
    llmgw_grpc_finish(stream, shard_reason_status(reason), "", &field, 1);
}


static inline void
reply_opened(shard_t *shard, llmgw_grpc_stream_t *stream,
    const Llmgateway__Shard__Open *open)
{
    Llmgateway__Shard__Reply    message = LLMGATEWAY__SHARD__REPLY__INIT;
    Llmgateway__Shard__Opened   opened = LLMGATEWAY__SHARD__OPENED__INIT;

    opened.session = open->session + (shard->way == OPENS_ANOTHER);
    opened.context = 512;
    opened.max_rows = shard->way == OPENS_WITHOUT_ROWS ? 0 : SHARD_ROWS_MAX;
    opened.width = shard->width + (shard->way == OPENS_WIDER);
    opened.vocabulary = open->last_layer == SCENE_LAYERS - 1 ? SCENE_VOCABULARY
                                                            : 0;
    message.kind_case = LLMGATEWAY__SHARD__REPLY__KIND_OPENED;
    message.opened = &opened;
    reply(stream, &message);

    if (shard->way == OPENS_TWICE) {
        reply(stream, &message);
    }
}


static inline void
reply_started(shard_t *shard, llmgw_grpc_stream_t *stream,
    const Llmgateway__Shard__Step *step)
{
    Llmgateway__Shard__Reply    message = LLMGATEWAY__SHARD__REPLY__INIT;
    Llmgateway__Shard__Started  started = LLMGATEWAY__SHARD__STARTED__INIT;

    started.session = step->session;
    started.position = step->position + (shard->way == STARTS_ANOTHER);
    message.kind_case = LLMGATEWAY__SHARD__REPLY__KIND_STARTED;
    message.started = &started;

    if (shard->way != NEVER_STARTS) {
        reply(stream, &message);
    }

    if (shard->way == STARTS_TWICE) {
        reply(stream, &message);
    }
}


/*
 * The logits that a last shard gives for a step, or the rows that another
 * gives.
 */
static inline float *
compute(const shard_t *shard, const Llmgateway__Shard__Step *step,
    const float *in, int is_last, uint32_t *rows, uint32_t *width)
{
    float     *out;
    uint32_t   i;

    *rows = is_last ? step->logits_rows : step->rows;
    *width = is_last ? SCENE_VOCABULARY : shard->width;
    out = malloc(((size_t) *rows * *width + 1) * sizeof(float));

    for (i = 0; i < *rows * *width; i++) {
        out[i] = is_last ? (float) (step->position + step->rows - *rows
                                    + i / *width)
                         : in[i] + 1;
    }

    return out;
}


static inline void
reply_result(shard_t *shard, llmgw_grpc_stream_t *stream,
    const Llmgateway__Shard__Step *step, const float *in)
{
    int                         is_last;
    float                      *out;
    uint8_t                    *data;
    uint32_t                    rows, width, chunks;
    uint64_t                    bytes;
    tensor_dtype_t              dtype;
    Llmgateway__Shard__Reply    message = LLMGATEWAY__SHARD__REPLY__INIT;
    Llmgateway__Shard__Result   result = LLMGATEWAY__SHARD__RESULT__INIT;

    is_last = shard->open->last_layer == SCENE_LAYERS - 1;
    out = compute(shard, step, in, is_last, &rows, &width);
    dtype = is_last ? TENSOR_FP32 : shard->dtype;
    rows -= shard->way == RESULT_SHORT;
    bytes = tensor_bytes(rows, width, dtype);
    chunks = tensor_chunks(bytes);
    data = malloc(SHARD_CHUNK_BYTES);

    result.session = step->session;
    result.position = step->position + (shard->way == RESULT_OF_ANOTHER);
    result.rows = rows;
    result.is_logits = (rows > 0 && is_last) || shard->way == RESULT_LOGITS;
    result.chunks = chunks + (shard->way == RESULT_CHUNKED);
    result.data.data = data;
    message.kind_case = LLMGATEWAY__SHARD__REPLY__KIND_RESULT;
    message.result = &result;

    do {
        if (rows > 0) {
            tensor_write(data, out, bytes, result.chunk, dtype);
            result.data.len = tensor_chunk_bytes(bytes, result.chunk)
                              - (shard->way == RESULT_CUT);
        }

        reply(stream, &message);
    } while (++result.chunk < chunks);

    if (shard->way == RESULT_TWICE) {
        result.chunk = 0;
        reply(stream, &message);
    }

    free(data);
    free(out);
}


static inline void
shard_step(shard_t *shard, llmgw_grpc_stream_t *stream,
    const Llmgateway__Shard__Step *step)
{
    float     *in;
    uint64_t   bytes;

    bytes = tensor_bytes(step->rows, shard->width, shard->dtype);
    assert_int_equal(step->chunks, tensor_chunks(bytes));
    assert_int_equal(step->data.len, tensor_chunk_bytes(bytes, step->chunk));
    in = llmgw_grpc_stream_data(stream);

    if (step->chunk == 0) {
        assert_null(in);
        in = malloc((size_t) step->rows * shard->width * sizeof(float));
        llmgw_grpc_stream_set_data(stream, in);
    }

    tensor_read(in, step->data.data, bytes, step->chunk, shard->dtype);

    if (step->chunk + 1 < step->chunks) {
        return;
    }

    llmgw_grpc_stream_set_data(stream, NULL);
    shard->last_rows = step->rows;

    if (shard->way == REFUSES_STEP) {
        reply_refused(stream, step->session, shard->refusal);
        shard->way = KEEPS_STEPS;

    } else if (shard->way != KEEPS_STEPS) {
        reply_started(shard, stream, step);
        reply_result(shard, stream, step, in);
    }

    free(in);
}


/* Does what the way asks for instead of opening.  0: the shard opens. */
static inline int
shard_misbehaves(shard_t *shard, llmgw_grpc_stream_t *stream,
    uint64_t session)
{
    llmgw_grpc_field_t         field = { "llmgw-reason", "" };
    Llmgateway__Shard__Reply   message = LLMGATEWAY__SHARD__REPLY__INIT;

    switch (shard->way) {

    case IS_SILENT:
        return 1;

    case REFUSES_OPEN:
        reply_refused(stream, session, shard->refusal);
        return 1;

    case SAYS_NOTHING:
        reply(stream, &message);
        return 1;

    case SAYS_GARBAGE:
        llmgw_grpc_send_message(stream, (const uint8_t *) "\377\377\377", 3);
        return 1;

    case FINISHES:
        field.value = shard_reason_name(shard->refusal);
        llmgw_grpc_finish(stream, LLMGW_GRPC_RESOURCE_EXHAUSTED, "enough",
                          &field, shard->refusal != SHARD_OK);
        return 1;

    case RESETS:
        llmgw_grpc_stream_reset(stream, 2);
        return 1;

    default:
        return 0;
    }
}


static inline shard_t *
shard_of(llmgw_grpc_stream_t *stream)
{
    return grpc_conn_data(llmgw_grpc_session_data(
                              llmgw_grpc_stream_session(stream)));
}


static inline void
shard_on_message(llmgw_grpc_stream_t *stream, const uint8_t *data, size_t len,
    size_t wire_bytes)
{
    shard_t                     *shard;
    Llmgateway__Shard__Request  *request;

    (void) llmgw_grpc_stream_consume(stream, wire_bytes);
    shard = shard_of(stream);
    request = llmgateway__shard__request__unpack(NULL, len, data);
    assert_non_null(request);

    if (request->kind_case == LLMGATEWAY__SHARD__REQUEST__KIND_OPEN) {
        if (shard->request != NULL) {
            llmgateway__shard__request__free_unpacked(shard->request, NULL);
        }

        shard->request = request;
        shard->open = request->open;
        shard->nopens++;

        if (!shard_misbehaves(shard, stream, request->open->session)) {
            reply_opened(shard, stream, request->open);
        }

        return;
    }

    if (request->kind_case == LLMGATEWAY__SHARD__REQUEST__KIND_STEP) {
        shard_step(shard, stream, request->step);

    } else {
        assert_int_equal(request->kind_case,
                         LLMGATEWAY__SHARD__REQUEST__KIND_CLOSE);
        shard->ncloses++;
    }

    llmgateway__shard__request__free_unpacked(request, NULL);
}


static inline void
shard_on_end(llmgw_grpc_stream_t *stream, int status, const char *message)
{
    shard_t  *shard;

    shard = shard_of(stream);

    if (shard->way != IS_SILENT) {
        llmgw_grpc_finish(stream, LLMGW_GRPC_OK, NULL, NULL, 0);
    }

    shard->nended++;
}


static inline void
shard_on_close(llmgw_grpc_stream_t *stream, uint32_t http2_error,
    int is_refused)
{
    shard_of(stream)->nreset += http2_error == 8;
    free(llmgw_grpc_stream_data(stream));
}


static const llmgw_grpc_callbacks_t  shard_callbacks = {
    .on_message = shard_on_message,
    .on_end = shard_on_end,
    .on_close = shard_on_close
};


static inline void
shard_listen(shard_t *shard, struct ev_loop *loop)
{
    int                  port;
    char                 text[ADDRESS_TEXT_BYTES], error[256];
    llmgw_grpc_config_t  config;

    memset(&config, 0, sizeof(config));
    config.callbacks = &shard_callbacks;
    config.data = shard;
    config.max_message_bytes = SHARD_MESSAGE_BYTES;
    config.stream_window_bytes = SHARD_WINDOW_BYTES;

    for (port = PORT_FIRST; !shard->server && port <= PORT_LAST; port++) {
        snprintf(text, sizeof(text), "127.0.0.1:%d", port);
        assert_int_equal(address_parse(text, &shard->address), 0);
        shard->server = grpc_server_create(loop, &shard->address, &config, 8,
                                           error);
    }

    assert_non_null(shard->server);
}

#endif /* TEST_SHARD_STUB_H */
