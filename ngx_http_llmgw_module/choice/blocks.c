
#include "choice/blocks.h"
#include "core/openai/body_blocks.h"
#include "core/prefix/blocks.h"


uint32_t
ngx_http_llmgw_blocks_of_prompt(const ngx_http_llmgw_index_t *index,
    ngx_pool_t *pool, const ngx_str_t *prompt, uint64_t **blocks)
{
    uint32_t        most;
    llmgw_blocks_t  made;

    *blocks = NULL;

    if (index->shm_zone == NULL || prompt->len < index->block) {
        return 0;
    }

    most = ngx_min(prompt->len / index->block, index->match);
    *blocks = ngx_palloc(pool, most * sizeof(uint64_t));

    if (*blocks == NULL) {
        return 0;
    }

    llmgw_blocks_init(&made, *blocks, most, index->block, 0);
    llmgw_blocks_add(&made, prompt->data, prompt->len);

    return made.n;
}


uint32_t
ngx_http_llmgw_blocks_of_body(const ngx_http_llmgw_index_t *index,
    ngx_pool_t *pool, const llmgw_openai_body_t *body, uint64_t **blocks)
{
    *blocks = NULL;

    if (index->shm_zone == NULL) {
        return 0;
    }

    *blocks = ngx_palloc(pool, index->match * sizeof(uint64_t));

    return *blocks ? llmgw_openai_blocks(body, index->block, *blocks,
                                         index->match)
                   : 0;
}
