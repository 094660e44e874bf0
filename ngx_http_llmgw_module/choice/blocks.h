
/*
 * The blocks of a request, in its own memory, for policies that read prefixes.
 */

#ifndef _NGX_HTTP_LLMGW_BLOCKS_H_INCLUDED_
#define _NGX_HTTP_LLMGW_BLOCKS_H_INCLUDED_


#include "conf/conf.h"
#include "core/openai/body.h"


/*
 * Set *blocks, and return how many there are. 0, with *blocks NULL: the policy
 * reads no blocks, or there is no memory; the prompt then counts as unknown.
 */
uint32_t ngx_http_llmgw_blocks_of_prompt(const ngx_http_llmgw_index_t *index,
    ngx_pool_t *pool, const ngx_str_t *prompt, uint64_t **blocks);
uint32_t ngx_http_llmgw_blocks_of_body(const ngx_http_llmgw_index_t *index,
    ngx_pool_t *pool, const llmgw_openai_body_t *body, uint64_t **blocks);


#endif /* _NGX_HTTP_LLMGW_BLOCKS_H_INCLUDED_ */
