
/*
 * The default of request_pool_size for servers with an llmgw_pass.
 *
 * Most memory of a stream that waits for its next token is nginx's own request.
 * nginx allocates a request from blocks of request_pool_size, 4 kB, and needs
 * more than one of them for HTTP/2.  A request that fits into one block takes
 * less.  So the block is made large enough for what nginx and this module put
 * into it.  A client's prompt and ids are allocated apart.
 */

#include "front/pool_size.h"
#include "front/stream.h"


/* nginx's request_pool_size where the configuration has none. */
#define NGX_HTTP_LLMGW_POOL_DEFAULT  4096

/* Fields of the lists of headers, in and out, and of the trailers, as
 * ngx_http_alloc_request() makes them. */
#define NGX_HTTP_LLMGW_FIELDS        (20 + 20 + 4)

/*
 * What else the pool holds until a stream's end: the request line, the body's
 * buffers, the frames of headers, data and trailers, cleanups, and a front's
 * own data.  1300 bytes with nginx 1.22; the rest is for other modules.
 */
#define NGX_HTTP_LLMGW_POOL_REST     1792

/* With keys: the caller, and headers that show what is left of its limits. */
#define NGX_HTTP_LLMGW_POOL_CALLER   (sizeof(ngx_http_llmgw_caller_t) + 1024)


static ngx_uint_t ngx_http_llmgw_pool_size_has_pass(
    ngx_http_llmgw_main_conf_t *lmcf, ngx_http_conf_addr_t *addr);
static size_t ngx_http_llmgw_pool_size_of_server(
    ngx_http_llmgw_main_conf_t *lmcf, ngx_http_core_main_conf_t *cmcf,
    ngx_http_core_srv_conf_t *cscf);


/*
 * nginx creates a request's pool before it knows the server's name, with the
 * size that the address's default server has.  So the size is raised for all
 * servers of an address.
 */

void
ngx_http_llmgw_pool_size_conf(ngx_conf_t *cf, ngx_http_llmgw_main_conf_t *lmcf)
{
    ngx_uint_t                   i, j, k;
    ngx_http_conf_addr_t        *addr;
    ngx_http_conf_port_t        *port;
    ngx_http_core_srv_conf_t   **server;
    ngx_http_core_main_conf_t   *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    port = cmcf->ports ? cmcf->ports->elts : NULL;

    for (i = 0; port && i < cmcf->ports->nelts; i++) {
        addr = port[i].addrs.elts;

        for (j = 0; j < port[i].addrs.nelts; j++) {

            if (!ngx_http_llmgw_pool_size_has_pass(lmcf, &addr[j])) {
                continue;
            }

            server = addr[j].servers.elts;

            for (k = 0; k < addr[j].servers.nelts; k++) {
                if (server[k]->request_pool_size
                    == NGX_HTTP_LLMGW_POOL_DEFAULT)
                {
                    server[k]->request_pool_size =
                        ngx_http_llmgw_pool_size_of_server(lmcf, cmcf,
                                                           server[k]);
                }
            }
        }
    }
}


static ngx_uint_t
ngx_http_llmgw_pool_size_has_pass(ngx_http_llmgw_main_conf_t *lmcf,
    ngx_http_conf_addr_t *addr)
{
    ngx_uint_t                   i, k;
    ngx_http_core_srv_conf_t   **server;
    ngx_http_llmgw_loc_conf_t  **llcf;

    server = addr->servers.elts;
    llcf = lmcf->passes.elts;

    for (i = 0; i < lmcf->passes.nelts; i++) {
        for (k = 0; k < addr->servers.nelts; k++) {
            if (llcf[i]->server == server[k]) {
                return 1;
            }
        }
    }

    return 0;
}


static size_t
ngx_http_llmgw_pool_size_of_server(ngx_http_llmgw_main_conf_t *lmcf,
    ngx_http_core_main_conf_t *cmcf, ngx_http_core_srv_conf_t *cscf)
{
    size_t  size;

    size = sizeof(ngx_pool_t) + sizeof(ngx_http_request_t)
           + NGX_HTTP_LLMGW_FIELDS * sizeof(ngx_table_elt_t)
           + ngx_http_max_module * sizeof(void *)
           + cmcf->variables.nelts * sizeof(ngx_http_variable_value_t)
           + sizeof(ngx_buf_t) + sizeof(ngx_http_llmgw_stream_t)
           + NGX_HTTP_LLMGW_POOL_REST;

    if (lmcf->keys.nelts) {
        size += NGX_HTTP_LLMGW_POOL_CALLER;
    }

    /* nginx allocates a larger header_in apart */

    if (cscf->client_header_buffer_size <= NGX_MAX_ALLOC_FROM_POOL) {
        size += cscf->client_header_buffer_size;
    }

#if (NGX_HTTP_V2)
    size += sizeof(ngx_http_v2_stream_t);
#endif

    size = ngx_align(size, NGX_POOL_ALIGNMENT);

    return ngx_max(size, NGX_HTTP_LLMGW_POOL_DEFAULT);
}
