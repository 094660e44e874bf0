
/* llmgw_trace_decisions FILE [sample=1%] [top=3|all] [buffer=SIZE [flush=]] */

#include "choice/log.h"
#include "conf/param.h"


static char *ngx_http_llmgw_log_conf_file(ngx_conf_t *cf,
    ngx_http_llmgw_log_t *log, ngx_str_t *name);


static const ngx_conf_enum_t  ngx_http_llmgw_log_all[] = {
    { ngx_string("all"), NGX_HTTP_LLMGW_LOG_TOP },
    { ngx_null_string, 0 }
};


static const ngx_http_llmgw_param_t  ngx_http_llmgw_log_params[] = {
    ngx_http_llmgw_param(ngx_http_llmgw_log_t, "sample", PERCENT, sample,
        .min = 1, .max = 1000000, .digits = 4, .right = "0.0001% to 100%"),
    ngx_http_llmgw_param(ngx_http_llmgw_log_t, "top", NUMBER, top, .min = 1,
        .max = NGX_HTTP_LLMGW_LOG_TOP, .words = ngx_http_llmgw_log_all,
        .right = "all or 1 to 4096"),
    ngx_http_llmgw_param(ngx_http_llmgw_log_t, "buffer", SIZE, buffer,
        .min = 4096, .max = 64 * 1024 * 1024, .right = "4k to 64m"),
    ngx_http_llmgw_param(ngx_http_llmgw_log_t, "flush", MSEC, flush),
    { .kind = 0 }
};


char *
ngx_http_llmgw_log_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    ngx_str_t                  *value;
    ngx_http_llmgw_log_t       *log;
    ngx_http_llmgw_srv_conf_t  *lscf = conf;

    rv = ngx_http_llmgw_conf_once(cf, cmd, conf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    log = ngx_pcalloc(cf->pool, sizeof(ngx_http_llmgw_log_t));
    if (log == NULL) {
        return NGX_CONF_ERROR;
    }

    lscf->log = log;
    log->conf = lscf;
    log->sample = 10000;        /* in millionths, until all parameters are
                                   read */
    log->top = 3;

    rv = ngx_http_llmgw_params(cf, ngx_http_llmgw_log_params, 2, log);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    log->sample = (uint64_t) NGX_HTTP_LLMGW_LOG_ALL * log->sample / 1000000;

    if (log->flush && log->buffer == 0) {
        return "has a \"flush\" without a \"buffer\"";
    }

    if (log->buffer) {
        log->start = ngx_pnalloc(cf->pool, log->buffer);
        if (log->start == NULL) {
            return NGX_CONF_ERROR;
        }

        log->pos = log->start;
        log->end = log->start + log->buffer;
    }

    value = cf->args->elts;

    return ngx_http_llmgw_log_conf_file(cf, log, &value[1]);
}


/*
 * Several upstreams may log to one file, but not another module's log.  Words
 * that mean something else to access_log are not accepted as names, either.
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
        return ngx_http_llmgw_conf_invalid(cf, name,
                                           "a path without variables");
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
