
/*
 * Which replica has a response (core/responses.h), as all workers of the zone
 * know it.
 */

#ifndef _NGX_HTTP_LLMGW_RESPONSES_H_INCLUDED_
#define _NGX_HTTP_LLMGW_RESPONSES_H_INCLUDED_


#include "core/responses.h"

#include "zone/zone.h"


/* The share of the zone that the table takes: one part of this many. */
#define NGX_HTTP_LLMGW_RESPONSES_SHARE  16


/*
 * To be called with shpool's lock.  If the zone is too small for a table there
 * is none, and no response is known.
 */
void ngx_http_llmgw_responses_make_locked(ngx_http_llmgw_zone_shared_t *shared,
    ngx_slab_pool_t *shpool, size_t size);

void ngx_http_llmgw_responses_note(ngx_http_llmgw_zone_t *zone,
    const ngx_str_t *id, const llmgw_response_t *response);

/* NGX_DECLINED: the response is not known, or no longer. */
ngx_int_t ngx_http_llmgw_responses_find(ngx_http_llmgw_zone_t *zone,
    const ngx_str_t *id, llmgw_response_t *response);


#endif /* _NGX_HTTP_LLMGW_RESPONSES_H_INCLUDED_ */
