
#include "front/delivered.h"


static int ngx_http_llmgw_delivered_take(void *owner, size_t bytes);
static void ngx_http_llmgw_delivered_give(void *owner, size_t bytes);


static const llmgw_delivered_memory_t  ngx_http_llmgw_delivered_memory = {
    .take = ngx_http_llmgw_delivered_take,
    .give = ngx_http_llmgw_delivered_give,
};


llmgw_delivered_t *
ngx_http_llmgw_delivered_create(ngx_pool_t *memory,
    ngx_http_llmgw_pool_t *pool, llmgw_resume_mode_t mode)
{
    llmgw_delivered_t  *delivered;

    delivered = ngx_palloc(memory, sizeof(llmgw_delivered_t));

    if (delivered) {
        llmgw_delivered_init(delivered, &ngx_http_llmgw_delivered_memory,
                             pool, mode != LLMGW_RESUME_OFF,
                             mode == LLMGW_RESUME_TEXT);
    }

    return delivered;
}


static int
ngx_http_llmgw_delivered_take(void *owner, size_t bytes)
{
    return ngx_http_llmgw_body_memory_take(owner, LLMGW_SHARE_RESUME, bytes)
           == NGX_OK;
}


static void
ngx_http_llmgw_delivered_give(void *owner, size_t bytes)
{
    ngx_http_llmgw_body_memory_give(owner, LLMGW_SHARE_RESUME, bytes);
}


llmgw_resume_by_t
ngx_http_llmgw_delivered_resume(llmgw_delivered_t *delivered,
    ngx_uint_t tokens, ngx_uint_t choices, const char **why)
{
    llmgw_resume_by_t     by;
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

    by = llmgw_resume_by(&facts, why);

    if (by != LLMGW_RESUME_BY_IDS) {
        /* what follows is generated from other ids, or from none */
        llmgw_delivered_drop_ids(delivered);
    }

    return by;
}
