
#include "http/request_body.h"


static ngx_int_t ngx_http_llmgw_body_copy(ngx_chain_t *cl, ngx_str_t *body);
static void *ngx_http_llmgw_body_resize(void *data, void *p, size_t size);


const llmgw_openai_memory_t  ngx_http_llmgw_body_heap = {
    ngx_http_llmgw_body_resize, NULL
};


ngx_int_t
ngx_http_llmgw_body_bytes(ngx_http_request_t *r, size_t limit,
    ngx_str_t *body)
{
    size_t        total;
    ngx_chain_t  *cl, *bufs;

    ngx_str_null(body);

    bufs = r->request_body ? r->request_body->bufs : NULL;
    total = 0;

    for (cl = bufs; cl; cl = cl->next) {
        total += ngx_buf_size(cl->buf);
    }

    if (total == 0) {
        return NGX_OK;
    }

    body->len = ngx_min(total, limit);

    if (bufs->next == NULL && ngx_buf_in_memory(bufs->buf)) {
        body->data = bufs->buf->pos;
        return NGX_OK;
    }

    body->data = ngx_palloc(r->pool, body->len);

    return body->data ? ngx_http_llmgw_body_copy(bufs, body) : NGX_ERROR;
}


static ngx_int_t
ngx_http_llmgw_body_copy(ngx_chain_t *cl, ngx_str_t *body)
{
    size_t      size;
    u_char     *p, *end;
    ngx_buf_t  *b;

    p = body->data;
    end = p + body->len;

    for ( /* void */ ; cl && p < end; cl = cl->next) {
        b = cl->buf;
        size = ngx_min((size_t) ngx_buf_size(b), (size_t) (end - p));

        if (ngx_buf_in_memory(b)) {
            ngx_memcpy(p, b->pos, size);

        } else if (ngx_read_file(b->file, p, size, b->file_pos)
                   != (ssize_t) size)
        {
            return NGX_ERROR;
        }

        p += size;
    }

    return NGX_OK;
}


/*
 * A decoded body is not needed again.  A gRPC client does not announce the
 * length of its message, so nginx has allocated the whole of
 * client_body_buffer_size for it, 16 kB or more, and would keep it until the
 * stream ends.  A longer body is in a file, which stays open as long, and in
 * the copy that ngx_http_llmgw_body_bytes() made.
 */

void
ngx_http_llmgw_body_free(ngx_http_request_t *r, ngx_str_t *body)
{
    ngx_chain_t              *cl;
    ngx_temp_file_t          *tf;
    ngx_http_request_body_t  *rb;

    rb = r->request_body;

    if (rb == NULL) {
        return;
    }

    /* ngx_pfree() finds large blocks only, and none that was freed before */

    for (cl = rb->bufs; cl; cl = cl->next) {
        if (cl->buf->start) {
            (void) ngx_pfree(r->pool, cl->buf->start);
        }
    }

    if (rb->buf && rb->buf->start) {
        (void) ngx_pfree(r->pool, rb->buf->start);
    }

    (void) ngx_pfree(r->pool, body->data);

    tf = rb->temp_file;

    if (tf && tf->file.fd != NGX_INVALID_FILE) {
        ngx_pool_run_cleanup_file(r->pool, tf->file.fd);
        tf->file.fd = NGX_INVALID_FILE;
    }

    rb->bufs = NULL;
    rb->buf = NULL;
}


static void *
ngx_http_llmgw_body_resize(void *data, void *p, size_t size)
{
    if (size > 0) {
        return realloc(p, size);
    }

    free(p);

    return NULL;
}
