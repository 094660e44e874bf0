
#include "upstream/delivered.h"


#define NGX_HTTP_LLMGW_KEPT_BYTES  256      /* the first block */


static void ngx_http_llmgw_delivered_more(
    ngx_http_llmgw_delivered_t *delivered, const llmgw_token_t *token);
static void ngx_http_llmgw_delivered_finish(
    ngx_http_llmgw_delivered_t *delivered, uint32_t index);
static ngx_int_t ngx_http_llmgw_delivered_keep(
    ngx_http_llmgw_delivered_t *delivered, ngx_http_llmgw_kept_t *kept,
    const void *data, size_t len);
static void ngx_http_llmgw_delivered_drop(
    ngx_http_llmgw_delivered_t *delivered, ngx_http_llmgw_kept_t *kept);


ngx_http_llmgw_delivered_t *
ngx_http_llmgw_delivered_create(ngx_pool_t *pool,
    ngx_http_llmgw_worker_t *worker, llmgw_resume_mode_t mode)
{
    ngx_http_llmgw_delivered_t  *delivered;

    delivered = ngx_pcalloc(pool, sizeof(ngx_http_llmgw_delivered_t));
    if (delivered == NULL) {
        return NULL;
    }

    delivered->worker = worker;
    delivered->is_on = (mode != LLMGW_RESUME_OFF);
    delivered->keeps_ids = (mode != LLMGW_RESUME_OFF);
    delivered->keeps_text = (mode == LLMGW_RESUME_TEXT);

    return delivered;
}


ngx_int_t
ngx_http_llmgw_delivered_add(ngx_http_llmgw_delivered_t *delivered,
    const llmgw_token_t *token)
{
    ngx_int_t                            rc;
    const Llmgateway__GenerateResponse  *more;

    rc = NGX_OK;
    more = token->more;
    delivered->has_begun = 1;

    if (more) {
        ngx_http_llmgw_delivered_more(delivered, token);

        if (delivered->keeps_ids) {
            rc = ngx_http_llmgw_delivered_keep(delivered, &delivered->ids,
                               more->token_ids,
                               more->n_token_ids * sizeof(uint32_t));
        }
    }

    if (delivered->keeps_text && rc == NGX_OK) {
        rc = ngx_http_llmgw_delivered_keep(delivered, &delivered->text,
                                           token->text, token->text_len);
    }

    if (rc != NGX_OK) {
        ngx_http_llmgw_delivered_release(delivered);
        delivered->no_memory = 1;
    }

    return rc;
}


static void
ngx_http_llmgw_delivered_more(ngx_http_llmgw_delivered_t *delivered,
    const llmgw_token_t *token)
{
    size_t                               i;
    const Llmgateway__GenerateResponse  *more;

    more = token->more;

    delivered->has_more = 1;

    if (more->resume_by == LLMGATEWAY__RESUME_BY__RESUME_TEXT) {
        delivered->no_ids = 1;
    }

    /* a chunk with none of the three holds what nobody could repeat */

    if (more->resume_by == LLMGATEWAY__RESUME_BY__RESUME_NEVER || more->raw
        || (more->data.len && token->count == 0 && more->n_finish == 0
            && more->usage == NULL))
    {
        delivered->never = 1;
    }

    for (i = 0; i < more->n_finish; i++) {
        ngx_http_llmgw_delivered_finish(delivered, more->finish[i]->index);
    }

    if (more->prompt && !delivered->has_prompt) {
        delivered->has_prompt = 1;
        delivered->prompt_tokens = more->prompt->tokens;
        delivered->prompt_hash = more->prompt->hash;
    }

    if (more->usage) {
        delivered->has_usage = 1;
        delivered->completion_tokens = more->usage->completion_tokens;
        delivered->cached_tokens = more->usage->cached_tokens;

        if (!delivered->has_prompt) {
            delivered->prompt_tokens = more->usage->prompt_tokens;
        }
    }
}


static void
ngx_http_llmgw_delivered_finish(ngx_http_llmgw_delivered_t *delivered,
    uint32_t index)
{
    uint64_t   bit;
    uint64_t  *finished;

    if (index >= NGX_HTTP_LLMGW_CHOICES) {
        return;
    }

    bit = (uint64_t) 1 << index % 64;
    finished = &delivered->finished[index / 64];

    delivered->nfinished += (*finished & bit) == 0;
    *finished |= bit;
}


static ngx_int_t
ngx_http_llmgw_delivered_keep(ngx_http_llmgw_delivered_t *delivered,
    ngx_http_llmgw_kept_t *kept, const void *data, size_t len)
{
    size_t                 size;
    ngx_http_llmgw_kept_t  grown;

    if (len == 0) {
        return NGX_OK;
    }

    if (len > kept->size - kept->len) {
        size = ngx_max(kept->size, NGX_HTTP_LLMGW_KEPT_BYTES);

        while (size - kept->len < len) {
            size *= 2;
        }

        if (ngx_http_llmgw_body_memory_take(delivered->worker, size)
            != NGX_OK)
        {
            return NGX_DECLINED;
        }

        grown.data = ngx_alloc(size, delivered->worker->log);
        if (grown.data == NULL) {
            ngx_http_llmgw_body_memory_give(delivered->worker, size);
            return NGX_DECLINED;
        }

        grown.len = kept->len;
        grown.size = size;

        if (kept->len) {
            ngx_memcpy(grown.data, kept->data, kept->len);
        }

        ngx_http_llmgw_delivered_drop(delivered, kept);
        *kept = grown;
    }

    ngx_memcpy(kept->data + kept->len, data, len);
    kept->len += len;

    return NGX_OK;
}


static void
ngx_http_llmgw_delivered_drop(ngx_http_llmgw_delivered_t *delivered,
    ngx_http_llmgw_kept_t *kept)
{
    if (kept->data) {
        ngx_free(kept->data);
        ngx_http_llmgw_body_memory_give(delivered->worker, kept->size);
    }

    ngx_memzero(kept, sizeof(ngx_http_llmgw_kept_t));
}


llmgw_resume_by_t
ngx_http_llmgw_delivered_resume(ngx_http_llmgw_delivered_t *delivered,
    ngx_uint_t tokens, ngx_uint_t choices, const char **why)
{
    llmgw_resume_facts_t  facts;

    if (delivered == NULL) {
        return LLMGW_RESUME_BY_POSITION;
    }

    ngx_memzero(&facts, sizeof(llmgw_resume_facts_t));

    facts.tokens = tokens;
    facts.ids = delivered->ids.len / sizeof(uint32_t);
    facts.is_on = delivered->is_on;
    facts.is_plain = !delivered->has_more;
    facts.has_text = delivered->keeps_text;
    facts.is_one = (choices == 1);
    facts.no_ids = delivered->no_ids || !delivered->keeps_ids;
    facts.never = delivered->never;
    facts.no_memory = delivered->no_memory;

    delivered->by = llmgw_resume_by(&facts, why);

    if (delivered->by != LLMGW_RESUME_BY_IDS) {
        /* what follows is generated from other ids, or from none */
        delivered->keeps_ids = 0;
        ngx_http_llmgw_delivered_drop(delivered, &delivered->ids);
    }

    return delivered->by;
}


void
ngx_http_llmgw_delivered_tell(const ngx_http_llmgw_delivered_t *delivered,
    Llmgateway__Delivered *message)
{
    llmgateway__delivered__init(message);

    message->token_ids = (uint32_t *) delivered->ids.data;
    message->n_token_ids = delivered->ids.len / sizeof(uint32_t);
    message->prompt_tokens = delivered->prompt_tokens;
    message->prompt_hash = delivered->prompt_hash;
    message->cached_tokens = delivered->cached_tokens;

    if (delivered->by != LLMGW_RESUME_BY_IDS) {
        message->text.data = delivered->text.data;
        message->text.len = delivered->text.len;
    }
}


void
ngx_http_llmgw_delivered_release(ngx_http_llmgw_delivered_t *delivered)
{
    delivered->keeps_ids = 0;
    delivered->keeps_text = 0;

    ngx_http_llmgw_delivered_drop(delivered, &delivered->ids);
    ngx_http_llmgw_delivered_drop(delivered, &delivered->text);
}
