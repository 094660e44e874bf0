
/*
 * Chunks: the memory that tokens are packed into.
 *
 * A stream has a chunk from the moment a token comes until nginx has sent it,
 * which is mostly within one iteration of the event loop.  Then the chunk goes
 * back to the worker, and the next token of any stream finds it still in the
 * processor's cache.  Ten thousand streams that wait for their next token hold
 * no chunk at all.
 *
 * nginx may refer to a chunk for as long as the request's pool exists.  So the
 * chunks that a stream still has at its end go back when that pool is
 * destroyed, and not before.  And nginx's filter for chunked answers looks at
 * the tag of a buffer that was sent some time ago.  So a chunk's head is never
 * freed: it serves as another chunk's head, which has the same tag, or waits to
 * do so.  The number of heads is the greatest number of chunks that were in use
 * at a time.
 */

#include "front/clients.h"


typedef struct {
    ngx_chain_t  link;          /* the first field */
    ngx_buf_t    buf;
} ngx_http_llmgw_head_t;


static ngx_chain_t *ngx_http_llmgw_chunk_create(
    ngx_http_llmgw_clients_t *clients, size_t bytes);
static ngx_chain_t *ngx_http_llmgw_chunk_head(
    ngx_http_llmgw_clients_t *clients);
static void ngx_http_llmgw_chunk_release(ngx_http_llmgw_clients_t *clients,
    ngx_chain_t *cl);


/*
 * Returns a chunk for at least size bytes; NULL: no memory.  last is the chunk
 * before it, which is full, or NULL.  Sizes are powers of two.  The first chunk
 * is small, since most streams get a token or two in an iteration; each further
 * one is twice as large as the one before, up to a limit.
 */

ngx_chain_t *
ngx_http_llmgw_chunk_get(ngx_http_llmgw_clients_t *clients, ngx_chain_t *last,
    size_t size)
{
    size_t        bytes;
    ngx_chain_t  *cl;

    bytes = NGX_HTTP_LLMGW_CHUNK_BYTES;

    if (last) {
        bytes = 2 * (last->buf->end - last->buf->start);
        bytes = ngx_min(bytes, NGX_HTTP_LLMGW_CHUNK_MAX);
    }

    while (bytes < size) {
        bytes *= 2;
    }

    if (bytes > NGX_HTTP_LLMGW_CHUNK_BYTES || clients->chunks == NULL) {
        return ngx_http_llmgw_chunk_create(clients, bytes);
    }

    cl = clients->chunks;
    clients->chunks = cl->next;
    clients->nchunks--;

    cl->next = NULL;
    cl->buf->flush = 0;

    return cl;
}


static ngx_chain_t *
ngx_http_llmgw_chunk_create(ngx_http_llmgw_clients_t *clients, size_t bytes)
{
    u_char       *p;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    p = ngx_alloc(bytes, clients->log);
    if (p == NULL) {
        return NULL;
    }

    cl = ngx_http_llmgw_chunk_head(clients);
    if (cl == NULL) {
        ngx_free(p);
        return NULL;
    }

    b = cl->buf;
    ngx_memzero(b, sizeof(ngx_buf_t));

    b->start = p;
    b->pos = p;
    b->last = p;
    b->end = p + bytes;
    b->temporary = 1;
    b->tag = (ngx_buf_tag_t) &ngx_http_llmgw_module;

    cl->next = NULL;

    return cl;
}


static ngx_chain_t *
ngx_http_llmgw_chunk_head(ngx_http_llmgw_clients_t *clients)
{
    ngx_chain_t            *cl;
    ngx_http_llmgw_head_t  *head;

    cl = clients->heads;

    if (cl) {
        clients->heads = cl->next;
        return cl;
    }

    head = ngx_alloc(sizeof(ngx_http_llmgw_head_t), clients->log);
    if (head == NULL) {
        return NULL;
    }

    head->link.buf = &head->buf;

    return &head->link;
}


/*
 * Called after the output was passed to nginx: moves the filled chunks from out
 * to busy, and returns those that nginx has sent to the worker.
 */

void
ngx_http_llmgw_chunk_sent(ngx_http_llmgw_stream_t *stream)
{
    ngx_chain_t  *cl, **ll;

    for (ll = &stream->busy; *ll; ll = &(*ll)->next) {
        /* void */
    }

    *ll = stream->out;
    stream->out = NULL;

    while (stream->busy && ngx_buf_size(stream->busy->buf) == 0) {
        cl = stream->busy;
        stream->busy = cl->next;
        ngx_http_llmgw_chunk_release(stream->clients, cl);
    }
}


/* Returns the filled chunks, which nginx has never had, to the worker. */

void
ngx_http_llmgw_chunk_drop(ngx_http_llmgw_stream_t *stream)
{
    ngx_chain_t  *cl;

    while (stream->out) {
        cl = stream->out;
        stream->out = cl->next;
        ngx_http_llmgw_chunk_release(stream->clients, cl);
    }
}


static void
ngx_http_llmgw_chunk_release(ngx_http_llmgw_clients_t *clients, ngx_chain_t *cl)
{
    ngx_buf_t  *b;

    b = cl->buf;

    if (clients->nchunks == NGX_HTTP_LLMGW_CHUNKS_KEPT
        || b->end - b->start > NGX_HTTP_LLMGW_CHUNK_BYTES)
    {
        ngx_free(b->start);
        cl->next = clients->heads;
        clients->heads = cl;
        return;
    }

    b->pos = b->start;
    b->last = b->start;
    b->last_buf = 0;

    cl->next = clients->chunks;
    clients->chunks = cl;
    clients->nchunks++;
}


/* Called when the request's pool is destroyed. */

void
ngx_http_llmgw_chunk_cleanup(void *data)
{
    ngx_chain_t              *cl;
    ngx_http_llmgw_stream_t  *stream = data;

    ngx_http_llmgw_chunk_sent(stream);

    while (stream->busy) {
        cl = stream->busy;
        stream->busy = cl->next;
        ngx_http_llmgw_chunk_release(stream->clients, cl);
    }
}


void
ngx_http_llmgw_chunk_done(ngx_http_llmgw_clients_t *clients)
{
    ngx_chain_t  *cl;

    while (clients->chunks) {
        cl = clients->chunks;
        clients->chunks = cl->next;
        ngx_free(cl->buf->start);
        ngx_free(cl);
    }

    while (clients->heads) {
        cl = clients->heads;
        clients->heads = cl->next;
        ngx_free(cl);
    }

    clients->nchunks = 0;
}
