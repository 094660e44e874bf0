
/*
 * The directory of an upstream with several pools (core/directory.h) as memory
 * that all workers share: a zone of its own, which no setting changes, so that
 * reloads keep it.
 */

#ifndef _NGX_HTTP_LLMGW_ZONE_DIRECTORY_H_INCLUDED_
#define _NGX_HTTP_LLMGW_ZONE_DIRECTORY_H_INCLUDED_


#include "conf/conf.h"
#include "core/directory.h"


ngx_int_t ngx_http_llmgw_directory_add(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *conf);

/*
 * Returns the directory, locked until unlock().  A pool's zone may be locked
 * while it is; it must not be locked while a pool's zone is.
 */
llmgw_directory_t *ngx_http_llmgw_directory_lock(ngx_shm_zone_t *shm_zone);
void ngx_http_llmgw_directory_unlock(ngx_shm_zone_t *shm_zone);


#endif /* _NGX_HTTP_LLMGW_ZONE_DIRECTORY_H_INCLUDED_ */
