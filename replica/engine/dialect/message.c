
/*
 * Messages to the gateway.
 *
 * Ids may run ahead of the text: a character may take several tokens, and the
 * engine sends text when it is whole.  Ids without text are withheld here until
 * text comes, or the end.  So after each message the delivered text is that of
 * the delivered ids.
 */

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "replica/engine/dialect/dialect_inner.h"


#define MESSAGE_FIRST_IDS  16


void
message_begin(dialect_call_t *call)
{
    llmgateway__generate_response__init(&call->message);
    call->data.len = 0;
    call->token.len = 0;
    call->reasons.len = 0;
    call->has_message = 0;
}


int
message_id(dialect_call_t *call, uint32_t id)
{
    size_t     size;
    uint32_t  *grown;

    if (call->nids == call->ids_size) {
        size = call->ids_size == 0 ? MESSAGE_FIRST_IDS : 2 * call->ids_size;
        grown = size > CALL_MAX_EVENT_IDS ? NULL
                : realloc(call->ids, size * sizeof(uint32_t));

        if (grown == NULL) {
            return -1;
        }

        call->ids = grown;
        call->ids_size = size;
    }

    call->ids[call->nids++] = id;

    return 0;
}


void
message_ids(dialect_call_t *call, llmgw_json_t ids, int *is_wrong)
{
    uint64_t            id;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    if (!llmgw_json_is_null(ids) && ids.kind != LLMGW_JSON_ARRAY) {
        *is_wrong = 1;
    }

    for (items = llmgw_json_elements(ids); llmgw_json_next(&items, &item); ) {
        if (llmgw_json_uint(item.value, INT32_MAX, &id) != 0
            || message_id(call, (uint32_t) id) != 0)
        {
            *is_wrong = 1;
            return;
        }
    }
}


int
message_finish(dialect_call_t *call, uint32_t index, llmgw_json_t reason)
{
    size_t       n;
    finishes_t  *f;

    n = call->message.n_finish;

    if (reason.kind != LLMGW_JSON_STRING || n == CALL_MAX_FINISH) {
        return -1;
    }

    if (call->finishes == NULL) {
        call->finishes = malloc(sizeof(finishes_t));
    }

    if (call->finishes == NULL) {
        return -1;
    }

    /* The reasons' memory may still move, so message_end() sets the
       pointers. */
    f = call->finishes;
    f->reason_at[n] = call->reasons.len;
    buf_unescape(&call->reasons, reason);
    buf_add(&call->reasons, "", 1);

    llmgateway__finish__init(&f->finish[n]);
    f->finish[n].index = index;
    f->list[n] = &f->finish[n];
    call->message.finish = f->list;
    call->message.n_finish++;

    if (!(call->finished[index / 64] >> (index % 64) & 1)) {
        call->finished[index / 64] |= (uint64_t) 1 << (index % 64);
        call->nfinished++;
    }

    return 0;
}


/*
 * The usage of the whole stream: the prompt as the first engine counted it, and
 * all tokens.  An engine that resumes does not know how many of the earlier
 * tokens were reasoning.
 */
void
message_usage(dialect_call_t *call, const Llmgateway__Usage *counted)
{
    call->usage = *counted;

    if (call->goes_on && call->base_prompt != 0) {
        call->usage.prompt_tokens = call->base_prompt;
        call->usage.cached_tokens = call->base_cached;

    } else if (call->goes_on && counted->prompt_tokens >= call->base_tokens) {
        call->usage.prompt_tokens -= call->base_tokens;
    }

    call->usage.completion_tokens += call->base_tokens;
    call->usage.reasoning_tokens = call->goes_on ? 0
                                                 : counted->reasoning_tokens;
    call->message.usage = &call->usage;
}


/* Whether this member is counted here for the whole stream. */
static int
message_usage_is_ours(const dialect_call_t *call, llmgw_json_t key)
{
    return llmgw_json_is(key, "prompt_tokens")
           || llmgw_json_is(key, "completion_tokens")
           || llmgw_json_is(key, "total_tokens")
           || llmgw_json_is(key, "prompt_tokens_details")
           || (call->usage.reasoning_tokens > 0
               && llmgw_json_is(key, "completion_tokens_details"));
}


void
message_usage_write(const dialect_call_t *call, llmgw_json_t usage, buf_t *to)
{
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    buf_text(to, "{\"prompt_tokens\":");
    buf_number(to, call->usage.prompt_tokens);
    buf_text(to, ",\"completion_tokens\":");
    buf_number(to, call->usage.completion_tokens);
    buf_text(to, ",\"total_tokens\":");
    buf_number(to, (int64_t) call->usage.prompt_tokens
                   + call->usage.completion_tokens);
    buf_text(to, ",\"prompt_tokens_details\":{\"cached_tokens\":");
    buf_number(to, call->usage.cached_tokens);
    buf_text(to, "}");

    if (call->usage.reasoning_tokens > 0) {
        buf_text(to, ",\"completion_tokens_details\":{\"reasoning_tokens\":");
        buf_number(to, call->usage.reasoning_tokens);
        buf_text(to, "}");
    }

    for (items = llmgw_json_members(usage); llmgw_json_next(&items, &item); ) {
        if (!message_usage_is_ours(call, item.key)) {
            buf_text(to, ",");
            buf_value(to, item.key);
            buf_text(to, ":");
            buf_value(to, item.value);
        }
    }

    buf_text(to, "}");
}


static void
message_bytes(ProtobufCBinaryData *to, const buf_t *buf)
{
    to->data = (uint8_t *) buf->data;
    to->len = buf->len;
}


/* Whether the message has text: without ids its text has to be counted. */
static int
message_needs_text(const dialect_call_t *call)
{
    return call->out == OUT_TEXT || call->nids == 0
           || (call->want & LLMGATEWAY__WANT__WANT_TEXT);
}


void
message_without_ids(dialect_call_t *call)
{
    call->want &= ~(unsigned) LLMGATEWAY__WANT__WANT_IDS;
    call->resume_by = call->by_text ? LLMGATEWAY__RESUME_BY__RESUME_TEXT
                                    : LLMGATEWAY__RESUME_BY__RESUME_NEVER;
}


static void
message_check_ids(dialect_call_t *call)
{
    if ((call->want & LLMGATEWAY__WANT__WANT_IDS) && call->nids == 0
        && call->token.len > 0 && call->message.n_finish == 0)
    {
        message_without_ids(call);
    }
}


static void
message_count(dialect_call_t *call)
{
    Llmgateway__GenerateResponse  *m;

    m = &call->message;
    m->token_ids = call->ids;
    m->n_token_ids = call->nids;
    call->tokens += call->nids > 0 ? call->nids : (size_t) (m->token.len > 0);
    call->nids = 0;
}


/* A caller that knows nothing but tokens counts each message as one. */
static void
message_end_plain(dialect_call_t *call)
{
    llmgateway__generate_response__init(&call->message);
    message_bytes(&call->message.token, &call->token);
    call->has_message = call->token.len > 0;
    call->tokens += (uint64_t) call->has_message;
}


static void
message_end_full(dialect_call_t *call, int has_data)
{
    size_t                         i;
    Llmgateway__GenerateResponse  *m;

    m = &call->message;

    if (call->token.len > 0 && message_needs_text(call)) {
        message_bytes(&m->token, &call->token);
    }

    if (has_data) {
        message_bytes(&m->data, &call->data);
    }

    for (i = 0; i < m->n_finish; i++) {
        m->finish[i]->reason = call->reasons.data
                               + call->finishes->reason_at[i];
    }

    if (call->token.len > 0 || has_data || m->n_finish > 0) {
        message_count(call);

    } else if (m->usage == NULL) {
        return;
    }

    call->has_message = 1;

    if (call->has_prompt) {
        m->prompt = &call->message_prompt;
        call->has_prompt = 0;
    }

    m->resume_by = call->resume_by;
    call->resume_by = LLMGATEWAY__RESUME_BY__RESUME_AS_ASKED;
}


dialect_do_t
message_end(dialect_call_t *call, int has_data)
{
    if (call->data.failed || call->token.failed || call->reasons.failed) {
        message_begin(call);
        return call_fail(call, LLMGW_GRPC_UNAVAILABLE, "no memory");
    }

    if (call->out == OUT_WHOLE) {
        call->token.len = 0;    /* it comes at the end */
        return DIALECT_MORE;
    }

    message_check_ids(call);

    if (call->is_plain) {
        message_end_plain(call);

    } else {
        message_end_full(call, has_data && call->out == OUT_DATA);
    }

    call->has_text |= call->token.len > 0;

    return DIALECT_MORE;
}


void
message_prompt(dialect_call_t *call, uint32_t tokens, uint64_t hash)
{
    if (call->goes_on || call->said_prompt) {
        return;
    }

    llmgateway__prompt__init(&call->message_prompt);
    call->message_prompt.tokens = tokens;
    call->message_prompt.hash = hash;
    call->has_prompt = 1;
    call->said_prompt = 1;
}


int
message_hash_ids(llmgw_json_t ids, uint32_t *count, uint64_t *hash)
{
    size_t              n;
    uint32_t            some[64];
    uint64_t            id;
    XXH3_state_t        state;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    if (ids.kind != LLMGW_JSON_ARRAY) {
        return -1;
    }

    XXH3_64bits_reset(&state);

    items = llmgw_json_elements(ids);

    for (n = 0; llmgw_json_next(&items, &item); n++) {
        if (n == CALL_MAX_EVENT_IDS
            || llmgw_json_uint(item.value, UINT32_MAX, &id) != 0)
        {
            return -1;
        }

        some[n % 64] = htole32((uint32_t) id);

        if (n % 64 == 63) {
            XXH3_64bits_update(&state, some, sizeof(some));
        }
    }

    XXH3_64bits_update(&state, some, n % 64 * sizeof(uint32_t));
    *count = (uint32_t) n;
    *hash = XXH3_64bits_digest(&state);

    return 0;
}


uint64_t
message_hash_text(const void *text, size_t len)
{
    return XXH3_64bits(text, len);
}
