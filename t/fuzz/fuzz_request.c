
/*
 * A client that sends any bytes: those after the preface of an HTTP/2
 * connection go to a server session as the gateway drives it, and the messages
 * that it reports go to the decoder of InferRequest.
 *
 * The first byte chooses how the input is cut; after each piece the server's
 * output is written to a buffer that is sometimes too small.  An input that is
 * not HTTP/2 at all is also decoded as one InferRequest, so that a corpus of
 * either kind is useful.
 */

#include <assert.h>
#include <stdlib.h>

#include <nghttp2/nghttp2.h>

#include "proto/grpc/session.h"
#include "llmgateway.pb-c.h"


#define MAX_MESSAGE_BYTES  (64 * 1024)

typedef struct {
    size_t  open;
    size_t  closed;
} counts_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);


static void
decode(const uint8_t *data, size_t len)
{
    size_t                     packed_bytes;
    uint8_t                   *packed;
    Llmgateway__InferRequest  *request;

    request = llmgateway__infer_request__unpack(NULL, len, data);
    if (request == NULL) {
        return;
    }

    /* Packing reads every field that was made of the input. */
    packed_bytes = llmgateway__infer_request__get_packed_size(request);
    packed = malloc(packed_bytes + 1);
    assert(packed != NULL);
    assert(llmgateway__infer_request__pack(request, packed) == packed_bytes);

    free(packed);
    llmgateway__infer_request__free_unpacked(request, NULL);
}


static counts_t *
counts_of(llmgw_grpc_stream_t *stream)
{
    return llmgw_grpc_session_data(llmgw_grpc_stream_session(stream));
}


static void
on_request(llmgw_grpc_stream_t *stream)
{
    counts_of(stream)->open++;
    assert(llmgw_grpc_stream_path(stream) != NULL);
}


static void
on_message(llmgw_grpc_stream_t *stream, const uint8_t *data, size_t len,
    size_t wire_bytes)
{
    assert(wire_bytes > 0 && len <= MAX_MESSAGE_BYTES);

    decode(data, len);
    (void) llmgw_grpc_send_message(stream, data, len);

    /* What a gateway may do with a message: consume it, keep it, end the
       stream. */
    switch (len % 5) {

    case 0:
        llmgw_grpc_stream_reset(stream, NGHTTP2_CANCEL);
        break;

    case 1:
        break;

    default:
        llmgw_grpc_stream_consume(stream, wire_bytes);
    }
}


static void
on_end(llmgw_grpc_stream_t *stream, int status, const char *message)
{
    const llmgw_grpc_field_t  trailer = { "x-fuzz", "1" };

    (void) llmgw_grpc_finish(stream, (llmgw_grpc_status_t) status, message,
                             &trailer, 1);
}


static void
on_close(llmgw_grpc_stream_t *stream, uint32_t http2_error, int is_refused)
{
    assert(!is_refused);
    counts_of(stream)->closed++;
}


static void
drain(llmgw_grpc_session_t *session, size_t capacity)
{
    uint8_t  buf[4096];

    while (llmgw_grpc_session_write(session, buf, capacity) > 0) {
        /* the network accepts the output */
    }
}


static void
feed(llmgw_grpc_session_t *session, const uint8_t *data, size_t len,
    size_t piece)
{
    size_t  n;

    while (len > 0) {
        n = len < piece ? len : piece;

        if (llmgw_grpc_session_recv(session, data, n) != LLMGW_GRPC_DONE) {
            return;
        }

        drain(session, piece % 2 ? 4096 : 13);
        data += n;
        len -= n;
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    counts_t                            counts = { 0, 0 };
    llmgw_grpc_session_t               *session;
    static const uint8_t                settings[9] = { 0, 0, 0, 4 };
    static const llmgw_grpc_callbacks_t callbacks = {
        .on_request = on_request,
        .on_message = on_message,
        .on_end = on_end,
        .on_close = on_close,
    };
    const llmgw_grpc_config_t           config = {
        .callbacks = &callbacks,
        .data = &counts,
        .max_message_bytes = MAX_MESSAGE_BYTES,
    };

    if (len < 1) {
        return 0;
    }

    decode(data + 1, len - 1);

    session = llmgw_grpc_server_create(&config);
    assert(session != NULL);

    feed(session, (const uint8_t *) NGHTTP2_CLIENT_MAGIC,
         NGHTTP2_CLIENT_MAGIC_LEN, NGHTTP2_CLIENT_MAGIC_LEN);
    feed(session, settings, sizeof(settings), sizeof(settings));
    feed(session, data + 1, len - 1, data[0] ? data[0] : len);

    llmgw_grpc_session_destroy(session);
    assert(counts.open == counts.closed);

    return 0;
}
