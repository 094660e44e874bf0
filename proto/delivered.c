
#include <stdlib.h>
#include <string.h>

#include "proto/delivered.h"


void
llmgw_delivered_init(llmgw_delivered_t *delivered,
    const llmgw_delivered_memory_t *memory, void *owner, int keeps_ids,
    int keeps_text)
{
    memset(delivered, 0, sizeof(llmgw_delivered_t));

    delivered->memory = memory;
    delivered->owner = owner;
    delivered->is_on = keeps_ids || keeps_text;
    delivered->keeps_ids = keeps_ids;
    delivered->keeps_text = keeps_text;
}


static void
bytes_drop(llmgw_delivered_t *delivered, llmgw_delivered_bytes_t *bytes)
{
    if (bytes->data) {
        free(bytes->data);
        delivered->memory->give(delivered->owner, bytes->size);
    }

    memset(bytes, 0, sizeof(llmgw_delivered_bytes_t));
}


static int
bytes_grow(llmgw_delivered_t *delivered, llmgw_delivered_bytes_t *bytes,
    size_t len)
{
    llmgw_delivered_bytes_t  grown;

    grown.len = bytes->len;
    grown.size = bytes->size ? bytes->size : LLMGW_DELIVERED_BYTES;

    while (grown.size - grown.len < len) {
        grown.size *= 2;
    }

    if (!delivered->memory->take(delivered->owner, grown.size)) {
        return 0;
    }

    grown.data = malloc(grown.size);

    if (grown.data == NULL) {
        delivered->memory->give(delivered->owner, grown.size);
        return 0;
    }

    if (bytes->len) {
        memcpy(grown.data, bytes->data, bytes->len);
    }

    bytes_drop(delivered, bytes);
    *bytes = grown;

    return 1;
}


static int
bytes_add(llmgw_delivered_t *delivered, llmgw_delivered_bytes_t *bytes,
    const void *data, size_t len)
{
    if (len == 0) {
        return 1;
    }

    if (len > bytes->size - bytes->len && !bytes_grow(delivered, bytes, len)) {
        return 0;
    }

    memcpy(bytes->data + bytes->len, data, len);
    bytes->len += len;

    return 1;
}


static void
note_finish(llmgw_delivered_t *delivered, uint32_t index)
{
    uint64_t   bit;
    uint64_t  *finished;

    if (index >= LLMGW_DELIVERED_CHOICES) {
        return;
    }

    bit = (uint64_t) 1 << index % 64;
    finished = &delivered->finished[index / 64];

    delivered->nfinished += (*finished & bit) == 0;
    *finished |= bit;
}


static void
note_usage(llmgw_delivered_t *delivered, const Llmgateway__Usage *usage)
{
    delivered->has_usage = 1;
    delivered->completion_tokens = usage->completion_tokens;
    delivered->cached_tokens = usage->cached_tokens;

    if (!delivered->has_prompt) {
        delivered->prompt_tokens = usage->prompt_tokens;
    }
}


static void
note_more(llmgw_delivered_t *delivered, const llmgw_token_t *token)
{
    size_t                               i;
    const Llmgateway__GenerateResponse  *more;

    more = token->more;
    delivered->has_more = 1;

    if (more->resume_by == LLMGATEWAY__RESUME_BY__RESUME_TEXT) {
        delivered->no_ids = 1;
    }

    /* a chunk without a token, a finish and a usage cannot be repeated */

    if (more->resume_by == LLMGATEWAY__RESUME_BY__RESUME_NEVER || more->raw
        || (more->data.len && token->count == 0 && more->n_finish == 0
            && more->usage == NULL))
    {
        delivered->never = 1;
    }

    for (i = 0; i < more->n_finish; i++) {
        note_finish(delivered, more->finish[i]->index);
    }

    if (more->prompt && !delivered->has_prompt) {
        delivered->has_prompt = 1;
        delivered->prompt_tokens = more->prompt->tokens;
        delivered->prompt_hash = more->prompt->hash;
    }

    if (more->usage) {
        note_usage(delivered, more->usage);
    }
}


int
llmgw_delivered_add(llmgw_delivered_t *delivered, const llmgw_token_t *token)
{
    int  kept;

    kept = 1;
    delivered->has_begun = 1;

    if (token->more) {
        note_more(delivered, token);

        kept = !delivered->keeps_ids
               || bytes_add(delivered, &delivered->ids, token->more->token_ids,
                            token->more->n_token_ids * sizeof(uint32_t));
    }

    if (kept && delivered->keeps_text) {
        kept = bytes_add(delivered, &delivered->text, token->text,
                         token->text_len);
    }

    if (!kept) {
        llmgw_delivered_release(delivered);
        delivered->no_memory = 1;
    }

    return kept;
}


void
llmgw_delivered_drop_ids(llmgw_delivered_t *delivered)
{
    delivered->keeps_ids = 0;
    bytes_drop(delivered, &delivered->ids);
}


void
llmgw_delivered_tell(const llmgw_delivered_t *delivered,
    Llmgateway__Delivered *message)
{
    llmgateway__delivered__init(message);

    message->prompt_tokens = delivered->prompt_tokens;
    message->prompt_hash = delivered->prompt_hash;
    message->cached_tokens = delivered->cached_tokens;

    if (delivered->ids.len) {
        message->token_ids = (uint32_t *) delivered->ids.data;
        message->n_token_ids = delivered->ids.len / sizeof(uint32_t);

    } else {
        message->text.data = delivered->text.data;
        message->text.len = delivered->text.len;
    }
}


void
llmgw_delivered_release(llmgw_delivered_t *delivered)
{
    delivered->keeps_ids = 0;
    delivered->keeps_text = 0;

    bytes_drop(delivered, &delivered->ids);
    bytes_drop(delivered, &delivered->text);
}
