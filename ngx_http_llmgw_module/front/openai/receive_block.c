
/*
 * The block of memory that a body is read into: how it grows, what is counted
 * of it, and how nginx receives into it.
 */

#include <sys/mman.h>

#include "fleet/body_memory.h"
#include "front/openai/receive.h"


/* The first block of a longer body. */
#define NGX_HTTP_LLMGW_OPENAI_BLOCK_MIN   16384

/* Over HTTP/2: larger than the first window that nginx offers. */
#define NGX_HTTP_LLMGW_OPENAI_BLOCK_V2    131072

/*
 * From here on a block is a mapping of its own.  malloc() takes a block of this
 * size from its heap once it has freed one as large, and a block that grows
 * there leaves holes of its earlier sizes.
 */
#define NGX_HTTP_LLMGW_OPENAI_BLOCK_MAP   131072

/*
 * What is left of an HTTP/2 client's window when all has come.  Padding needs
 * some; and nginx does not call a client slow that has no window.
 */
#define NGX_HTTP_LLMGW_OPENAI_WINDOW_MIN  1024


static u_char *ngx_http_llmgw_openai_block_realloc(u_char *block, size_t was,
    size_t size);
static ngx_int_t ngx_http_llmgw_openai_block_grow_ahead(
    ngx_http_llmgw_openai_body_t *body);
static ngx_uint_t ngx_http_llmgw_openai_block_may_adopt(
    ngx_http_request_t *r, size_t rest);


ngx_int_t
ngx_http_llmgw_openai_block_announce(ngx_http_llmgw_openai_body_t *body)
{
    ngx_http_request_t  *r;

    r = body->request;
    body->announced = LLMGW_OPENAI_MAX_BYTES;

    if (r->headers_in.content_length_n > (off_t) LLMGW_OPENAI_MAX_BYTES) {
        return NGX_HTTP_REQUEST_ENTITY_TOO_LARGE;
    }

    if (r->headers_in.content_length_n > 0) {
        body->announced = r->headers_in.content_length_n;
        body->announced += (r->http_version < NGX_HTTP_VERSION_20)
                           ? 0 : NGX_HTTP_LLMGW_OPENAI_WINDOW_MIN;
    }

    return NGX_OK;
}


/*
 * Makes room for so many bytes more.  The block is doubled, up to the length
 * that was announced; a large one is moved without a copy.
 */

ngx_int_t
ngx_http_llmgw_openai_block_room(ngx_http_llmgw_openai_body_t *body,
    size_t size)
{
    size_t  need, least;

    if (size <= body->size - body->len) {
        return NGX_OK;
    }

    if (size > LLMGW_OPENAI_MAX_BYTES - body->len) {
        return NGX_HTTP_REQUEST_ENTITY_TOO_LARGE;
    }

    least = body->request->http_version < NGX_HTTP_VERSION_20
            ? NGX_HTTP_LLMGW_OPENAI_BLOCK_MIN : NGX_HTTP_LLMGW_OPENAI_BLOCK_V2;

    need = ngx_max(2 * body->size, least);
    need = ngx_min(need, body->announced);
    need = ngx_max(need, body->len + size);

    return ngx_http_llmgw_openai_block_resize(body, need);
}


ngx_int_t
ngx_http_llmgw_openai_block_resize(ngx_http_llmgw_openai_body_t *body,
    size_t size)
{
    u_char  *block;

    if (size > body->size
        && ngx_http_llmgw_body_memory_hold(body->pool, &body->holder, size)
           != NGX_OK)
    {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }

    block = ngx_http_llmgw_openai_block_realloc(body->block, body->size, size);

    if (block == NULL) {
        (void) ngx_http_llmgw_body_memory_hold(body->pool, &body->holder,
                                               body->size);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    body->block = block;
    body->size = size;

    return ngx_http_llmgw_body_memory_hold(body->pool, &body->holder, size);
}


/* realloc() for blocks as they are kept here.  NULL: the block is unchanged. */

static u_char *
ngx_http_llmgw_openai_block_realloc(u_char *block, size_t was, size_t size)
{
    u_char      *to;
    ngx_uint_t   is_mapped, maps;

    is_mapped = was >= NGX_HTTP_LLMGW_OPENAI_BLOCK_MAP;
    maps = size >= NGX_HTTP_LLMGW_OPENAI_BLOCK_MAP;

    if (is_mapped && maps) {
        to = mremap(block, was, size, MREMAP_MAYMOVE);
        return to == MAP_FAILED ? NULL : to;
    }

    if (!is_mapped && !maps) {
        return realloc(block, size);
    }

    to = maps ? mmap(NULL, size, PROT_READ|PROT_WRITE,
                     MAP_PRIVATE|MAP_ANONYMOUS, -1, 0)
              : malloc(size);

    if (to == NULL || to == MAP_FAILED) {
        return NULL;
    }

    if (was > 0) {
        ngx_memcpy(to, block, ngx_min(was, size));
    }

    ngx_http_llmgw_openai_block_free(block, was);

    return to;
}


void
ngx_http_llmgw_openai_block_free(u_char *block, size_t size)
{
    if (size >= NGX_HTTP_LLMGW_OPENAI_BLOCK_MAP) {
        (void) munmap(block, size);
        return;
    }

    free(block);
}


/* So an HTTP/2 client has a window again before it has filled the last one. */

static ngx_int_t
ngx_http_llmgw_openai_block_grow_ahead(ngx_http_llmgw_openai_body_t *body)
{
    size_t  rest;

    rest = body->size - body->len;

    return body->size > 0 && body->size < body->announced
           && rest <= body->size / 4
           ? ngx_http_llmgw_openai_block_room(body, rest + 1) : NGX_OK;
}


/*
 * Another body needs the room.  The memory is freed at once; the request ends
 * in an event of its own, and until then nothing is received for it.
 */

void
ngx_http_llmgw_openai_block_end(llmgw_holder_t *holder)
{
    ngx_connection_t              *c;
    ngx_http_llmgw_openai_body_t  *body;

    body = ngx_queue_data(holder, ngx_http_llmgw_openai_body_t, holder);
    c = body->request->connection;

    ngx_log_error(NGX_LOG_INFO, c->log, 0,
                  "llmgw: body is ended after %uz bytes to make room, it "
                  "received nothing for %M ms", body->len,
                  ngx_current_msec - (ngx_msec_t) holder->received_ms);

    body->idle = 1;

#if (NGX_HTTP_V2)
    if (body->request->stream) {
        body->request->stream->skip_data = 1;
    }
#endif

    ngx_http_llmgw_openai_body_release(body);
    ngx_post_event(c->read, &ngx_posted_events);
}


/*
 * If the length is known, nginx receives into the block itself: there is no
 * copy, calls of recv() are few, and an HTTP/2 client has a window as large as
 * the rest of the block.  Between two calls nginx keeps nothing: all that it
 * had was taken.
 */

ngx_int_t
ngx_http_llmgw_openai_block_adopt(ngx_http_llmgw_openai_body_t *body)
{
    size_t                    rest;
    ngx_int_t                 rc;
    ngx_buf_t                *b;
    ngx_http_request_t       *r;
    ngx_http_request_body_t  *rb;

    r = body->request;
    rb = r->request_body;

    if (rb->buf == NULL || rb->buf->pos != rb->buf->last
        || r->headers_in.content_length_n <= 0)
    {
        return NGX_OK;
    }

    rc = ngx_http_llmgw_openai_block_grow_ahead(body);
    if (rc != NGX_OK) {
        return rc;
    }

    rest = body->size - body->len;

    if (rb->buf != body->buf) {

        if (!ngx_http_llmgw_openai_block_may_adopt(r, rest)) {
            return NGX_OK;
        }

        b = ngx_calloc_buf(r->pool);
        if (b == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        b->temporary = 1;

        (void) ngx_pfree(r->pool, rb->buf->start);
        rb->buf = b;
        body->buf = b;
    }

    b = rb->buf;
    b->start = body->block + body->len;
    b->pos = b->start;
    b->last = b->start;
    b->end = body->block + body->size;

    return NGX_OK;
}


/*
 * In HTTP/2 nginx then offers a window as large as the rest of the block, which
 * must not be less than what it has offered already.
 */

static ngx_uint_t
ngx_http_llmgw_openai_block_may_adopt(ngx_http_request_t *r, size_t rest)
{
#if (NGX_HTTP_V2)
    ngx_http_v2_connection_t  *h2c;
#endif

    if (rest == 0 || r->headers_in.chunked) {
        return 0;
    }

#if (NGX_HTTP_V2)
    if (r->stream) {
        h2c = r->stream->connection;

        return rest > r->stream->recv_window
                      + (h2c->state.stream == r->stream ? h2c->state.length
                                                        : 0);
    }
#endif

    return r->http_version < NGX_HTTP_VERSION_20;
}
