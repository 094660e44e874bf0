
/*
 * Request ids and trace context.
 *
 * A replica's call is a span of its own under the client's: the trace id and
 * the flags are the client's, the span id is new for each attempt, so that the
 * two halves of a stream that was carried over can be told apart.  A client
 * without a trace gets none: a made-up parent that nobody records would be a
 * trace without its root, and would decide for the engines what is sampled.
 */

#include <sys/random.h>

#include "front/memory.h"
#include "front/trace.h"
#include "proto/utf8.h"


#define NGX_HTTP_LLMGW_TRACE_SHOWN  128     /* of an id, in a log line: it
                                               may be as long as a body */


static ngx_uint_t ngx_http_llmgw_trace_parent(ngx_http_request_t *r,
    llmgw_trace_t *parent);
static const char *ngx_http_llmgw_trace_state(ngx_http_request_t *r);
static size_t ngx_http_llmgw_trace_state_size(ngx_http_request_t *r);
static ngx_uint_t ngx_http_llmgw_trace_is(ngx_table_elt_t *h,
    const char *name);
static void ngx_http_llmgw_trace_draw(ngx_http_llmgw_stream_t *stream,
    ngx_http_variable_value_t *v);
static u_char *ngx_http_llmgw_trace_log(ngx_http_request_t *r,
    ngx_http_request_t *sr, u_char *buf, size_t len);


void
ngx_http_llmgw_trace_read(ngx_http_llmgw_stream_t *stream)
{
    llmgw_trace_t            parent;
    ngx_http_llmgw_trace_t  *trace;

    if (!ngx_http_llmgw_trace_parent(stream->request, &parent)) {
        return;
    }

    trace = ngx_http_llmgw_memory_alloc(stream->request,
                                        sizeof(ngx_http_llmgw_trace_t));
    if (trace == NULL) {
        return;
    }

    ngx_memzero(trace, sizeof(ngx_http_llmgw_trace_t));

    trace->parent = parent;
    trace->state = ngx_http_llmgw_trace_state(stream->request);
    stream->trace = trace;
}


/* 0: none, no valid one, or two of them. */

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
            if (ngx_http_llmgw_trace_is(&h[i], "traceparent")) {
                n++;
                valid = llmgw_trace_parse(parent, (char *) h[i].value.data,
                                          h[i].value.len);
            }
        }
    }

    return n == 1 && valid;
}


/* Several headers are one list.  NULL: none that can be handed on. */

static const char *
ngx_http_llmgw_trace_state(ngx_http_request_t *r)
{
    size_t            size;
    u_char           *text, *p, *end;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    /* one byte more than is handed on shows that it was longer */

    size = ngx_min(ngx_http_llmgw_trace_state_size(r),
                   LLMGW_TRACE_STATE_MAX + 1);

    text = size ? ngx_http_llmgw_memory_alloc(r, size + 1) : NULL;
    if (text == NULL) {
        return NULL;
    }

    p = text;
    end = text + size;

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (ngx_http_llmgw_trace_is(&h[i], "tracestate")) {
                p = ngx_slprintf(p, end, "%s%V", p == text ? "" : ",",
                                 &h[i].value);
            }
        }
    }

    text[llmgw_trace_state_len((char *) text, p - text)] = '\0';

    /* HTTP/2 has no value that begins or ends with a blank; nginx minds not */

    while (*text == ' ' || *text == '\t') {
        text++;
    }

    return *text ? (char *) text : NULL;
}


/* With a comma for each; 0: there is none. */

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
            if (ngx_http_llmgw_trace_is(&h[i], "tracestate")) {
                size += h[i].value.len + 1;
            }
        }
    }

    return size;
}


static ngx_uint_t
ngx_http_llmgw_trace_is(ngx_table_elt_t *h, const char *name)
{
    return h->key.len == ngx_strlen(name)
           && ngx_strncasecmp(h->key.data, (u_char *) name, h->key.len) == 0;
}


ngx_uint_t
ngx_http_llmgw_trace_begin(ngx_http_llmgw_stream_t *stream,
    llmgw_grpc_field_t fields[NGX_HTTP_LLMGW_TRACE_FIELDS])
{
    ngx_http_llmgw_trace_t  *trace;

    trace = stream->trace;

    if (trace == NULL) {
        return 0;
    }

    /* random enough to differ within one trace */

    do {
        trace->span = (uint64_t) ngx_random() << 42
                      ^ (uint64_t) ngx_random() << 21
                      ^ (uint64_t) ngx_random();
    } while (trace->span == 0);

    llmgw_trace_format(&trace->parent, trace->span, trace->text);

    fields[0].name = "traceparent";
    fields[0].value = trace->text;
    fields[1].name = "tracestate";
    fields[1].value = trace->state;

    return trace->state ? 2 : 1;
}


void
ngx_http_llmgw_trace_request_id(ngx_http_llmgw_stream_t *stream)
{
    u_char                      *p;
    ngx_http_request_t          *r;
    ngx_http_variable_value_t   *v;
    ngx_http_llmgw_main_conf_t  *lmcf;

    r = stream->request;

    if (stream->request_id.len == 0) {
        lmcf = ngx_http_get_module_main_conf(r, ngx_http_llmgw_module);

        ngx_http_llmgw_trace_draw(stream,
                                  &r->variables[lmcf->request_id_index]);
        v = ngx_http_get_indexed_variable(r, lmcf->request_id_index);

        p = v && !v->not_found ? ngx_http_llmgw_memory_alloc(r, v->len + 1)
                               : NULL;

        if (p) {
            ngx_memcpy(p, v->data, v->len);
            p[v->len] = '\0';
            stream->request_id.data = p;
            stream->request_id.len = v->len;
        }
    }

    stream->log_handler = r->log_handler;
    r->log_handler = ngx_http_llmgw_trace_log;
}


/*
 * $request_id, where nobody has asked for it yet: nginx would draw it from
 * OpenSSL, which costs a system call and a twentieth of a short request.  The
 * kernel's bytes are as random, and come for many ids at a time.
 */

static void
ngx_http_llmgw_trace_draw(ngx_http_llmgw_stream_t *stream,
    ngx_http_variable_value_t *v)
{
    u_char                   *p;
    ngx_http_llmgw_worker_t  *worker;

    worker = stream->pool->worker;

    if (v->valid || v->not_found) {
        return;
    }

    if (worker->nids == 0) {
        if (getrandom(worker->ids, sizeof(worker->ids), GRND_NONBLOCK)
            != (ssize_t) sizeof(worker->ids))
        {
            return;     /* nginx draws it */
        }

        worker->nids = NGX_HTTP_LLMGW_IDS;
    }

    p = ngx_pnalloc(stream->request->pool, 2 * NGX_HTTP_LLMGW_ID_BYTES);
    if (p == NULL) {
        return;
    }

    worker->nids--;
    ngx_hex_dump(p, worker->ids[worker->nids], NGX_HTTP_LLMGW_ID_BYTES);

    v->data = p;
    v->len = 2 * NGX_HTTP_LLMGW_ID_BYTES;
    v->valid = 1;
}


/* Cut between two characters. */

ngx_str_t
ngx_http_llmgw_trace_shown_id(ngx_http_llmgw_stream_t *stream)
{
    ngx_str_t  id;

    id = stream->request_id;

    if (id.len > NGX_HTTP_LLMGW_TRACE_SHOWN) {
        id.len = NGX_HTTP_LLMGW_TRACE_SHOWN;

        while (id.len && (id.data[id.len] & 0xc0) == 0x80) {
            id.len--;
        }
    }

    return id;
}


/*
 * Behind what nginx tells of the client and the request.  An id comes from
 * outside: what would break a line or a quoted string is shown as a dot.
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

    for (cln = r->main->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_llmgw_stream_cleanup) {
            stream = cln->data;
        }
    }

    if (stream == NULL) {
        return buf;
    }

    end = buf + len;
    id = ngx_http_llmgw_trace_shown_id(stream);

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
