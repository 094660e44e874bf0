
/*
 * Cork: one write for all streams of a client connection.
 *
 * nginx writes an HTTP/2 connection whenever one of its streams sends, so
 * fifty streams that get a token in one iteration of the event loop would cost
 * fifty writes, and a stream's first token two, its headers being one.  While
 * the worker hands out what it brought, such a connection is held: its
 * write event says that the socket takes nothing, and nginx queues the frames.
 * At the iteration's end its own write handler sends them all in one go.
 *
 * To a stream this looks as if its client were slow: it is blocked until nginx
 * calls its write handler, because its frames were sent, or the connection
 * broke.
 */

#include "front/clients.h"


#if (NGX_HTTP_V2)

#define NGX_HTTP_LLMGW_CACHE_LINE  64


static u_char *ngx_http_llmgw_cork_sharers(ngx_http_llmgw_clients_t *clients,
    ngx_http_v2_connection_t *h2c);
static void ngx_http_llmgw_cork_fetch(void *from, void *to);


/* Two connections may meet in a cell: then one is held that need not be. */

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
 * Before all that: how many streams of a connection have something.  What nginx
 * will touch of each was touched a token ago, and thousands of lines since; so
 * the processor is told of all of it here, and waits for it once, not once a
 * stream.
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


/* The request is about to send. */

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

    if (!clients->hands_out || !c->write->ready || c->error
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
 * A connection is closed by an event of its own, never by a stream's end, so
 * none is freed while it is held.
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
