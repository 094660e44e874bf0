
/*
 * What a location with llmgw_openai is told: names of models, and limits.
 */

#include "conf/conf.h"


/* Engines name models by a path or by owner and name. */
#define NGX_HTTP_LLMGW_MODEL_NAME_MAX  512


static char *ngx_http_llmgw_conf_model_words(ngx_conf_t *cf,
    ngx_http_llmgw_model_t *model);


/* llmgw_model NAME [as ENGINE-NAME] [pool=UPSTREAM]; */

char *
ngx_http_llmgw_conf_model(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                  *value;
    ngx_uint_t                  i;
    ngx_http_llmgw_model_t     *model;
    ngx_http_llmgw_loc_conf_t  *llcf = conf;

    if (llcf->models == NULL) {
        llcf->models = ngx_array_create(cf->pool, 4,
                                        sizeof(ngx_http_llmgw_model_t));
        if (llcf->models == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    value = cf->args->elts;
    model = llcf->models->elts;

    if (value[1].len == 0 || value[1].len > NGX_HTTP_LLMGW_MODEL_NAME_MAX) {
        return "needs a name of 1 to 512 bytes";
    }

    for (i = 0; i < llcf->models->nelts; i++) {
        if (model[i].name.len == value[1].len
            && ngx_memcmp(model[i].name.data, value[1].data, value[1].len)
               == 0)
        {
            return "is duplicate: it has the name of another one";
        }
    }

    model = ngx_array_push(llcf->models);
    if (model == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(model, sizeof(ngx_http_llmgw_model_t));
    model->name = value[1];
    model->file = cf->conf_file->file.name.data;
    model->line = cf->conf_file->line;

    return ngx_http_llmgw_conf_model_words(cf, model);
}


/* What follows the name. */

static char *
ngx_http_llmgw_conf_model_words(ngx_conf_t *cf, ngx_http_llmgw_model_t *model)
{
    ngx_str_t   *value, name;
    ngx_uint_t   i;

    value = cf->args->elts;
    i = 2;

    if (i + 1 < cf->args->nelts && ngx_strcmp(value[i].data, "as") == 0) {
        model->engine = value[i + 1];
        i += 2;

        if (model->engine.len == 0
            || model->engine.len > NGX_HTTP_LLMGW_MODEL_NAME_MAX)
        {
            return "needs an engine's name of 1 to 512 bytes";
        }
    }

    if (i < cf->args->nelts && value[i].len > 5
        && ngx_strncmp(value[i].data, "pool=", 5) == 0)
    {
        name.data = value[i].data + 5;
        name.len = value[i].len - 5;
        i++;

        model->upstream = ngx_http_llmgw_conf_refer(cf, &name, 0);
        if (model->upstream == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    if (i < cf->args->nelts) {
        return ngx_http_llmgw_conf_invalid(cf, &value[i]);
    }

    return NGX_CONF_OK;
}


/* llmgw_sse_keepalive TIME [header=TIME] | off; */

char *
ngx_http_llmgw_conf_keepalive(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_int_t                   ms;
    ngx_str_t                  *value, time;
    ngx_http_llmgw_loc_conf_t  *llcf = conf;

    if (llcf->sse_keepalive != NGX_CONF_UNSET_MSEC) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {
        llcf->sse_keepalive = 0;
        return NGX_CONF_OK;
    }

    ms = ngx_parse_time(&value[1], 0);

    if (ms == NGX_ERROR || ms == 0) {
        return "must be \"off\" or a time above 0";
    }

    llcf->sse_keepalive = ms;

    if (cf->args->nelts == 2) {
        return NGX_CONF_OK;
    }

    if (value[2].len < 7 || ngx_strncmp(value[2].data, "header=", 7) != 0) {
        return ngx_http_llmgw_conf_invalid(cf, &value[2]);
    }

    time.data = value[2].data + 7;
    time.len = value[2].len - 7;
    ms = ngx_parse_time(&time, 0);

    if (ms == NGX_ERROR || ms == 0) {
        return "needs a time above 0 behind \"header=\"";
    }

    llcf->sse_header = ms;

    return NGX_CONF_OK;
}


void
ngx_http_llmgw_conf_openai_init(ngx_http_llmgw_loc_conf_t *llcf)
{
    llcf->sse_keepalive = NGX_CONF_UNSET_MSEC;
    llcf->sse_header = NGX_CONF_UNSET_MSEC;
    llcf->default_max_tokens = NGX_CONF_UNSET_UINT;
}


char *
ngx_http_llmgw_conf_openai_merge(ngx_conf_t *cf,
    ngx_http_llmgw_loc_conf_t *prev, ngx_http_llmgw_loc_conf_t *conf)
{
    ngx_http_llmgw_model_t  *model;

    if (conf->models && (conf->protocol == NULL
                         || !conf->protocol->has_models))
    {
        model = conf->models->elts;
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"llmgw_model\" needs \"llmgw_openai\" in its "
                      "location in %s:%ui", model->file, model->line);
        return NGX_CONF_ERROR;
    }

    ngx_conf_merge_msec_value(conf->sse_keepalive, prev->sse_keepalive, 15000);
    ngx_conf_merge_msec_value(conf->sse_header, prev->sse_header, 30000);
    ngx_conf_merge_uint_value(conf->default_max_tokens,
                              prev->default_max_tokens, 4096);
    ngx_conf_merge_str_value(conf->timeout_header, prev->timeout_header, "");

    return NGX_CONF_OK;
}
