
/*
 * Cork: one write for all streams of a client connection.
 *
 * nginx writes an HTTP/2 connection whenever one of its streams sends, so
 * fifty streams that get a token in one turn of the event loop would cost
 * fifty writes.  While the worker hands out what the turn brought, a
 * connection that carries several streams is held: its write event says that
 * the socket takes nothing, and nginx queues the frames.  Then each is
 * released, and its own write handler sends them all in one go.
 *
 * Whether a client is slow can be told only behind that, so streams of held
 * connections are judged last (ngx_http_llmgw_stream_settle).
 */

#include "ngx_http_llmgw.h"


/* 1: the request's connection is held now. */

ngx_uint_t
ngx_http_llmgw_cork(ngx_http_llmgw_worker_t *worker, ngx_http_request_t *r)
{
#if (NGX_HTTP_V2)
    ngx_connection_t          *c;
    ngx_http_v2_connection_t  *h2c;

    if (r->stream == NULL) {
        return 0;
    }

    h2c = r->stream->connection;
    c = h2c->connection;

    if (!c->write->ready) {
        /* held already; or full, which is found out as well behind it */
        return worker->ncorked > 0;
    }

    if (h2c->processing < 2 || c->error
        || worker->ncorked == NGX_HTTP_LLMGW_CORKED)
    {
        return 0;
    }

    c->write->ready = 0;
    worker->corked[worker->ncorked++] = c;

    return 1;
#else
    return 0;
#endif
}


/* No connection is freed in between: that takes an event of its own. */

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
