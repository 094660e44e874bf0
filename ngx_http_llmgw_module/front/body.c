
/*
 * The request body as one gRPC message: a prefix of five bytes (compressed
 * flag, length) and exactly that many bytes behind it.  nginx holds a body in
 * memory, in several buffers, or in a temporary file.
 */

#include "front/answer.h"
#include "front/body.h"


static ngx_int_t ngx_http_llmgw_body_join(ngx_http_request_t *r,
    ngx_str_t *body);
static ngx_int_t ngx_http_llmgw_body_copy(ngx_http_request_t *r, u_char *p);


/* NGX_OK and the message without its prefix; NGX_DONE: answered. */

ngx_int_t
ngx_http_llmgw_body_message(ngx_http_request_t *r, ngx_str_t *message)
{
    size_t     len;
    u_char    *p;
    ngx_str_t  body;

    if (ngx_http_llmgw_body_join(r, &body) != NGX_OK) {
        ngx_http_llmgw_answer_text(r, LLMGW_GRPC_INTERNAL,
                                   "the request could not be read");
        return NGX_DONE;
    }

    p = body.data;

    if (body.len < LLMGW_GRPC_PREFIX_BYTES) {
        ngx_http_llmgw_answer_text(r, LLMGW_GRPC_INVALID_ARGUMENT,
                                   "the request holds no message");
        return NGX_DONE;
    }

    if (p[0] == 1) {
        ngx_http_llmgw_answer_text(r, LLMGW_GRPC_UNIMPLEMENTED,
                                   "compressed messages are not supported");
        return NGX_DONE;
    }

    len = ((size_t) p[1] << 24) | ((size_t) p[2] << 16)
          | ((size_t) p[3] << 8) | p[4];

    if (p[0] != 0 || len != body.len - LLMGW_GRPC_PREFIX_BYTES) {
        ngx_http_llmgw_answer_text(r, LLMGW_GRPC_INVALID_ARGUMENT,
                                   "the request is not one whole message");
        return NGX_DONE;
    }

    message->data = p + LLMGW_GRPC_PREFIX_BYTES;
    message->len = len;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_body_join(ngx_http_request_t *r, ngx_str_t *body)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    ngx_str_null(body);

    if (r->request_body == NULL || r->request_body->bufs == NULL) {
        return NGX_OK;
    }

    cl = r->request_body->bufs;
    b = cl->buf;

    if (cl->next == NULL && !b->in_file) {
        body->data = b->pos;
        body->len = b->last - b->pos;
        return NGX_OK;
    }

    for ( /* void */ ; cl; cl = cl->next) {
        body->len += ngx_buf_size(cl->buf);
    }

    body->data = ngx_palloc(r->pool, body->len + 1);
    if (body->data == NULL) {
        return NGX_ERROR;
    }

    return ngx_http_llmgw_body_copy(r, body->data);
}


static ngx_int_t
ngx_http_llmgw_body_copy(ngx_http_request_t *r, u_char *p)
{
    size_t        size;
    ssize_t       n;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        b = cl->buf;
        size = ngx_buf_size(b);

        if (!b->in_file) {
            p = ngx_cpymem(p, b->pos, size);
            continue;
        }

        n = ngx_read_file(b->file, p, size, b->file_pos);

        if (n == NGX_ERROR || (size_t) n != size) {
            return NGX_ERROR;
        }

        p += size;
    }

    return NGX_OK;
}


/*
 * Decoded, it is not needed again.  A gRPC client does not say how long its
 * message will be, so nginx has taken the whole of client_body_buffer_size for
 * it, 16 kB and more, and would keep them for as long as the stream lasts; a
 * longer one lies in a file, open as long, and in the copy that joined it.
 */

void
ngx_http_llmgw_body_free(ngx_http_request_t *r, ngx_str_t *message)
{
    ngx_chain_t              *cl;
    ngx_temp_file_t          *tf;
    ngx_http_request_body_t  *rb;

    rb = r->request_body;

    if (rb == NULL) {
        return;
    }

    /* what is small, or one that was freed before, is not found */

    for (cl = rb->bufs; cl; cl = cl->next) {
        if (cl->buf->start) {
            (void) ngx_pfree(r->pool, cl->buf->start);
        }
    }

    if (rb->buf && rb->buf->start) {
        (void) ngx_pfree(r->pool, rb->buf->start);
    }

    (void) ngx_pfree(r->pool, message->data - LLMGW_GRPC_PREFIX_BYTES);

    tf = rb->temp_file;

    if (tf && tf->file.fd != NGX_INVALID_FILE) {
        ngx_pool_run_cleanup_file(r->pool, tf->file.fd);
        tf->file.fd = NGX_INVALID_FILE;
    }

    rb->bufs = NULL;
    rb->buf = NULL;
}
