
/*
 * Cuts the DATA of one stream into gRPC messages: a flag byte, four bytes of
 * length, the message.  Frames and messages are cut independently of each
 * other.  The usual case is one whole message in one piece of input, which is
 * returned in place, without a copy.  A message that comes in pieces is put
 * together in `body`.
 *
 * The window
 *
 *   The caller returns the bytes of a whole message to the window by consuming
 *   it.  A message larger than the window could never become whole that way, so
 *   the bytes of an unfinished message are returned as they arrive, but only
 *   while the caller has consumed all earlier messages: then the sender waits
 *   only for us.  A message's wire_bytes are those not yet returned.  So a
 *   stream can make us buffer at most its window and one message.
 *
 *   In llmgw_grpc_reader_t, `partial` counts the bytes of the unfinished
 *   message that are not returned, and `unconsumed` those of whole messages.
 *
 *         bytes of an unfinished message        the message is whole
 *                  |                                  |
 *               partial ------------------------> unconsumed
 *                  | unconsumed is 0                  | consume
 *                  v                                  v
 *               returned                           returned
 */

#include <string.h>

#include "proto/grpc/session_inner.h"


static void
reader_restart(llmgw_grpc_reader_t *reader)
{
    reader->is_whole = 0;
    reader->prefix_bytes = 0;
    llmgw_grpc_buf_clear(&reader->body);
}


static size_t
reader_take(llmgw_grpc_reader_t *reader, const uint8_t **data, size_t *len,
    size_t n)
{
    if (n > *len) {
        n = *len;
    }

    *data += n;
    *len -= n;
    reader->partial += n;

    return n;
}


static llmgw_grpc_read_t
reader_prefix(llmgw_grpc_reader_t *reader, size_t max_message_bytes,
    const uint8_t **data, size_t *len)
{
    size_t          n;
    const uint8_t  *p;

    p = *data;
    n = reader_take(reader, data, len,
                    LLMGW_GRPC_PREFIX_BYTES - reader->prefix_bytes);
    memcpy(reader->prefix + reader->prefix_bytes, p, n);
    reader->prefix_bytes += (uint8_t) n;

    if (reader->prefix_bytes < LLMGW_GRPC_PREFIX_BYTES) {
        return LLMGW_GRPC_READ_MORE;
    }

    if (reader->prefix[0] != 0) {
        return LLMGW_GRPC_READ_COMPRESSED;
    }

    reader->message_bytes = llmgw_grpc_prefix_len(reader->prefix);

    if (reader->message_bytes > max_message_bytes) {
        return LLMGW_GRPC_READ_TOO_LARGE;
    }

    return LLMGW_GRPC_READ_MESSAGE;
}


static llmgw_grpc_read_t
reader_body(llmgw_grpc_reader_t *reader, const uint8_t **data, size_t *len,
    llmgw_grpc_message_t *message)
{
    size_t          n, have;
    const uint8_t  *p;

    have = llmgw_grpc_buf_len(&reader->body);
    p = *data;
    n = reader_take(reader, data, len, reader->message_bytes - have);

    message->data = p;
    message->len = reader->message_bytes;

    if (n < reader->message_bytes) {

        /* allocate for bytes that came, never for the length the peer claims */
        if (llmgw_grpc_buf_append(&reader->body, p, n) != 0) {
            return LLMGW_GRPC_READ_ENOMEM;
        }

        if (have + n < reader->message_bytes) {
            return LLMGW_GRPC_READ_MORE;
        }

        message->data = reader->body.data + reader->body.start;
    }

    message->wire_bytes = reader->partial;
    reader->unconsumed += reader->partial;
    reader->partial = 0;
    reader->is_whole = 1;

    return LLMGW_GRPC_READ_MESSAGE;
}


/*
 * The usual case: a message in one piece, with nothing buffered before it.  1:
 * the message was returned, and the reader's state is unchanged.
 */
static int
reader_whole(llmgw_grpc_reader_t *reader, size_t max_message_bytes,
    const uint8_t **data, size_t *len, llmgw_grpc_message_t *message)
{
    size_t          message_bytes;
    const uint8_t  *p;

    p = *data;

    if (*len < LLMGW_GRPC_PREFIX_BYTES || p[0] != 0) {
        return 0;
    }

    message_bytes = llmgw_grpc_prefix_len(p);

    if (message_bytes > *len - LLMGW_GRPC_PREFIX_BYTES
        || message_bytes > max_message_bytes)
    {
        return 0;
    }

    message->data = p + LLMGW_GRPC_PREFIX_BYTES;
    message->len = message_bytes;
    message->wire_bytes = LLMGW_GRPC_PREFIX_BYTES + message_bytes;

    *data += message->wire_bytes;
    *len -= message->wire_bytes;
    reader->unconsumed += message->wire_bytes;

    return 1;
}


llmgw_grpc_read_t
llmgw_grpc_reader_next(llmgw_grpc_reader_t *reader, size_t max_message_bytes,
    const uint8_t **data, size_t *len, llmgw_grpc_message_t *message)
{
    llmgw_grpc_read_t  rc;

    if (reader->is_whole) {
        reader_restart(reader);
    }

    if (*len == 0) {
        return LLMGW_GRPC_READ_MORE;
    }

    if (reader->prefix_bytes == 0
        && reader_whole(reader, max_message_bytes, data, len, message))
    {
        return LLMGW_GRPC_READ_MESSAGE;
    }

    if (reader->prefix_bytes < LLMGW_GRPC_PREFIX_BYTES) {
        rc = reader_prefix(reader, max_message_bytes, data, len);
        if (rc != LLMGW_GRPC_READ_MESSAGE) {
            return rc;
        }

        if (*len == 0 && reader->message_bytes > 0) {
            return LLMGW_GRPC_READ_MORE;
        }
    }

    return reader_body(reader, data, len, message);
}


int
llmgw_grpc_reader_is_within(const llmgw_grpc_reader_t *reader)
{
    return reader->prefix_bytes > 0 && !reader->is_whole;
}


size_t
llmgw_grpc_reader_release(llmgw_grpc_reader_t *reader, size_t wire_bytes)
{
    if (wire_bytes > reader->unconsumed) {
        wire_bytes = reader->unconsumed;
    }

    reader->unconsumed -= wire_bytes;

    if (reader->unconsumed == 0) {
        wire_bytes += reader->partial;
        reader->partial = 0;
    }

    return wire_bytes;
}
