
/*
 * The list of streams that have something to do.
 *
 * Callbacks of a session put streams on the list, and a posted event works it
 * off at the end of the event loop's iteration.  So all tokens that a stream
 * got in an iteration are flushed at once, all streams of a connection share
 * one write (cork.c), and no request is finalized while a callback uses it.
 */

#include "attempt/asking.h"
#include "front/clients.h"


static void ngx_http_llmgw_clients_run(ngx_event_t *ev);
static void ngx_http_llmgw_clients_done(void *data);


ngx_http_llmgw_clients_t *
ngx_http_llmgw_clients_get(ngx_http_llmgw_worker_t *worker)
{
    ngx_pool_cleanup_t        *cln;
    ngx_http_llmgw_clients_t  *clients;

    if (worker->conf->clients) {
        return worker->conf->clients;
    }

    clients = ngx_pcalloc(worker->memory, sizeof(ngx_http_llmgw_clients_t));
    cln = ngx_pool_cleanup_add(worker->memory, 0);

    if (clients == NULL || cln == NULL) {
        return NULL;
    }

    clients->worker = worker;
    clients->log = worker->log;
    clients->run.handler = ngx_http_llmgw_clients_run;
    clients->run.data = clients;
    clients->run.log = worker->log;
    ngx_queue_init(&clients->work);

    cln->handler = ngx_http_llmgw_clients_done;
    cln->data = clients;

    worker->conf->clients = clients;

    return clients;
}


static void
ngx_http_llmgw_clients_done(void *data)
{
    ngx_http_llmgw_clients_t  *clients = data;

    if (clients->run.posted) {
        ngx_delete_posted_event(&clients->run);
    }

    ngx_http_llmgw_chunk_done(clients);
    clients->done = 1;
}


void
ngx_http_llmgw_clients_post(ngx_http_llmgw_stream_t *stream)
{
    if (stream->queued || stream->record.finished || stream->clients->done) {
        return;
    }

    stream->queued = 1;
    ngx_queue_insert_tail(&stream->clients->work, &stream->work);
    ngx_post_event(&stream->clients->run, &ngx_posted_events);
}


void
ngx_http_llmgw_clients_forget(ngx_http_llmgw_stream_t *stream)
{
    if (stream->queued) {
        stream->queued = 0;
        ngx_queue_remove(&stream->work);
    }
}


/*
 * This runs outside of nginx's own handlers, which run the requests that nginx
 * posts when a stream is finalized.  So posted requests are run here: otherwise
 * they would wait for the next event of a client that may be gone.
 */

static void
ngx_http_llmgw_clients_run(ngx_event_t *ev)
{
    ngx_queue_t               *q;
    ngx_connection_t          *c;
    ngx_http_llmgw_stream_t   *stream;
    ngx_http_llmgw_clients_t  *clients = ev->data;

    ngx_http_llmgw_cork_survey(clients);
    clients->running = 1;

    while (!ngx_queue_empty(&clients->work)) {
        q = ngx_queue_head(&clients->work);
        stream = ngx_queue_data(q, ngx_http_llmgw_stream_t, work);
        c = stream->request->connection;

        ngx_http_llmgw_clients_forget(stream);
        ngx_http_llmgw_stream_run(stream);
        ngx_http_run_posted_requests(c);
    }

    clients->running = 0;

    ngx_http_llmgw_uncork(clients);
    llmgw_coalesce_iteration(&clients->worker->asking->coalesce.load,
                             ngx_current_msec);
}
