
#include "fleet/body_memory.h"
#include "front/openai/receive.h"
#include "http/request_body.h"


static ngx_int_t ngx_http_llmgw_openai_body_refuse(
    ngx_http_llmgw_openai_body_t *body);
static void ngx_http_llmgw_openai_body_unread(ngx_http_request_t *r);
static void ngx_http_llmgw_openai_body_pull(ngx_http_request_t *r);
static ngx_http_llmgw_openai_body_t *ngx_http_llmgw_openai_body_find(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_llmgw_openai_body_take(
    ngx_http_llmgw_openai_body_t *body);
static void ngx_http_llmgw_openai_body_fail(
    ngx_http_llmgw_openai_body_t *body, ngx_int_t rc);
static void ngx_http_llmgw_openai_body_set_error(
    ngx_http_llmgw_openai_body_t *body, ngx_int_t rc);
static void ngx_http_llmgw_openai_body_whole(
    ngx_http_llmgw_openai_body_t *body);
static void ngx_http_llmgw_openai_body_cleanup(void *data);


ngx_int_t
ngx_http_llmgw_openai_receive(ngx_http_request_t *r,
    ngx_http_llmgw_pool_t *pool, const ngx_http_llmgw_openai_asked_t *asked)
{
    ngx_int_t                      rc;
    ngx_http_cleanup_t            *cln;
    ngx_http_llmgw_loc_conf_t     *llcf;
    ngx_http_llmgw_openai_body_t  *body;

    /*
     * within a block of the request's pool it would push what nginx needs into
     * another one
     */

    body = ngx_pmemalign(r->pool, sizeof(ngx_http_llmgw_openai_body_t),
                         NGX_POOL_ALIGNMENT);
    cln = ngx_http_cleanup_add(r, 0);

    if (body == NULL || cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memzero(body, sizeof(ngx_http_llmgw_openai_body_t));

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);

    body->request = r;
    body->pool = pool;
    body->asked = *asked;
    body->prefix = ngx_http_llmgw_conf_openai_prefix(pool->conf);
    body->by = llcf->key_by;
    body->index = pool->conf->index.shm_zone ? &pool->conf->index : NULL;

    ngx_http_llmgw_body_memory_holder(r, pool, &body->holder,
                                      ngx_http_llmgw_openai_block_end);

    cln->handler = ngx_http_llmgw_openai_body_cleanup;
    cln->data = body;

    rc = ngx_http_llmgw_openai_block_announce(body);

    if (rc != NGX_OK) {
        ngx_http_llmgw_openai_body_set_error(body, rc);
        return ngx_http_llmgw_openai_body_refuse(body);
    }

    r->request_body_no_buffering = 1;

    rc = ngx_http_read_client_request_body(r,
                                           ngx_http_llmgw_openai_body_pull);

    if (rc < NGX_HTTP_SPECIAL_RESPONSE) {
        return NGX_DONE;
    }

    if (r->connection->error) {
        return NGX_HTTP_CLIENT_CLOSED_REQUEST;
    }

    ngx_http_llmgw_openai_body_unread(r);
    ngx_http_llmgw_openai_body_set_error(body, rc);

    return ngx_http_llmgw_openai_body_refuse(body);
}


/*
 * Called within the content handler, before the body is read.  The answer and
 * the phase each end with a call that takes a reference.
 */

static ngx_int_t
ngx_http_llmgw_openai_body_refuse(ngx_http_llmgw_openai_body_t *body)
{
    ngx_http_request_t  *r;

    r = body->request;

    r->expect_tested = 1;                   /* the client need not send it */
    (void) ngx_http_discard_request_body(r);

    r->main->count++;
    ngx_http_llmgw_openai_body_finish(body);

    return NGX_DONE;
}


/* The rest of the body would be taken for the next request. */

static void
ngx_http_llmgw_openai_body_unread(ngx_http_request_t *r)
{
#if (NGX_HTTP_V2)
    if (r->stream) {
        r->stream->skip_data = 1;
        return;
    }
#endif

    r->keepalive = 0;
    r->lingering_close = 1;
}


/*
 * Reads the bytes that have come.  nginx calls it when it begins to read, or
 * has the whole body by then, and whenever more bytes come.
 */

static void
ngx_http_llmgw_openai_body_pull(ngx_http_request_t *r)
{
    ngx_int_t                      rc;
    ngx_http_llmgw_openai_body_t  *body;

    body = ngx_http_llmgw_openai_body_find(r);
    r->read_event_handler = ngx_http_llmgw_openai_body_pull;

    if (body->idle) {
        ngx_http_llmgw_openai_body_fail(body, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    for ( ;; ) {
        rc = ngx_http_llmgw_openai_body_take(body);

        if (rc == NGX_OK && !r->reading_body) {
            ngx_http_llmgw_openai_body_whole(body);
            return;
        }

        if (rc == NGX_OK) {
            rc = ngx_http_llmgw_openai_block_adopt(body);
        }

        if (rc == NGX_OK) {
            rc = ngx_http_read_unbuffered_request_body(r);
        }

        if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
            ngx_http_llmgw_openai_body_fail(body, rc);
            return;
        }

        if (rc == NGX_AGAIN && r->request_body->bufs == NULL) {
            return;
        }
    }
}


static ngx_http_llmgw_openai_body_t *
ngx_http_llmgw_openai_body_find(ngx_http_request_t *r)
{
    ngx_http_cleanup_t  *cln;

    for (cln = r->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_llmgw_openai_body_cleanup) {
            return cln->data;
        }
    }

    return NULL;
}


/*
 * Takes over what nginx has received outside of the block.  NGX_OK, or a
 * status.
 */

static ngx_int_t
ngx_http_llmgw_openai_body_take(ngx_http_llmgw_openai_body_t *body)
{
    size_t               size;
    ngx_int_t            rc;
    ngx_buf_t           *b;
    ngx_chain_t         *cl;
    ngx_http_request_t  *r;

    r = body->request;

    while (r->request_body->bufs) {
        cl = r->request_body->bufs;
        b = cl->buf;
        size = b->last - b->pos;

        if (size > 0) {
            llmgw_holder_received(&body->holder, ngx_current_msec);
        }

        rc = ngx_buf_size(b) == (off_t) size
             ? ngx_http_llmgw_openai_block_room(body, size)
             : NGX_HTTP_INTERNAL_SERVER_ERROR;      /* it is in a file */

        if (rc != NGX_OK) {
            return rc;
        }

        if (size > 0 && b->pos != body->block + body->len) {
            ngx_memcpy(body->block + body->len, b->pos, size);
        }

        body->len += size;
        b->pos = b->last;

        r->request_body->bufs = cl->next;
        ngx_free_chain(r->pool, cl);
    }

    return NGX_OK;
}


/*
 * Ends a request while its body is read.  The request may be gone after this.
 */

static void
ngx_http_llmgw_openai_body_fail(ngx_http_llmgw_openai_body_t *body,
    ngx_int_t rc)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = body->request;
    c = r->connection;

    if (c->error) {
        ngx_http_finalize_request(r, NGX_HTTP_CLIENT_CLOSED_REQUEST);
        return;
    }

    r->read_event_handler = ngx_http_block_reading;

    if (c->read->timer_set) {
        ngx_del_timer(c->read);
    }

    /* a client that was too slow gets its answer */

    c->read->timedout = 0;
    c->timedout = 0;

    ngx_http_llmgw_openai_body_unread(r);
    ngx_http_llmgw_openai_body_set_error(body, rc);
    ngx_http_llmgw_openai_body_finish(body);
}


static void
ngx_http_llmgw_openai_body_set_error(ngx_http_llmgw_openai_body_t *body,
    ngx_int_t rc)
{
    if (rc == NGX_HTTP_SERVICE_UNAVAILABLE) {
        llmgw_openai_error_set(&body->error, rc, "body_memory", NULL,
                               "The gateway holds too many large requests.");

    } else {
        llmgw_openai_error_of_status(&body->error, rc);
    }

    ngx_http_llmgw_openai_body_release(body);
}


static void
ngx_http_llmgw_openai_body_whole(ngx_http_llmgw_openai_body_t *body)
{
    ngx_str_t            none;
    ngx_http_request_t  *r;

    r = body->request;
    r->read_event_handler = ngx_http_block_reading;

    ngx_str_null(&none);
    ngx_http_llmgw_body_free(r, &none);
    llmgw_holder_whole(&body->holder);

    if (body->len > 0 && body->len < body->size
        && ngx_http_llmgw_openai_block_resize(body, body->len) != NGX_OK)
    {
        ngx_http_llmgw_openai_body_fail(body, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ngx_http_llmgw_openai_walk(body);
}


/*
 * Not if the client is gone: its end may have come together with the end of the
 * body, and no event would report it again.
 */

void
ngx_http_llmgw_openai_body_finish(ngx_http_llmgw_openai_body_t *body)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = body->request;
    c = r->connection;

    if (body->error.status == 0
        && ngx_http_llmgw_openai_body_needs(body, body->body.held) != NGX_OK)
    {
        ngx_http_llmgw_openai_body_set_error(body,
                                             NGX_HTTP_SERVICE_UNAVAILABLE);
    }

    if (body->error.status == 0) {
        ngx_http_test_reading(r);

        if (c->error) {
            return;
        }

    } else {
        ngx_http_llmgw_openai_body_release(body);
    }

    ngx_http_llmgw_openai_received(body);
}


ngx_int_t
ngx_http_llmgw_openai_body_needs(ngx_http_llmgw_openai_body_t *body,
    size_t bytes)
{
    return ngx_http_llmgw_body_memory_hold(body->pool, &body->holder,
                                           body->holder.bytes + bytes);
}


void
ngx_http_llmgw_openai_body_release(ngx_http_llmgw_openai_body_t *body)
{
    llmgw_openai_body_done(&body->body);

    (void) ngx_http_llmgw_body_memory_hold(body->pool, &body->holder, 0);

    ngx_http_llmgw_openai_block_free(body->block, body->size);

    body->block = NULL;
    body->size = 0;
    body->len = 0;

    if (body->buf) {
        body->buf->start = NULL;            /* nginx's, into the block */
        body->buf->pos = NULL;
        body->buf->last = NULL;
        body->buf->end = NULL;
    }
}


/* The request ends, perhaps while a thread reads the block. */

static void
ngx_http_llmgw_openai_body_cleanup(void *data)
{
    ngx_http_llmgw_openai_body_t  *body = data;

    if (body->walks) {
        body->gone = 1;
        return;
    }

    ngx_http_llmgw_openai_body_release(body);
}
