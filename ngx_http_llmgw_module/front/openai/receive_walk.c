
/*
 * A body that is whole goes through core/openai: at once, or in a thread while
 * the worker does other work.  The request is held until the thread has ended,
 * even if its client has gone by then.
 */

#include "core/openai/body_blocks.h"
#include "core/openai/form.h"
#include "front/openai/receive.h"
#include "http/request_body.h"


/* A longer body is walked in a thread; one of this length takes some 0.1 ms. */
#define NGX_HTTP_LLMGW_OPENAI_INLINE_BYTES  65536

#define NGX_HTTP_LLMGW_OPENAI_GUARD         60000   /* ms */


static void ngx_http_llmgw_openai_walk_now(
    ngx_http_llmgw_openai_body_t *body);

#if (NGX_THREADS)

static ngx_int_t ngx_http_llmgw_openai_walk_post(
    ngx_http_llmgw_openai_body_t *body);
static void ngx_http_llmgw_openai_walk_thread(void *data, ngx_log_t *log);
static void ngx_http_llmgw_openai_walk_done(ngx_event_t *ev);
static void ngx_http_llmgw_openai_walk_guard(ngx_event_t *ev);


static ngx_str_t  ngx_http_llmgw_openai_walk_pool = ngx_string("default");

#endif


ngx_int_t
ngx_http_llmgw_openai_walk_threads(ngx_conf_t *cf)
{
#if (NGX_THREADS)
    if (ngx_thread_pool_add(cf, &ngx_http_llmgw_openai_walk_pool) == NULL) {
        return NGX_ERROR;
    }
#endif

    return NGX_OK;
}


void
ngx_http_llmgw_openai_walk(ngx_http_llmgw_openai_body_t *body)
{
    if (body->index) {
        /* here, since a thread must not touch the pool */
        body->blocks = ngx_palloc(body->request->pool,
                                  body->index->match * sizeof(uint64_t));
    }

#if (NGX_THREADS)
    if (body->len > NGX_HTTP_LLMGW_OPENAI_INLINE_BYTES
        && ngx_http_llmgw_openai_walk_post(body) == NGX_OK)
    {
        return;
    }
#endif

    ngx_http_llmgw_openai_walk_now(body);
    ngx_http_llmgw_openai_body_finish(body);
}


/*
 * Runs in the event loop or in a thread: it touches only the body, and of the
 * request only what the client's header contained.
 */

static void
ngx_http_llmgw_openai_walk_now(ngx_http_llmgw_openai_body_t *body)
{
    int                           rc;
    ngx_str_t                     type;
    const ngx_http_llmgw_path_t  *path;

    path = body->asked.path;

    if (path->is_form) {
        type = body->request->headers_in.content_type->value;
        rc = llmgw_openai_form_read(&body->body, (char *) type.data, type.len,
                                    path->api, body->block, body->len,
                                    &ngx_http_llmgw_body_heap, &body->error);

    } else {
        rc = llmgw_openai_body_read(&body->body, path->api, body->block,
                                    body->len, &ngx_http_llmgw_body_heap,
                                    &body->error);
    }

    if (rc != 0) {
        return;
    }

    body->key = llmgw_openai_affinity_key(&body->body, body->prefix,
                                          body->by);

    if (body->blocks) {
        body->nblocks = llmgw_openai_blocks(&body->body,
                                            body->index->block,
                                            body->blocks,
                                            body->index->match);
    }
}


#if (NGX_THREADS)

/* NGX_DECLINED: there are no threads, or too many tasks wait for them. */

static ngx_int_t
ngx_http_llmgw_openai_walk_post(ngx_http_llmgw_openai_body_t *body)
{
    ngx_thread_pool_t   *tp;
    ngx_thread_task_t   *task;
    ngx_http_request_t  *r;

    r = body->request;
    tp = ngx_thread_pool_get((ngx_cycle_t *) ngx_cycle,
                             &ngx_http_llmgw_openai_walk_pool);
    task = ngx_thread_task_alloc(r->pool, 0);

    if (tp == NULL || task == NULL) {
        return NGX_DECLINED;
    }

    task->ctx = body;
    task->handler = ngx_http_llmgw_openai_walk_thread;
    task->event.data = body;
    task->event.handler = ngx_http_llmgw_openai_walk_done;
    task->event.log = r->connection->log;

    if (ngx_thread_task_post(tp, task) != NGX_OK) {
        return NGX_DECLINED;
    }

    body->walks = 1;
    r->main->blocked++;

    body->guard.handler = ngx_http_llmgw_openai_walk_guard;
    body->guard.data = body;
    body->guard.log = r->connection->log;
    ngx_add_timer(&body->guard, NGX_HTTP_LLMGW_OPENAI_GUARD);

    return NGX_OK;
}


static void
ngx_http_llmgw_openai_walk_thread(void *data, ngx_log_t *log)
{
    ngx_http_llmgw_openai_walk_now(data);
}


static void
ngx_http_llmgw_openai_walk_done(ngx_event_t *ev)
{
    ngx_connection_t              *c;
    ngx_http_request_t            *r;
    ngx_http_llmgw_openai_body_t  *body = ev->data;

    r = body->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    body->walks = 0;
    r->main->blocked--;
    ngx_del_timer(&body->guard);            /* it is set again in any case */

    if (body->gone || c->error) {
        ngx_http_llmgw_openai_body_release(body);
        ngx_http_finalize_request(r, NGX_HTTP_CLIENT_CLOSED_REQUEST);

    } else {
        ngx_http_llmgw_openai_body_finish(body);
    }

    ngx_http_run_posted_requests(c);
}


/* Keeps a worker that is to exit alive until the thread has ended. */

static void
ngx_http_llmgw_openai_walk_guard(ngx_event_t *ev)
{
    ngx_log_error(NGX_LOG_WARN, ev->log, 0,
                  "llmgw: a body is still being walked after %d ms",
                  NGX_HTTP_LLMGW_OPENAI_GUARD);
    ngx_add_timer(ev, NGX_HTTP_LLMGW_OPENAI_GUARD);
}

#endif
