
/* llmgw_trace_decisions FILE [sample=1%] [top=3|all] [buffer=SIZE [flush=]] */

#include "choice/log.h"


/* A buffer is there for many lines, and is a part of each worker's memory. */
#define NGX_HTTP_LLMGW_LOG_BUFFER_MIN  4096
#define NGX_HTTP_LLMGW_LOG_BUFFER_MAX  (64 * 1024 * 1024)


static char *ngx_http_llmgw_log_conf_param(ngx_conf_t *cf,
    ngx_http_llmgw_log_t *log, ngx_str_t *param);
static char *ngx_http_llmgw_log_conf_sample(ngx_conf_t *cf,
    ngx_http_llmgw_log_t *log, ngx_str_t *param);
static char *ngx_http_llmgw_log_conf_top(ngx_conf_t *cf,
    ngx_http_llmgw_log_t *log, ngx_str_t *param);
static char *ngx_http_llmgw_log_conf_buffer(ngx_conf_t *cf,
    ngx_http_llmgw_log_t *log, ngx_str_t *param);
static char *ngx_http_llmgw_log_conf_flush(ngx_conf_t *cf,
    ngx_http_llmgw_log_t *log, ngx_str_t *param);
static char *ngx_http_llmgw_log_conf_file(ngx_conf_t *cf,
    ngx_http_llmgw_log_t *log, ngx_str_t *name);


char *
ngx_http_llmgw_log_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    ngx_str_t                  *value;
    ngx_uint_t                  i;
    ngx_http_llmgw_log_t       *log;
    ngx_http_llmgw_srv_conf_t  *lscf;

    lscf = ngx_http_llmgw_conf_enable(cf, conf);
    if (lscf == NULL) {
        return NGX_CONF_ERROR;
    }

    if (lscf->log) {
        return "is duplicate";
    }

    log = ngx_pcalloc(cf->pool, sizeof(ngx_http_llmgw_log_t));
    if (log == NULL) {
        return NGX_CONF_ERROR;
    }

    lscf->log = log;
    log->conf = lscf;
    log->sample = NGX_HTTP_LLMGW_LOG_ALL / 100;
    log->top = 3;

    value = cf->args->elts;

    for (i = 2; i < cf->args->nelts; i++) {
        rv = ngx_http_llmgw_log_conf_param(cf, log, &value[i]);
        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    if (log->flush && log->start == NULL) {
        return "has a \"flush\" without a \"buffer\"";
    }

    return ngx_http_llmgw_log_conf_file(cf, log, &value[1]);
}


static char *
ngx_http_llmgw_log_conf_param(ngx_conf_t *cf, ngx_http_llmgw_log_t *log,
    ngx_str_t *param)
{
    if (ngx_strncmp(param->data, "sample=", 7) == 0) {
        return ngx_http_llmgw_log_conf_sample(cf, log, param);
    }

    if (ngx_strncmp(param->data, "top=", 4) == 0) {
        return ngx_http_llmgw_log_conf_top(cf, log, param);
    }

    if (ngx_strncmp(param->data, "buffer=", 7) == 0) {
        return ngx_http_llmgw_log_conf_buffer(cf, log, param);
    }

    if (ngx_strncmp(param->data, "flush=", 6) == 0) {
        return ngx_http_llmgw_log_conf_flush(cf, log, param);
    }

    return ngx_http_llmgw_conf_invalid(cf, param);
}


/* In parts per million: a percentage with four digits behind the point. */

static char *
ngx_http_llmgw_log_conf_sample(ngx_conf_t *cf, ngx_http_llmgw_log_t *log,
    ngx_str_t *param)
{
    ngx_int_t  ppm;

    ppm = param->data[param->len - 1] == '%'
          ? ngx_atofp(param->data + 7, param->len - 8, 4) : NGX_ERROR;

    if (ppm == NGX_ERROR || ppm == 0 || ppm > 1000000) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid \"%V\", it must be 0.0001%% to 100%%",
                           param);
        return NGX_CONF_ERROR;
    }

    log->sample = (uint64_t) NGX_HTTP_LLMGW_LOG_ALL * ppm / 1000000;

    return NGX_CONF_OK;
}


static char *
ngx_http_llmgw_log_conf_top(ngx_conf_t *cf, ngx_http_llmgw_log_t *log,
    ngx_str_t *param)
{
    if (ngx_strcmp(param->data + 4, "all") == 0) {
        log->top = NGX_HTTP_LLMGW_LOG_TOP;
        return NGX_CONF_OK;
    }

    return ngx_http_llmgw_conf_number(cf, param, 4, 1, NGX_HTTP_LLMGW_LOG_TOP,
                                      &log->top);
}


static char *
ngx_http_llmgw_log_conf_buffer(ngx_conf_t *cf, ngx_http_llmgw_log_t *log,
    ngx_str_t *param)
{
    ssize_t    size;
    ngx_str_t  s;

    s.data = param->data + 7;
    s.len = param->len - 7;
    size = ngx_parse_size(&s);

    if (size == NGX_ERROR || size < NGX_HTTP_LLMGW_LOG_BUFFER_MIN
        || size > NGX_HTTP_LLMGW_LOG_BUFFER_MAX)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid \"%V\", it must be 4k to 64m", param);
        return NGX_CONF_ERROR;
    }

    log->start = ngx_pnalloc(cf->pool, size);
    if (log->start == NULL) {
        return NGX_CONF_ERROR;
    }

    log->pos = log->start;
    log->end = log->start + size;

    return NGX_CONF_OK;
}


static char *
ngx_http_llmgw_log_conf_flush(ngx_conf_t *cf, ngx_http_llmgw_log_t *log,
    ngx_str_t *param)
{
    ngx_int_t  ms;
    ngx_str_t  s;

    s.data = param->data + 6;
    s.len = param->len - 6;
    ms = ngx_parse_time(&s, 0);

    if (ms == NGX_ERROR || ms == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid \"%V\", it must be a time above 0", param);
        return NGX_CONF_ERROR;
    }

    log->flush = ms;

    return NGX_CONF_OK;
}


/*
 * Several upstreams may have one file; another module's log may not.  What an
 * access_log takes for something else is no name, either.
 */

static char *
ngx_http_llmgw_log_conf_file(ngx_conf_t *cf, ngx_http_llmgw_log_t *log,
    ngx_str_t *name)
{
    ngx_array_t            *logs;
    ngx_http_llmgw_log_t  **slot;

    if (name->len == 0 || ngx_strchr(name->data, '$')
        || ngx_strcmp(name->data, "off") == 0
        || ngx_strncmp(name->data, "syslog:", 7) == 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid file \"%V\", it must be a path without "
                           "variables", name);
        return NGX_CONF_ERROR;
    }

    log->file = ngx_conf_open_file(cf->cycle, name);
    if (log->file == NULL) {
        return NGX_CONF_ERROR;
    }

    if (log->file->flush == NULL) {
        logs = ngx_array_create(cf->pool, 1, sizeof(void *));
        if (logs == NULL) {
            return NGX_CONF_ERROR;
        }

        log->file->flush = ngx_http_llmgw_log_flush_file;
        log->file->data = logs;
    }

    if (log->file->flush != ngx_http_llmgw_log_flush_file) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" is another log's, with a buffer", name);
        return NGX_CONF_ERROR;
    }

    logs = log->file->data;
    slot = ngx_array_push(logs);

    if (slot == NULL) {
        return NGX_CONF_ERROR;
    }

    *slot = log;

    return NGX_CONF_OK;
}
