
/*
 * What identifies a request in logs and traces: its id, with which each of its
 * log lines ends, and the client's trace.
 *
 * A request without a trace gets none.  A parent made up by the gateway would
 * be recorded nowhere: the trace would have no root, and it would decide for
 * the engines what is sampled.
 */

#include <sys/random.h>

#include "front/clients.h"
#include "http/header.h"
#include "proto/utf8.h"


static ngx_uint_t ngx_http_llmgw_trace_parent(ngx_http_request_t *r,
    llmgw_trace_t *parent);
static const char *ngx_http_llmgw_trace_state(ngx_http_request_t *r);
static size_t ngx_http_llmgw_trace_state_size(ngx_http_request_t *r);
static void ngx_http_llmgw_trace_draw(ngx_http_llmgw_stream_t *stream,
    ngx_http_variable_value_t *v);
static u_char *ngx_http_llmgw_trace_log(ngx_http_request_t *r,
    ngx_http_request_t *sr, u_char *buf, size_t len);


/* $request_id as an indexed variable: it has one value per request. */

ngx_int_t
ngx_http_llmgw_trace_conf(ngx_conf_t *cf, ngx_http_llmgw_main_conf_t *lmcf)
{
    ngx_str_t  name = ngx_string("request_id");

    lmcf->request_id_index = ngx_http_get_variable_index(cf, &name);

    return lmcf->request_id_index == NGX_ERROR ? NGX_ERROR : NGX_OK;
}


void
ngx_http_llmgw_trace_read(ngx_http_llmgw_stream_t *stream)
{
    llmgw_trace_t        parent;
    llmgw_trace_span_t  *trace;

    if (!ngx_http_llmgw_trace_parent(stream->request, &parent)) {
        return;
    }

    trace = ngx_pcalloc(stream->request->pool, sizeof(llmgw_trace_span_t));
    if (trace == NULL) {
        return;
    }

    trace->parent = parent;
    trace->state = ngx_http_llmgw_trace_state(stream->request);
    stream->record.trace = trace;
    stream->ask.trace = trace;
}


/* 0: the request has no traceparent, an invalid one, or several. */

static ngx_uint_t
ngx_http_llmgw_trace_parent(ngx_http_request_t *r, llmgw_trace_t *parent)
{
    ngx_uint_t        i, n, valid;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    n = 0;
    valid = 0;

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (ngx_http_llmgw_header_is(&h[i], "traceparent")) {
                n++;
                valid = llmgw_trace_parse(parent, (char *) h[i].value.data,
                                          h[i].value.len);
            }
        }
    }

    return n == 1 && valid;
}


/* Joins all tracestate headers.  NULL: nothing that can be passed on. */

static const char *
ngx_http_llmgw_trace_state(ngx_http_request_t *r)
{
    size_t            size;
    u_char           *text, *p, *end;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    /* one byte more than is passed on shows that it was longer */

    size = ngx_min(ngx_http_llmgw_trace_state_size(r),
                   LLMGW_TRACE_STATE_MAX + 1);

    text = size ? ngx_pnalloc(r->pool, size + 1) : NULL;
    if (text == NULL) {
        return NULL;
    }

    p = text;
    end = text + size;

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (ngx_http_llmgw_header_is(&h[i], "tracestate")) {
                p = ngx_slprintf(p, end, "%s%V", p == text ? "" : ",",
                                 &h[i].value);
            }
        }
    }

    text[llmgw_trace_state_len((char *) text, p - text)] = '\0';

    /* HTTP/2 forbids a value that begins with a blank, but nginx passes it */

    while (*text == ' ' || *text == '\t') {
        text++;
    }

    return *text ? (char *) text : NULL;
}


/* The bytes of all tracestate values, with a comma each; 0: none. */

static size_t
ngx_http_llmgw_trace_state_size(ngx_http_request_t *r)
{
    size_t            size;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    size = 0;

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (ngx_http_llmgw_header_is(&h[i], "tracestate")) {
                size += h[i].value.len + 1;
            }
        }
    }

    return size;
}


void
ngx_http_llmgw_trace_request_id(ngx_http_llmgw_stream_t *stream)
{
    u_char              *p;
    ngx_str_t            id;
    ngx_http_request_t  *r;

    r = stream->request;

    if (stream->record.request_id.len == 0) {
        id = ngx_http_llmgw_trace_random(stream);

        p = id.len ? ngx_pnalloc(r->pool, id.len + 1) : NULL;

        if (p) {
            ngx_memcpy(p, id.data, id.len);
            p[id.len] = '\0';
            stream->record.request_id.data = p;
            stream->record.request_id.len = id.len;
        }
    }

    stream->log_handler = r->log_handler;
    r->log_handler = ngx_http_llmgw_trace_log;
}


ngx_str_t
ngx_http_llmgw_trace_random(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_request_t          *r;
    ngx_http_llmgw_main_conf_t  *lmcf;

    r = stream->request;
    lmcf = ngx_http_get_module_main_conf(r, ngx_http_llmgw_module);

    ngx_http_llmgw_trace_draw(stream, &r->variables[lmcf->request_id_index]);

    return ngx_http_llmgw_record_own_id(r);
}


/*
 * Sets $request_id, unless it has been evaluated before.  nginx would ask
 * OpenSSL for random bytes, which costs a system call and a twentieth of the
 * time of a short request.  The kernel's bytes are as random, and one call gets
 * enough for many ids.
 */

static void
ngx_http_llmgw_trace_draw(ngx_http_llmgw_stream_t *stream,
    ngx_http_variable_value_t *v)
{
    u_char                    *p;
    ngx_http_llmgw_clients_t  *clients;

    clients = stream->clients;

    if (v->valid || v->not_found) {
        return;
    }

    if (clients->nids == 0) {
        if (getrandom(clients->ids, sizeof(clients->ids), GRND_NONBLOCK)
            != (ssize_t) sizeof(clients->ids))
        {
            return;     /* nginx then draws it */
        }

        clients->nids = NGX_HTTP_LLMGW_IDS;
    }

    p = ngx_pnalloc(stream->request->pool, 2 * NGX_HTTP_LLMGW_ID_BYTES);
    if (p == NULL) {
        return;
    }

    clients->nids--;
    ngx_hex_dump(p, clients->ids[clients->nids], NGX_HTTP_LLMGW_ID_BYTES);

    v->data = p;
    v->len = 2 * NGX_HTTP_LLMGW_ID_BYTES;
    v->valid = 1;
}


/*
 * Appends the id to what nginx logs about the client and the request.  An id
 * comes from outside: bytes that would break the line or its quoted string are
 * shown as dots.
 */

static u_char *
ngx_http_llmgw_trace_log(ngx_http_request_t *r, ngx_http_request_t *sr,
    u_char *buf, size_t len)
{
    u_char                   *p, *end;
    size_t                    i, n;
    ngx_str_t                 id;
    ngx_http_cleanup_t       *cln;
    ngx_http_llmgw_stream_t  *stream;

    stream = NULL;

    for (cln = r->main->cleanup; cln && stream == NULL; cln = cln->next) {
        stream = ngx_http_llmgw_stream_of_cleanup(cln);
    }

    if (stream == NULL) {
        return buf;
    }

    end = buf + len;
    id = ngx_http_llmgw_record_id(&stream->record);

    p = stream->log_handler(r, sr, buf, len);
    p = ngx_slprintf(p, end, ", request_id: \"");

    for (i = 0; i < id.len && p < end; i += n) {
        n = llmgw_utf8_shown(&id.data[i], id.len - i);

        if (n == 0 || id.data[i] == '"' || id.data[i] == '\\') {
            n = 1;
            *p++ = '.';

        } else {
            p = ngx_cpymem(p, &id.data[i], ngx_min(n, (size_t) (end - p)));
        }
    }

    return ngx_slprintf(p, end, "\"");
}
