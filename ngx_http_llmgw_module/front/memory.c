
/*
 * A stream's memory.
 *
 * Most memory of a stream that waits for its next token is nginx's own request,
 * and nginx allocates much of that without using it:
 *
 *   the request's pool  blocks of request_pool_size, 4 kB; an HTTP/2 request
 *                       needs 7 kB, and so two blocks
 *   header lists        20 fields each, in and out: 1 kB each of that pool,
 *                       of which few fields are used
 *   header_in           client_header_buffer_size, another 1 kB of that pool,
 *                       for the text of HTTP/1 headers; HTTP/2 never writes
 *                       to it
 *   the header pool     1 kB for HTTP/2's header fields, which fill a third
 *
 * So a server with an llmgw_pass gets blocks that a whole request fits into,
 * unless its configuration sets request_pool_size.  The unused ends of the
 * lists are lent to the pool as further blocks of it.  What a stream keeps is
 * put into the other two, the stream itself into header_in.  When those are
 * full, larger pieces, as a client's prompt and ids may be, get memory of their
 * own: in the request's pool they would push nginx's needs into another block.
 */

#include "front/memory.h"


/* nginx's request_pool_size where the configuration has none. */
#define NGX_HTTP_LLMGW_POOL_DEFAULT  4096

/* Fields of each list, as ngx_http_alloc_request() makes them. */
#define NGX_HTTP_LLMGW_HEADERS       20
#define NGX_HTTP_LLMGW_TRAILERS      4

/*
 * What else a request's pool holds until a stream's end, 1540 bytes with nginx
 * 1.22 and with 1.31: the request line, the body's buffers, the frames of
 * headers, data and trailers, our cleanups.  What the list of the client's
 * fields lends comes on top, as a reserve.
 */
#define NGX_HTTP_LLMGW_POOL_REST     1536

/* Fields that a list keeps at least, for the answer's own. */
#define NGX_HTTP_LLMGW_KEPT_FIELDS   4

/* Smaller blocks are not worth their head, smaller pieces not a malloc(). */
#define NGX_HTTP_LLMGW_BLOCK_MIN     128
#define NGX_HTTP_LLMGW_PIECE_MIN     64


static ngx_uint_t ngx_http_llmgw_memory_has_pass(
    ngx_http_llmgw_main_conf_t *lmcf, ngx_http_conf_addr_t *addr);
static size_t ngx_http_llmgw_memory_request_size(
    ngx_http_core_main_conf_t *cmcf, ngx_http_core_srv_conf_t *cscf);
static void ngx_http_llmgw_memory_lend_list(ngx_pool_t *pool,
    ngx_list_t *list);
static ngx_uint_t ngx_http_llmgw_memory_is_within(ngx_pool_t *pool,
    void *start, void *end);
static void ngx_http_llmgw_memory_take_back(void *data);
static void *ngx_http_llmgw_memory_unused(ngx_http_request_t *r, size_t size);
#if (NGX_HTTP_V2)
static ngx_uint_t ngx_http_llmgw_memory_has_room(ngx_pool_t *pool,
    size_t size);
#endif


/*
 * nginx creates a request's pool before it knows the server's name, with the
 * size that the address's default server has.  So the size is raised for all
 * servers of an address.
 */

void
ngx_http_llmgw_memory_conf(ngx_conf_t *cf, ngx_http_llmgw_main_conf_t *lmcf)
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

            if (!ngx_http_llmgw_memory_has_pass(lmcf, &addr[j])) {
                continue;
            }

            server = addr[j].servers.elts;

            for (k = 0; k < addr[j].servers.nelts; k++) {
                if (server[k]->request_pool_size
                    == NGX_HTTP_LLMGW_POOL_DEFAULT)
                {
                    server[k]->request_pool_size =
                        ngx_http_llmgw_memory_request_size(cmcf, server[k]);
                }
            }
        }
    }
}


static ngx_uint_t
ngx_http_llmgw_memory_has_pass(ngx_http_llmgw_main_conf_t *lmcf,
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
ngx_http_llmgw_memory_request_size(ngx_http_core_main_conf_t *cmcf,
    ngx_http_core_srv_conf_t *cscf)
{
    size_t      size;
    ngx_uint_t  fields;

    /* the answer's other fields are lent, and hold a part of the rest */

    fields = NGX_HTTP_LLMGW_HEADERS + NGX_HTTP_LLMGW_KEPT_FIELDS
             + NGX_HTTP_LLMGW_TRAILERS;

    size = sizeof(ngx_pool_t) + sizeof(ngx_http_request_t)
           + fields * sizeof(ngx_table_elt_t)
           + ngx_http_max_module * sizeof(void *)
           + cmcf->variables.nelts * sizeof(ngx_http_variable_value_t)
           + sizeof(ngx_buf_t) + NGX_HTTP_LLMGW_POOL_REST;

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


/*
 * Called when the request's header has been read, and before its answer's.  The
 * unused ends of both lists become blocks of the pool.  A list that needs more
 * fields than it has kept takes them from the pool, as it would after its
 * twentieth.
 */

void
ngx_http_llmgw_memory_lend(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return;
    }

    cln->handler = ngx_http_llmgw_memory_take_back;
    cln->data = r->pool;

    /* a subrequest that runs, as a mirror's, has a copy of the client's list,
     * and its modules may still add fields to that, up to the twentieth */

    if (r->count == 1) {
        ngx_http_llmgw_memory_lend_list(r->pool, &r->headers_in.headers);
    }

    ngx_http_llmgw_memory_lend_list(r->pool, &r->headers_out.headers);
}


static void
ngx_http_llmgw_memory_lend_list(ngx_pool_t *pool, ngx_list_t *list)
{
    u_char      *start, *end;
    ngx_pool_t  *block;
    ngx_uint_t   kept;

    kept = ngx_max(list->last->nelts, NGX_HTTP_LLMGW_KEPT_FIELDS);

    if (kept >= list->nalloc) {
        return;
    }

    start = list->last->elts;
    end = start + list->nalloc * list->size;
    end -= (uintptr_t) end % NGX_POOL_ALIGNMENT;
    start = ngx_align_ptr(start + kept * list->size, NGX_POOL_ALIGNMENT);

    if (end - start < NGX_HTTP_LLMGW_BLOCK_MIN
        || !ngx_http_llmgw_memory_is_within(pool, start, end))
    {
        return;
    }

    list->nalloc = kept;

    block = (ngx_pool_t *) start;
    block->d.last = start + sizeof(ngx_pool_data_t);
    block->d.end = end;
    block->d.next = pool->d.next;
    block->d.failed = 0;

    pool->d.next = block;
}


/* 1: it is in the pool's first block, as all lent blocks are. */

static ngx_uint_t
ngx_http_llmgw_memory_is_within(ngx_pool_t *pool, void *start, void *end)
{
    return (u_char *) start > (u_char *) pool && (u_char *) end <= pool->d.end;
}


/*
 * Unlinks the lent blocks.  A pool runs its cleanups before it frees its blocks
 * one by one, and a lent block is not one that malloc() gave.
 */

static void
ngx_http_llmgw_memory_take_back(void *data)
{
    ngx_pool_t  *pool = data;
    ngx_pool_t  *block, *next;

    pool->current = pool;

    for (block = pool; block->d.next; /* void */ ) {
        next = block->d.next;

        if (ngx_http_llmgw_memory_is_within(pool, next, next->d.end)) {
            block->d.next = next->d.next;

        } else {
            block = next;
        }
    }
}


void *
ngx_http_llmgw_memory_alloc(ngx_http_request_t *r, size_t size)
{
    void  *p;

    p = ngx_http_llmgw_memory_unused(r, size);

    if (p) {
        return p;
    }

    return size > NGX_HTTP_LLMGW_PIECE_MIN
           ? ngx_pmemalign(r->pool, size, NGX_POOL_ALIGNMENT)
           : ngx_palloc(r->pool, size);
}


static void *
ngx_http_llmgw_memory_unused(ngx_http_request_t *r, size_t size)
{
#if (NGX_HTTP_V2)
    u_char     *p;
    ngx_buf_t  *b;

    if (r->stream == NULL) {
        return NULL;
    }

    b = r->header_in;
    p = ngx_align_ptr(b->last, NGX_POOL_ALIGNMENT);

    if (p <= b->end && (size_t) (b->end - p) >= size) {
        b->last = p + size;
        b->pos = b->last;
        return p;
    }

    if (ngx_http_llmgw_memory_has_room(r->stream->pool, size)) {
        return ngx_palloc(r->stream->pool, size);
    }
#endif

    return NULL;
}


#if (NGX_HTTP_V2)

/* 1: the pool can allocate size bytes without another block. */

static ngx_uint_t
ngx_http_llmgw_memory_has_room(ngx_pool_t *pool, size_t size)
{
    u_char      *m;
    ngx_pool_t  *p;

    for (p = pool->current; p; p = p->d.next) {
        m = ngx_align_ptr(p->d.last, NGX_ALIGNMENT);

        if (m <= p->d.end && (size_t) (p->d.end - m) >= size) {
            return size <= pool->max;
        }
    }

    return 0;
}

#endif
