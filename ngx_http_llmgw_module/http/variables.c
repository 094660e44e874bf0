
/*
 * $llmgw_* for the access log.  Times are in seconds, with milliseconds.
 * Values of things that did not happen are logged as "-".
 */

#include "http/record.h"
#include "proto/grpc/session.h"


static ngx_int_t ngx_http_llmgw_variable_count(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_llmgw_variable_usage(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_llmgw_variable_number(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, ngx_uint_t *number);
static ngx_int_t ngx_http_llmgw_variable_time(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_llmgw_variable_text(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

static ngx_str_t ngx_http_llmgw_variable_replica(
    ngx_http_llmgw_record_t *record, u_char *buf);
static ngx_str_t ngx_http_llmgw_variable_route(
    ngx_http_llmgw_record_t *record, u_char *buf);
static ngx_str_t ngx_http_llmgw_variable_resume(
    ngx_http_llmgw_record_t *record, u_char *buf);
static ngx_str_t ngx_http_llmgw_variable_shard_failure(
    ngx_http_llmgw_record_t *record, u_char *buf);
static ngx_str_t ngx_http_llmgw_variable_request_id(
    ngx_http_llmgw_record_t *record, u_char *buf);
static ngx_str_t ngx_http_llmgw_variable_trace_id(
    ngx_http_llmgw_record_t *record, u_char *buf);
static ngx_str_t ngx_http_llmgw_variable_span_id(
    ngx_http_llmgw_record_t *record, u_char *buf);
static ngx_str_t ngx_http_llmgw_variable_model(
    ngx_http_llmgw_record_t *record, u_char *buf);
static ngx_str_t ngx_http_llmgw_variable_finish_reason(
    ngx_http_llmgw_record_t *record, u_char *buf);
static ngx_str_t ngx_http_llmgw_variable_class(
    ngx_http_llmgw_record_t *record, u_char *buf);
static ngx_str_t ngx_http_llmgw_variable_tenant(
    ngx_http_llmgw_record_t *record, u_char *buf);
static ngx_str_t ngx_http_llmgw_variable_code(
    ngx_http_llmgw_record_t *record, u_char *buf);
static ngx_str_t ngx_http_llmgw_variable_reason(
    ngx_http_llmgw_record_t *record, u_char *buf);

static ngx_str_t ngx_http_llmgw_variable_string(const char *text);
static ngx_int_t ngx_http_llmgw_variable_set(ngx_http_variable_value_t *v,
    ngx_str_t value);


/*
 * Returns text that lives as long as the request, or writes to buf, which has
 * LLMGW_TRACE_SPAN_BYTES, and returns that.  Empty: there is no value.
 */
typedef ngx_str_t (*ngx_http_llmgw_text_pt)(ngx_http_llmgw_record_t *record,
    u_char *buf);


static ngx_http_variable_t  ngx_http_llmgw_vars[] = {

    { ngx_string("llmgw_replica"), NULL, ngx_http_llmgw_variable_text,
      (uintptr_t) ngx_http_llmgw_variable_replica,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_route"), NULL, ngx_http_llmgw_variable_text,
      (uintptr_t) ngx_http_llmgw_variable_route,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_tries"), NULL, ngx_http_llmgw_variable_count,
      offsetof(ngx_http_llmgw_record_t, attempts),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_failovers"), NULL, ngx_http_llmgw_variable_count,
      offsetof(ngx_http_llmgw_record_t, failovers),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_resume"), NULL, ngx_http_llmgw_variable_text,
      (uintptr_t) ngx_http_llmgw_variable_resume,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_shard_failures"), NULL, ngx_http_llmgw_variable_count,
      offsetof(ngx_http_llmgw_record_t, shard_failures),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_shard_failure"), NULL, ngx_http_llmgw_variable_text,
      (uintptr_t) ngx_http_llmgw_variable_shard_failure,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_tokens"), NULL, ngx_http_llmgw_variable_count,
      offsetof(ngx_http_llmgw_record_t, tokens),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_model"), NULL, ngx_http_llmgw_variable_text,
      (uintptr_t) ngx_http_llmgw_variable_model,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_prompt_tokens"), NULL, ngx_http_llmgw_variable_usage,
      offsetof(ngx_http_llmgw_usage_t, prompt_tokens),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_completion_tokens"), NULL,
      ngx_http_llmgw_variable_usage,
      offsetof(ngx_http_llmgw_usage_t, completion_tokens),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_cached_tokens"), NULL, ngx_http_llmgw_variable_usage,
      offsetof(ngx_http_llmgw_usage_t, cached_tokens),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_reasoning_tokens"), NULL,
      ngx_http_llmgw_variable_usage,
      offsetof(ngx_http_llmgw_usage_t, reasoning_tokens),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_finish_reason"), NULL, ngx_http_llmgw_variable_text,
      (uintptr_t) ngx_http_llmgw_variable_finish_reason,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_queue_time"), NULL, ngx_http_llmgw_variable_time,
      offsetof(ngx_http_llmgw_record_t, queue_ms),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_first_token_time"), NULL,
      ngx_http_llmgw_variable_time,
      offsetof(ngx_http_llmgw_record_t, first_token_ms),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_request_id"), NULL, ngx_http_llmgw_variable_text,
      (uintptr_t) ngx_http_llmgw_variable_request_id,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_trace_id"), NULL, ngx_http_llmgw_variable_text,
      (uintptr_t) ngx_http_llmgw_variable_trace_id,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_span_id"), NULL, ngx_http_llmgw_variable_text,
      (uintptr_t) ngx_http_llmgw_variable_span_id,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_class"), NULL, ngx_http_llmgw_variable_text,
      (uintptr_t) ngx_http_llmgw_variable_class,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_tenant"), NULL, ngx_http_llmgw_variable_text,
      (uintptr_t) ngx_http_llmgw_variable_tenant,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_code"), NULL, ngx_http_llmgw_variable_text,
      (uintptr_t) ngx_http_llmgw_variable_code,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llmgw_reason"), NULL, ngx_http_llmgw_variable_text,
      (uintptr_t) ngx_http_llmgw_variable_reason,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

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


static ngx_int_t
ngx_http_llmgw_variable_count(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_llmgw_record_t  *record;

    record = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);

    return ngx_http_llmgw_variable_number(r, v,
               record ? (ngx_uint_t *) ((char *) record + data) : NULL);
}


static ngx_int_t
ngx_http_llmgw_variable_usage(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_llmgw_record_t  *record;

    record = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);

    return ngx_http_llmgw_variable_number(r, v,
               record && record->usage
               ? (ngx_uint_t *) ((char *) record->usage + data) : NULL);
}


static ngx_int_t
ngx_http_llmgw_variable_number(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, ngx_uint_t *number)
{
    ngx_str_t  value;

    ngx_str_null(&value);

    if (number) {
        value.data = ngx_pnalloc(r->pool, NGX_INT_T_LEN);
        if (value.data == NULL) {
            return NGX_ERROR;
        }

        value.len = ngx_sprintf(value.data, "%ui", *number) - value.data;
    }

    return ngx_http_llmgw_variable_set(v, value);
}


/* The time until the first attempt, or until the first token. */

static ngx_int_t
ngx_http_llmgw_variable_time(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t                 value;
    ngx_msec_t                ms;
    ngx_uint_t                happened;
    ngx_http_llmgw_record_t  *record;

    record = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);
    ngx_str_null(&value);

    happened = record
               && (data == offsetof(ngx_http_llmgw_record_t, queue_ms)
                   ? record->attempts > 0 : record->has_first_token);

    if (happened) {
        ms = *(ngx_msec_t *) ((char *) record + data);

        value.data = ngx_pnalloc(r->pool, NGX_TIME_T_LEN + 4);
        if (value.data == NULL) {
            return NGX_ERROR;
        }

        value.len = ngx_sprintf(value.data, "%T.%03M", (time_t) (ms / 1000),
                                ms % 1000)
                    - value.data;
    }

    return ngx_http_llmgw_variable_set(v, value);
}


static ngx_int_t
ngx_http_llmgw_variable_text(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                    buf[LLMGW_TRACE_SPAN_BYTES];
    ngx_str_t                 value;
    ngx_http_llmgw_text_pt    text;
    ngx_http_llmgw_record_t  *record;

    record = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);
    text = (ngx_http_llmgw_text_pt) data;
    ngx_str_null(&value);

    if (record) {
        value = text(record, buf);
    }

    if (value.data == buf) {
        value.data = ngx_pstrdup(r->pool, &value);
        if (value.data == NULL) {
            return NGX_ERROR;
        }
    }

    return ngx_http_llmgw_variable_set(v, value);
}


static ngx_str_t
ngx_http_llmgw_variable_replica(ngx_http_llmgw_record_t *record, u_char *buf)
{
    return record->replica;
}


static ngx_str_t
ngx_http_llmgw_variable_route(ngx_http_llmgw_record_t *record, u_char *buf)
{
    return ngx_http_llmgw_variable_string(
               record->attempts == 0 ? NULL
               : record->hedged ? "hedge"
               : record->retried ? "retry" : llmgw_route_name(record->route));
}


static ngx_str_t
ngx_http_llmgw_variable_resume(ngx_http_llmgw_record_t *record, u_char *buf)
{
    return ngx_http_llmgw_variable_string(
               record->has_resume ? llmgw_resume_by_name(record->resume_by)
                                  : NULL);
}


static ngx_str_t
ngx_http_llmgw_variable_shard_failure(ngx_http_llmgw_record_t *record,
    u_char *buf)
{
    return record->shard_failure;
}


static ngx_str_t
ngx_http_llmgw_variable_request_id(ngx_http_llmgw_record_t *record,
    u_char *buf)
{
    return ngx_http_llmgw_record_id(record);
}


/* The trace is the client's. */

static ngx_str_t
ngx_http_llmgw_variable_trace_id(ngx_http_llmgw_record_t *record, u_char *buf)
{
    return ngx_http_llmgw_variable_string(record->trace
                                          ? record->trace->parent.id : NULL);
}


/* The span is the last attempt's. */

static ngx_str_t
ngx_http_llmgw_variable_span_id(ngx_http_llmgw_record_t *record, u_char *buf)
{
    ngx_str_t  value;

    value.data = buf;
    value.len = 0;

    if (record->trace && record->trace->span) {
        value.len = ngx_sprintf(buf, "%016xL", record->trace->span) - buf;
    }

    return value;
}


static ngx_str_t
ngx_http_llmgw_variable_model(ngx_http_llmgw_record_t *record, u_char *buf)
{
    static const ngx_str_t  none = ngx_null_string;

    return record->usage ? record->usage->model : none;
}


static ngx_str_t
ngx_http_llmgw_variable_finish_reason(ngx_http_llmgw_record_t *record,
    u_char *buf)
{
    ngx_str_t  value;

    ngx_str_null(&value);

    if (record->usage) {
        value.data = record->usage->finish;
        value.len = record->usage->finish_len;
    }

    return value;
}


static ngx_str_t
ngx_http_llmgw_variable_class(ngx_http_llmgw_record_t *record, u_char *buf)
{
    static const ngx_str_t  none = ngx_null_string;

    return record->whose ? record->whose->class : none;
}


/*
 * A tenant that a client has made up is logged as a number, whatever its name
 * contains.
 */

static ngx_str_t
ngx_http_llmgw_variable_tenant(ngx_http_llmgw_record_t *record, u_char *buf)
{
    ngx_str_t                      value;
    const ngx_http_llmgw_whose_t  *whose;

    whose = record->whose;

    if (whose && whose->tenant.len) {
        return whose->tenant;
    }

    value.data = buf;
    value.len = 0;

    if (whose && whose->tenant_hash) {
        value.len = ngx_sprintf(buf, "%016xL", whose->tenant_hash) - buf;
    }

    return value;
}


static ngx_str_t
ngx_http_llmgw_variable_code(ngx_http_llmgw_record_t *record, u_char *buf)
{
    return ngx_http_llmgw_variable_string(
               record->finished ? llmgw_grpc_status_name(record->status)
                                : NULL);
}


static ngx_str_t
ngx_http_llmgw_variable_reason(ngx_http_llmgw_record_t *record, u_char *buf)
{
    return ngx_http_llmgw_variable_string(
               record->finished ? llmgw_outcome_reason(record->outcome)
                                : NULL);
}


static ngx_str_t
ngx_http_llmgw_variable_string(const char *text)
{
    ngx_str_t  value;

    value.data = (u_char *) text;
    value.len = text ? ngx_strlen(text) : 0;

    return value;
}


static ngx_int_t
ngx_http_llmgw_variable_set(ngx_http_variable_value_t *v, ngx_str_t value)
{
    if (value.len == 0) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->data = value.data;
    v->len = value.len;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}
