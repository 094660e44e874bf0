
/*
 * Which request it is, by its path.
 *
 * A path is recognized by its end.  A version may precede it, and before that
 * comes the location's own name, so that clients may be given any of
 *
 *     https://host   https://host/v1   https://host/any/location/v1
 *
 * as their base.  What precedes the path in a location with a regular
 * expression is not checked.  An engine is asked under the version that the
 * client has used if the path has it, and otherwise under the path's own.
 */

#ifndef _NGX_HTTP_LLMGW_OPENAI_PATH_H_INCLUDED_
#define _NGX_HTTP_LLMGW_OPENAI_PATH_H_INCLUDED_


#include "conf/conf.h"


/* What a request is for. */
typedef struct {
    const ngx_http_llmgw_path_t  *path;
    ngx_uint_t                    version;      /* under which the engine is
                                                   asked */
} ngx_http_llmgw_openai_asked_t;


/* NGX_DECLINED: there is no such path for a model. */
ngx_int_t ngx_http_llmgw_openai_path_find(ngx_http_request_t *r,
    ngx_http_llmgw_openai_asked_t *asked);

/* The path for the engine, as a string with its NUL.  NULL: no memory. */
char *ngx_http_llmgw_openai_path_engine(ngx_pool_t *pool,
    const ngx_http_llmgw_openai_asked_t *asked);

/* 1: the URI's first bytes, before a path, are those of the location. */
ngx_uint_t ngx_http_llmgw_openai_path_is_base(ngx_http_request_t *r,
    size_t len);


#endif /* _NGX_HTTP_LLMGW_OPENAI_PATH_H_INCLUDED_ */
