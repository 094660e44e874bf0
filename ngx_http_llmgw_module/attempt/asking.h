
/*
 * A worker's state for talking to replicas: one buffer for all reading and
 * writing of sessions, and whether sessions are read at intervals.
 */

#ifndef _NGX_HTTP_LLMGW_ASKING_H_INCLUDED_
#define _NGX_HTTP_LLMGW_ASKING_H_INCLUDED_


#include "attempt/coalesce.h"
#include "fleet/events.h"


#define NGX_HTTP_LLMGW_IO_BYTES  65536      /* at most, in one read or write */


struct ngx_http_llmgw_asking_s {
    ngx_http_llmgw_coalesce_t     coalesce;
    u_char                        io[NGX_HTTP_LLMGW_IO_BYTES];
};


extern const ngx_http_llmgw_fleet_events_t  ngx_http_llmgw_asking_events;


#endif /* _NGX_HTTP_LLMGW_ASKING_H_INCLUDED_ */
