
/*
 * A worker that is to exit sends GOAWAY to its HTTP/2 connections, and nginx
 * before 1.27.1 forgets those that are still in their handshake.  Such a client
 * would stay for as long as it has requests (keepalive_time, an hour), with the
 * former configuration and module.  So the first request of each such
 * connection, whatever it asks for, does what nginx does with the others:
 * c->close makes the connection's read handler send GOAWAY.
 *
 * nginx reads the requests that came together with the first one before that
 * handler runs, and copies c->close into each of them.  The copy would end the
 * request, so it is cleared here.
 */

#include "http/goaway.h"


#if (NGX_HTTP_V2)
static ngx_int_t ngx_http_llmgw_goaway_handler(ngx_http_request_t *r);
#endif


ngx_int_t
ngx_http_llmgw_goaway_init(ngx_conf_t *cf)
{
#if (NGX_HTTP_V2)
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_POST_READ_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_llmgw_goaway_handler;
#endif

    return NGX_OK;
}


#if (NGX_HTTP_V2)

static ngx_int_t
ngx_http_llmgw_goaway_handler(ngx_http_request_t *r)
{
    ngx_connection_t  *c;

    if (!ngx_exiting || r->stream == NULL || r->stream->connection->goaway) {
        return NGX_DECLINED;
    }

    c = r->stream->connection->connection;
    r->connection->close = 0;

    if (!c->read->posted) {     /* that event brings bytes: the next request */
        c->close = 1;
        ngx_post_event(c->read, &ngx_posted_events);
    }

    return NGX_DECLINED;
}

#endif
