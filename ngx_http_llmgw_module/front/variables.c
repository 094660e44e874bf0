
/*
 * $llmgw_* for the access log.  Times are seconds with milliseconds; what did
 * not happen is "-".
 */

#include "front/trace.h"
#include "front/variables.h"


static ngx_int_t ngx_http_llmgw_variable_replica(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_llmgw_variable_route(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_llmgw_variable_count(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_llmgw_variable_first_token(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_llmgw_variable_queue_time(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_llmgw_variable_request_id(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_llmgw_variable_trace_id(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_llmgw_variable_span_id(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_llmgw_variable_code(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_llmgw_variable_reason(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_llmgw_variable_text(ngx_http_variable_value_t *v,
    const char *text);
static ngx_int_t ngx_http_llmgw_variable_set(ngx_http_variable_value_t *v,
    ngx_str_t *value);
static ngx_int_t ngx_http_llmgw_variable_seconds(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, ngx_msec_t ms);


static ngx_http_variable_t  ngx_http_llmgw_vars[] = {

    { ngx_string("llmgw_replica"), NULL,
      ngx_http_llmgw_variable_replica, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_route"), NULL,
      ngx_http_llmgw_variable_route, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_tries"), NULL,
      ngx_http_llmgw_variable_count,
      offsetof(ngx_http_llmgw_stream_t, attempts),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_failovers"), NULL,
      ngx_http_llmgw_variable_count,
      offsetof(ngx_http_llmgw_stream_t, failovers),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_tokens"), NULL,
      ngx_http_llmgw_variable_count,
      offsetof(ngx_http_llmgw_stream_t, tokens),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_queue_time"), NULL,
      ngx_http_llmgw_variable_queue_time, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_first_token_time"), NULL,
      ngx_http_llmgw_variable_first_token, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_request_id"), NULL,
      ngx_http_llmgw_variable_request_id, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_trace_id"), NULL,
      ngx_http_llmgw_variable_trace_id, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_span_id"), NULL,
      ngx_http_llmgw_variable_span_id, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_code"), NULL,
      ngx_http_llmgw_variable_code, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_reason"), NULL,
      ngx_http_llmgw_variable_reason, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_http_llmgw_variables_add(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_llmgw_vars; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


/* An indexed variable has one value a request, $request_id too. */

ngx_int_t
ngx_http_llmgw_variables_index(ngx_conf_t *cf,
    ngx_http_llmgw_main_conf_t *lmcf)
{
    ngx_str_t  name = ngx_string("request_id");

    lmcf->request_id_index = ngx_http_get_variable_index(cf, &name);

    return lmcf->request_id_index == NGX_ERROR ? NGX_ERROR : NGX_OK;
}


/* Who served last. */

static ngx_int_t
ngx_http_llmgw_variable_replica(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_llmgw_stream_t  *stream;

    stream = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);

    return ngx_http_llmgw_variable_set(v, stream ? &stream->replica : NULL);
}


static ngx_int_t
ngx_http_llmgw_variable_route(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_llmgw_stream_t  *stream;
    static ngx_str_t          retry = ngx_string("retry");
    static ngx_str_t          hedge = ngx_string("hedge");
    static ngx_str_t          names[] = {
        ngx_string("affinity"), ngx_string("spill"), ngx_string("least_conn")
    };

    stream = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);

    if (stream == NULL || stream->attempts == 0) {
        return ngx_http_llmgw_variable_set(v, NULL);
    }

    if (stream->hedged) {
        return ngx_http_llmgw_variable_set(v, &hedge);
    }

    return ngx_http_llmgw_variable_set(v, stream->retried
                                          ? &retry : &names[stream->route]);
}


static ngx_int_t
ngx_http_llmgw_variable_count(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                   *p;
    ngx_str_t                 value;
    ngx_http_llmgw_stream_t  *stream;

    stream = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);

    if (stream == NULL) {
        return ngx_http_llmgw_variable_set(v, NULL);
    }

    p = ngx_pnalloc(r->pool, NGX_INT_T_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    value.data = p;
    value.len = ngx_sprintf(p, "%ui",
                            *(ngx_uint_t *) ((char *) stream + data)) - p;

    return ngx_http_llmgw_variable_set(v, &value);
}


static ngx_int_t
ngx_http_llmgw_variable_first_token(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_llmgw_stream_t  *stream;

    stream = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);

    if (stream == NULL || !stream->has_first_token) {
        return ngx_http_llmgw_variable_set(v, NULL);
    }

    return ngx_http_llmgw_variable_seconds(r, v, stream->first_token_ms);
}


/* From the decoded request to its first attempt. */

static ngx_int_t
ngx_http_llmgw_variable_queue_time(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_llmgw_stream_t  *stream;

    stream = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);

    if (stream == NULL || stream->attempts == 0) {
        return ngx_http_llmgw_variable_set(v, NULL);
    }

    return ngx_http_llmgw_variable_seconds(r, v, stream->queue_ms);
}


static ngx_int_t
ngx_http_llmgw_variable_request_id(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t                 id;
    ngx_http_llmgw_stream_t  *stream;

    stream = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);

    if (stream == NULL) {
        return ngx_http_llmgw_variable_set(v, NULL);
    }

    id = ngx_http_llmgw_trace_shown_id(stream);

    return ngx_http_llmgw_variable_set(v, &id);
}


/* Of the client; the trace lives as long as the request. */

static ngx_int_t
ngx_http_llmgw_variable_trace_id(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t                 value;
    ngx_http_llmgw_stream_t  *stream;

    stream = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);

    if (stream == NULL || stream->trace == NULL) {
        return ngx_http_llmgw_variable_set(v, NULL);
    }

    value.data = (u_char *) stream->trace->parent.id;
    value.len = LLMGW_TRACE_ID_BYTES - 1;

    return ngx_http_llmgw_variable_set(v, &value);
}


/* Of the last attempt. */

static ngx_int_t
ngx_http_llmgw_variable_span_id(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t                 value;
    ngx_http_llmgw_stream_t  *stream;

    stream = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);

    if (stream == NULL || stream->trace == NULL || stream->trace->span == 0) {
        return ngx_http_llmgw_variable_set(v, NULL);
    }

    value.len = LLMGW_TRACE_SPAN_BYTES - 1;
    value.data = ngx_pnalloc(r->pool, value.len);

    if (value.data == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_sprintf(value.data, "%016xL", stream->trace->span);

    return ngx_http_llmgw_variable_set(v, &value);
}


static ngx_int_t
ngx_http_llmgw_variable_code(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_llmgw_stream_t  *stream;

    stream = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);

    if (stream == NULL || stream->is_native || !stream->finished) {
        return ngx_http_llmgw_variable_set(v, NULL);
    }

    return ngx_http_llmgw_variable_text(v,
                                       llmgw_grpc_status_name(stream->status));
}


static ngx_int_t
ngx_http_llmgw_variable_reason(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_llmgw_stream_t  *stream;

    stream = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);

    return ngx_http_llmgw_variable_text(v, stream ? stream->reason : NULL);
}


static ngx_int_t
ngx_http_llmgw_variable_text(ngx_http_variable_value_t *v, const char *text)
{
    ngx_str_t  value;

    value.data = (u_char *) text;
    value.len = text ? ngx_strlen(text) : 0;

    return ngx_http_llmgw_variable_set(v, &value);
}


static ngx_int_t
ngx_http_llmgw_variable_set(ngx_http_variable_value_t *v, ngx_str_t *value)
{
    if (value == NULL || value->len == 0) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->data = value->data;
    v->len = value->len;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_variable_seconds(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, ngx_msec_t ms)
{
    u_char     *p;
    ngx_str_t   value;

    p = ngx_pnalloc(r->pool, NGX_TIME_T_LEN + 4);
    if (p == NULL) {
        return NGX_ERROR;
    }

    value.data = p;
    value.len = ngx_sprintf(p, "%T.%03M", (time_t) (ms / 1000), ms % 1000)
                - p;

    return ngx_http_llmgw_variable_set(v, &value);
}
