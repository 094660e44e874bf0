
/*
 * Takeovers in the zone: what all workers see of groups with standbys
 * (core/takeover.h).  A worker that is killed while it writes here leaves a
 * count or a time that is off by one takeover, and nothing else.
 */

#ifndef _NGX_HTTP_LLMGW_TAKEOVERS_H_INCLUDED_
#define _NGX_HTTP_LLMGW_TAKEOVERS_H_INCLUDED_


#include "core/takeover.h"

#include "zone/zone.h"


/*
 * Notes that a view shows the group so.  Sets *found to where the group is
 * counted; NULL: it is not.  1: there was a takeover, and this worker is the
 * first to see it.
 */
ngx_uint_t ngx_http_llmgw_takeovers_see(ngx_http_llmgw_zone_t *zone,
    const char *name, const llmgw_takeover_view_t *view,
    llmgw_takeover_t **found);

/* A client has received a token of that process; takeover may be NULL. */
void ngx_http_llmgw_takeovers_token(ngx_http_llmgw_zone_t *zone,
    llmgw_takeover_t *takeover, uint64_t process);


#endif /* _NGX_HTTP_LLMGW_TAKEOVERS_H_INCLUDED_ */
