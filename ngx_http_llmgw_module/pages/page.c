
/*
 * Pages: page.h has the reason why they are written in slices.
 *
 *     send --> slice ----> all taken? --> next iteration --> slice
 *                |              no: wait until the client reads
 *                +--- last one: the request ends
 *
 * A page that is not sent completely has a timer.  A worker that is told to
 * exit waits as long as there are timers, so it waits for the page; but a
 * client that does not read must not keep the worker for ever.
 */

#include "http/header.h"
#include "pages/facts/snapshot.h"
#include "pages/page.h"


static void ngx_http_llmgw_page_cleanup(void *data);
static void ngx_http_llmgw_page_handler(ngx_http_request_t *r);
static ngx_http_llmgw_page_t *ngx_http_llmgw_page_of(ngx_http_request_t *r);
static void ngx_http_llmgw_page_slice(ngx_http_llmgw_page_t *page);
static ngx_int_t ngx_http_llmgw_page_flush(ngx_http_llmgw_page_t *page);
static void ngx_http_llmgw_page_wait(ngx_http_llmgw_page_t *page);
static ngx_buf_t *ngx_http_llmgw_page_buf(ngx_http_llmgw_page_t *page);


void *
ngx_http_llmgw_page_create(ngx_http_request_t *r, size_t size)
{
    ngx_http_cleanup_t     *cln;
    ngx_http_llmgw_page_t  *page;

    page = ngx_pcalloc(r->pool, size);
    cln = ngx_http_cleanup_add(r, 0);

    if (page == NULL || cln == NULL) {
        return NULL;
    }

    cln->handler = ngx_http_llmgw_page_cleanup;
    cln->data = page;

    page->request = r;
    page->snapshots = ngx_http_llmgw_snapshot_take(r);

    return page->snapshots ? page : NULL;
}


ngx_int_t
ngx_http_llmgw_page_no_store(ngx_http_request_t *r)
{
    static ngx_str_t  no_store = ngx_string("no-store");

    return ngx_http_llmgw_header_add(&r->headers_out.headers, "Cache-Control",
                                     &no_store)
           ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_llmgw_page_send(ngx_http_llmgw_page_t *page, ngx_str_t *type)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = page->request;
    page->more = 1;
    page->last = &page->out;

    if (ngx_http_llmgw_page_no_store(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_type = *type;
    r->headers_out.content_type_len = type->len;
    r->headers_out.content_type_lowcase = NULL;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    if (!r->discard_body) {
        r->read_event_handler = ngx_http_test_reading;
    }

    r->write_event_handler = ngx_http_llmgw_page_handler;
    r->main->count++;

    ngx_http_llmgw_page_slice(page);

    return NGX_DONE;
}


static void
ngx_http_llmgw_page_cleanup(void *data)
{
    ngx_http_llmgw_page_t  *page = data;

    ngx_http_llmgw_snapshot_release(page->snapshots);
}


/*
 * Called when the client has read, when the next iteration has begun, or when
 * time is up.
 */

static void
ngx_http_llmgw_page_handler(ngx_http_request_t *r)
{
    ngx_event_t            *wev;
    ngx_http_llmgw_page_t  *page;

    wev = r->connection->write;

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, NGX_ETIMEDOUT,
                      "llmgw: client does not take its page");
        r->connection->timedout = 1;
        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    page = ngx_http_llmgw_page_of(r);

    if (page->busy) {
        switch (ngx_http_llmgw_page_flush(page)) {

        case NGX_OK:
            break;

        case NGX_AGAIN:
            ngx_http_llmgw_page_wait(page);
            return;

        default:
            ngx_http_finalize_request(r, NGX_ERROR);
            return;
        }
    }

    ngx_http_llmgw_page_slice(page);
}


/* The main request has the cleanups of all its subrequests' pages. */

static ngx_http_llmgw_page_t *
ngx_http_llmgw_page_of(ngx_http_request_t *r)
{
    ngx_http_cleanup_t     *cln;
    ngx_http_llmgw_page_t  *page;

    for (cln = r->main->cleanup; /* void */ ; cln = cln->next) {
        page = cln->data;

        if (cln->handler == ngx_http_llmgw_page_cleanup
            && page->request == r)
        {
            return page;
        }
    }
}


/* A subrequest's page is a part of another answer, and is written at once. */

static void
ngx_http_llmgw_page_slice(ngx_http_llmgw_page_t *page)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = page->request;
    page->bytes = 0;

    while (page->more && !page->failed
           && (page->bytes < NGX_HTTP_LLMGW_PAGE_BYTES || r != r->main))
    {
        page->more = page->next(page);
    }

    if (page->failed) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    if (page->buf == NULL) {
        /* the slice before was full, and the last one */
        ngx_http_finalize_request(r, ngx_http_send_special(r, NGX_HTTP_LAST));
        return;
    }

    page->buf->flush = 1;
    page->buf->last_buf = (!page->more && r == r->main);
    page->buf->last_in_chain = !page->more;
    page->buf = NULL;

    rc = ngx_http_llmgw_page_flush(page);

    if (rc == NGX_ERROR || !page->more) {
        ngx_http_finalize_request(r, rc == NGX_ERROR ? NGX_ERROR : NGX_OK);
        return;
    }

    if (rc == NGX_OK) {
        ngx_post_event(r->connection->write, &ngx_posted_next_events);
    }

    ngx_http_llmgw_page_wait(page);
}


/* NGX_AGAIN: the client has not taken all output. */

static ngx_int_t
ngx_http_llmgw_page_flush(ngx_http_llmgw_page_t *page)
{
    ngx_int_t  rc;

    rc = ngx_http_output_filter(page->request, page->out);

    ngx_chain_update_chains(page->request->pool, &page->free, &page->busy,
                            &page->out,
                            (ngx_buf_tag_t) &ngx_http_llmgw_module);
    page->last = &page->out;

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    return page->busy ? NGX_AGAIN : NGX_OK;
}


static void
ngx_http_llmgw_page_wait(ngx_http_llmgw_page_t *page)
{
    ngx_event_t               *wev;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = page->request;
    wev = r->connection->write;
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    /* delayed: the timer is limit_rate's */

    if (!wev->delayed) {
        ngx_add_timer(wev, clcf->send_timeout);
    }

    if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_ERROR);
    }
}


u_char *
ngx_http_llmgw_page_room(ngx_http_llmgw_page_t *page, size_t len)
{
    ngx_buf_t  *b;

    b = page->buf;

    if (b == NULL || (size_t) (b->end - b->last) < len) {
        b = ngx_http_llmgw_page_buf(page);
    }

    return b ? b->last : NULL;
}


void
ngx_http_llmgw_page_wrote(ngx_http_llmgw_page_t *page, u_char *end)
{
    page->bytes += end - page->buf->last;
    page->buf->last = end;
}


static ngx_buf_t *
ngx_http_llmgw_page_buf(ngx_http_llmgw_page_t *page)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    cl = ngx_chain_get_free_buf(page->request->pool, &page->free);
    if (cl == NULL) {
        page->failed = 1;
        return NULL;
    }

    b = cl->buf;

    if (b->start == NULL) {
        b->start = ngx_palloc(page->request->pool, NGX_HTTP_LLMGW_PAGE_BYTES);
        if (b->start == NULL) {
            page->failed = 1;
            return NULL;
        }

        b->end = b->start + NGX_HTTP_LLMGW_PAGE_BYTES;
        b->temporary = 1;
        b->tag = (ngx_buf_tag_t) &ngx_http_llmgw_module;
    }

    b->pos = b->last = b->start;
    b->flush = 0;

    *page->last = cl;
    page->last = &cl->next;
    page->buf = b;

    return b;
}


void
ngx_http_llmgw_page_write(ngx_http_llmgw_page_t *page, const void *data,
    size_t len)
{
    size_t   n;
    u_char  *p;

    for ( /* void */ ; len; len -= n) {
        p = ngx_http_llmgw_page_room(page, 1);
        if (p == NULL) {
            return;
        }

        n = ngx_min(len, (size_t) (page->buf->end - p));
        ngx_http_llmgw_page_wrote(page, ngx_cpymem(p, data, n));
        data = (const u_char *) data + n;
    }
}
