
/*
 * Cork: one write for all streams of a client connection.
 *
 * nginx writes to an HTTP/2 connection whenever one of its streams sends.  So
 * fifty streams that get a token in one iteration of the event loop would cost
 * fifty writes, and a stream's first token would cost two, one of them for its
 * headers.  While the worker processes its list of streams, such a connection
 * is corked: its write event says that the socket takes nothing, and nginx
 * queues the frames.  At the end of the list nginx's own write handler sends
 * all of them in one write.
 *
 * To a stream this looks as if its client were slow: it is blocked until nginx
 * calls its write handler, because its frames were sent, or because the
 * connection broke.
 */

#include "front/clients.h"


#if (NGX_HTTP_V2)

#define NGX_HTTP_LLMGW_CACHE_LINE  64


static u_char *ngx_http_llmgw_cork_sharers(ngx_http_llmgw_clients_t *clients,
    ngx_http_v2_connection_t *h2c);
static void ngx_http_llmgw_cork_fetch(void *from, void *to);


/* Two connections may share a cell: then one is corked without need. */

static u_char *
ngx_http_llmgw_cork_sharers(ngx_http_llmgw_clients_t *clients,
    ngx_http_v2_connection_t *h2c)
{
    uintptr_t  p = (uintptr_t) h2c;

    return &clients->sharers[(p >> 4 ^ p >> 12) % NGX_HTTP_LLMGW_SHARERS];
}


static void
ngx_http_llmgw_cork_fetch(void *from, void *to)
{
    u_char  *p;

    for (p = from; p < (u_char *) to; p += NGX_HTTP_LLMGW_CACHE_LINE) {
        __builtin_prefetch(p);
    }
}

#endif


/*
 * Called before the list is processed: counts how many streams of each
 * connection are on it.  It prefetches as well: nginx touched each stream's
 * memory a token ago, and the processor has cached thousands of other lines
 * since.  Asking for all of it here makes the processor wait once, and not once
 * for each stream.
 */

void
ngx_http_llmgw_cork_survey(ngx_http_llmgw_clients_t *clients)
{
#if (NGX_HTTP_V2)
    u_char                   *sharers;
    ngx_queue_t              *q;
    ngx_connection_t         *c;
    ngx_http_request_t       *r;
    ngx_http_llmgw_stream_t  *stream;

    ngx_memzero(clients->sharers, NGX_HTTP_LLMGW_SHARERS);

    for (q = ngx_queue_head(&clients->work);
         q != ngx_queue_sentinel(&clients->work);
         q = ngx_queue_next(q))
    {
        stream = ngx_queue_data(q, ngx_http_llmgw_stream_t, work);
        r = stream->request;

        ngx_http_llmgw_cork_fetch(r->connection, r->connection + 1);
        ngx_http_llmgw_cork_fetch(&r->out, r + 1);

        if (r->stream) {
            ngx_http_llmgw_cork_fetch(r->stream, r->stream + 1);
        }
    }

    for (q = ngx_queue_head(&clients->work);
         q != ngx_queue_sentinel(&clients->work);
         q = ngx_queue_next(q))
    {
        stream = ngx_queue_data(q, ngx_http_llmgw_stream_t, work);
        r = stream->request;
        c = r->connection;

        ngx_http_llmgw_cork_fetch(c->write, c->write + 1);
        ngx_http_llmgw_cork_fetch(r->ctx, r->ctx + ngx_http_max_module);

        if (r->stream) {
            __builtin_prefetch(r->stream->free_frames);

            sharers = ngx_http_llmgw_cork_sharers(clients,
                                                  r->stream->connection);
            *sharers += (*sharers < 255);
        }
    }
#endif
}


/*
 * Called when the request is about to send: corks its connection, if other
 * streams of the connection are on the list, or if the answer's headers come
 * first.
 */

void
ngx_http_llmgw_cork(ngx_http_llmgw_clients_t *clients, ngx_http_request_t *r)
{
#if (NGX_HTTP_V2)
    ngx_connection_t          *c;
    ngx_http_v2_connection_t  *h2c;

    if (r->stream == NULL) {
        return;
    }

    h2c = r->stream->connection;
    c = h2c->connection;

    if (!clients->running || !c->write->ready || c->error
        || (*ngx_http_llmgw_cork_sharers(clients, h2c) < 2 && r->header_sent)
        || clients->ncorked == NGX_HTTP_LLMGW_CORKED)
    {
        return;
    }

    c->write->ready = 0;
    clients->corked[clients->ncorked++] = c;
#endif
}


/*
 * nginx closes an HTTP/2 connection in an event of the connection's own, never
 * when a stream ends, so no connection is freed while it is corked.
 */

void
ngx_http_llmgw_uncork(ngx_http_llmgw_clients_t *clients)
{
    ngx_uint_t         i;
    ngx_connection_t  *c;

    for (i = 0; i < clients->ncorked; i++) {
        c = clients->corked[i];

        c->write->ready = 1;
        c->write->handler(c->write);
    }

    clients->ncorked = 0;
}
