
/*
 * A session's answers: which may come, and what they must look like.
 *
 * Steps are answered in their order, so the ring of outstanding steps
 * determines what a Started or a Result must look like, down to its number of
 * bytes: no allocation depends on a number that a shard sends.
 */

#include <stdlib.h>
#include <string.h>

#include "replica/shard/fleet/peer.h"
#include "shard.pb-c.h"


/* To be called after a callback.  0: it has closed the session, or the session
   is lost. */
static int
answer_called(link_session_t *s)
{
    s->is_calling = 0;

    if (s->state == LINK_CLOSED) {
        link_free(s);
        return 0;
    }

    return s->state == LINK_OPEN;
}


static void
answer_opened(link_session_t *s, const Llmgateway__Shard__Opened *opened)
{
    const fleet_t  *f;

    f = s->fleet;

    if (s->state != LINK_OPENING) {
        link_break(s, SHARD_BAD_SHAPE, "Opened twice");
        return;
    }

    if (opened->width != f->want.width || opened->context == 0
        || opened->max_rows == 0 || opened->max_rows > SHARD_ROWS_MAX
        || (s->is_last && opened->vocabulary != f->want.vocabulary))
    {
        link_break(s, SHARD_BAD_SHAPE, "Opened with another model's shape");
        return;
    }

    s->state = LINK_OPEN;
    s->max_rows = opened->max_rows;

    s->is_calling = 1;
    s->callbacks->on_opened(s->data, s->max_rows);
    (void) answer_called(s);
}


static int
answer_call_started(link_session_t *s, link_wanted_t *wanted)
{
    wanted->is_started = 1;
    s->is_calling = 1;
    s->callbacks->on_started(s->data, wanted->position);

    return answer_called(s);
}


static void
answer_started(link_session_t *s, const Llmgateway__Shard__Started *started)
{
    size_t          i;
    link_wanted_t  *wanted;

    for (i = 0; i < s->nsteps; i++) {
        wanted = &s->steps[(s->oldest + i) % SHARD_STEPS_MAX];

        if (!wanted->is_started) {
            break;
        }
    }

    if (i == s->nsteps || wanted->position != started->position) {
        link_break(s, SHARD_BAD_POSITION, "Started what was not next");
        return;
    }

    (void) answer_call_started(s, wanted);
}


/* The shape of a step's whole result: rows, and numbers in each row. */
static void
answer_result_shape(const link_session_t *s, const link_wanted_t *wanted,
    uint32_t *rows, uint32_t *width, tensor_dtype_t *dtype)
{
    if (s->is_last) {
        *rows = wanted->logits_rows;
        *width = s->fleet->want.vocabulary;
        *dtype = TENSOR_FP32;

    } else {
        *rows = wanted->rows;
        *width = s->fleet->want.width;
        *dtype = s->fleet->options.dtype;
    }
}


/* Whether the message is the next chunk of that tensor. */
static int
answer_result_is_right(const link_session_t *s,
    const Llmgateway__Shard__Result *result, uint32_t rows, uint64_t bytes)
{
    if (result->rows != rows) {
        return 0;
    }

    if (rows == 0) {
        return result->data.len == 0;
    }

    return !result->is_logits == !s->is_last
           && result->chunks == tensor_chunks(bytes)
           && result->chunk == s->chunk
           && result->data.len == tensor_chunk_bytes(bytes, s->chunk);
}


static int
answer_reserve(link_session_t *s, uint64_t rows, uint32_t width)
{
    float   *values;
    size_t   bytes;

    bytes = rows * width * sizeof(float);

    if (bytes <= s->values_bytes) {
        return 0;
    }

    values = realloc(s->values, bytes);

    if (values == NULL) {
        return -1;
    }

    s->values = values;
    s->values_bytes = bytes;

    return 0;
}


static void
answer_call_result(link_session_t *s, uint32_t rows)
{
    uint32_t  position;

    position = s->steps[s->oldest].position;
    s->oldest = (s->oldest + 1) % SHARD_STEPS_MAX;
    s->nsteps--;
    s->chunk = 0;

    s->is_calling = 1;
    s->callbacks->on_result(s->data, position, rows, rows > 0 && s->is_last,
                            s->values);
    (void) answer_called(s);
}


static void
answer_result(link_session_t *s, const Llmgateway__Shard__Result *result)
{
    uint32_t         rows, width;
    uint64_t         bytes;
    link_wanted_t   *wanted;
    tensor_dtype_t   dtype;

    wanted = &s->steps[s->oldest];

    if (s->nsteps == 0 || wanted->position != result->position) {
        link_break(s, SHARD_BAD_POSITION, "a Result for no step");
        return;
    }

    answer_result_shape(s, wanted, &rows, &width, &dtype);
    bytes = tensor_bytes(rows, width, dtype);

    if (!answer_result_is_right(s, result, rows, bytes)) {
        link_break(s, SHARD_BAD_SHAPE, "a Result of another shape");
        return;
    }

    if (answer_reserve(s, rows, width) != 0) {
        link_break(s, SHARD_OUT_OF_MEMORY, "out of memory");
        return;
    }

    if (rows > 0) {
        tensor_read(s->values, result->data.data, bytes, s->chunk, dtype);

        if (++s->chunk < tensor_chunks(bytes)) {
            return;
        }
    }

    if (wanted->is_started || answer_call_started(s, wanted)) {
        answer_call_result(s, rows);
    }
}


static void
answer_refused(link_session_t *s, const Llmgateway__Shard__Refused *refused)
{
    shard_reason_t  reason;

    reason = shard_reason_parse(refused->reason, strlen(refused->reason));

    if (reason == SHARD_FULL) {
        s->shard->full_until_ms = fleet_now_ms() + PEER_FULL_MS;
    }

    line_leave(s->line);
    link_lose(s, reason, "%s", refused->text);
}


static void
answer_take(link_session_t *s, const Llmgateway__Shard__Reply *reply)
{
    switch (reply->kind_case) {

    case LLMGATEWAY__SHARD__REPLY__KIND_OPENED:
        answer_opened(s, reply->opened);
        break;

    case LLMGATEWAY__SHARD__REPLY__KIND_STARTED:
        answer_started(s, reply->started);
        break;

    case LLMGATEWAY__SHARD__REPLY__KIND_RESULT:
        answer_result(s, reply->result);
        break;

    case LLMGATEWAY__SHARD__REPLY__KIND_REFUSED:
        answer_refused(s, reply->refused);
        break;

    default:
        link_break(s, SHARD_BAD_SHAPE, "a message of no known kind");
    }
}


/* Every kind of reply begins with the session's number. */
static uint64_t
answer_session(const Llmgateway__Shard__Reply *reply)
{
    switch (reply->kind_case) {

    case LLMGATEWAY__SHARD__REPLY__KIND_OPENED:
        return reply->opened->session;

    case LLMGATEWAY__SHARD__REPLY__KIND_STARTED:
        return reply->started->session;

    case LLMGATEWAY__SHARD__REPLY__KIND_RESULT:
        return reply->result->session;

    case LLMGATEWAY__SHARD__REPLY__KIND_REFUSED:
        return reply->refused->session;

    default:
        return 0;
    }
}


void
answer_on_message(link_session_t *s, const uint8_t *message, size_t len)
{
    Llmgateway__Shard__Reply  *reply;

    reply = llmgateway__shard__reply__unpack(NULL, len, message);

    if (reply == NULL) {
        link_break(s, SHARD_BAD_SHAPE, "a message that is none");
        return;
    }

    if (reply->kind_case != LLMGATEWAY__SHARD__REPLY__KIND__NOT_SET
        && answer_session(reply) != s->id)
    {
        link_break(s, SHARD_BAD_SHAPE, "a message of another session");

    } else {
        answer_take(s, reply);
    }

    llmgateway__shard__reply__free_unpacked(reply, NULL);
}


/* The stream ended without a Refused: the server is no shard, or has given
   up. */
void
answer_on_end(link_session_t *s, int status, const char *text)
{
    shard_reason_t  reason;

    reason = shard_reason_parse(s->line->reason, strlen(s->line->reason));

    if (s->line->reason[0] == '\0' && status == LLMGW_GRPC_RESOURCE_EXHAUSTED)
    {
        reason = SHARD_FULL;
    }

    if (s->line->reason[0] != '\0') {
        link_lose(s, reason, "%s", s->line->reason);

    } else {
        link_lose(s, reason, "the stream ended with %s%s%s",
                  llmgw_grpc_status_name(status), text[0] ? ": " : "", text);
    }
}
