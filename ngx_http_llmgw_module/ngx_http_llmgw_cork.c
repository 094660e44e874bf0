
/*
 * Cork: one write for all streams of a client connection.
 *
 * nginx writes an HTTP/2 connection whenever one of its streams sends, so
 * fifty streams that get a token in one turn of the event loop would cost
 * fifty writes, and a stream's first token two, its headers being one.  While
 * the worker hands out what the turn brought, such a connection is held: its
 * write event says that the socket takes nothing, and nginx queues the frames.
 * At the turn's end its own write handler sends them all in one go.
 *
 * To a stream this looks as if its client were slow: it is blocked until nginx
 * calls its write handler, because its frames were sent, or the connection
 * broke.
 */

#include "ngx_http_llmgw.h"


/* The request is about to send. */

void
ngx_http_llmgw_cork(ngx_http_llmgw_worker_t *worker, ngx_http_request_t *r)
{
#if (NGX_HTTP_V2)
    ngx_connection_t          *c;
    ngx_http_v2_connection_t  *h2c;

    if (r->stream == NULL) {
        return;
    }

    h2c = r->stream->connection;
    c = h2c->connection;

    if (!worker->hands_out || !c->write->ready || c->error
        || (h2c->processing < 2 && r->header_sent)
        || worker->ncorked == NGX_HTTP_LLMGW_CORKED)
    {
        return;
    }

    c->write->ready = 0;
    worker->corked[worker->ncorked++] = c;
#endif
}


/*
 * A connection is closed by an event of its own, never by a stream's end, so
 * none is freed while it is held.
 */

void
ngx_http_llmgw_uncork(ngx_http_llmgw_worker_t *worker)
{
    ngx_uint_t         i;
    ngx_connection_t  *c;

    for (i = 0; i < worker->ncorked; i++) {
        c = worker->corked[i];

        c->write->ready = 1;
        c->write->handler(c->write);
    }

    worker->ncorked = 0;
}
