
/*
 * The upstream{} block's policies: llmgw_queue, llmgw_breaker, llmgw_hedge.
 *
 * All three are active by default, also where the block does not name them.
 */

#include "conf/conf.h"


#define NGX_HTTP_LLMGW_MAX_QUEUE  1000000


static char *ngx_http_llmgw_policy_queue_param(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *lscf, ngx_str_t *param);
static char *ngx_http_llmgw_policy_saturation(ngx_conf_t *cf,
    llmgw_saturation_t *saturation, ngx_str_t *param);
static void ngx_http_llmgw_policy_warn_limit(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *lscf);
static char *ngx_http_llmgw_policy_percent(ngx_conf_t *cf, ngx_str_t *param,
    size_t skip, ngx_uint_t *permille);
static char *ngx_http_llmgw_policy_not_one_of(ngx_conf_t *cf,
    ngx_str_t *param, const char *right);
static char *ngx_http_llmgw_policy_must(ngx_conf_t *cf, ngx_str_t *param,
    const char *right);
static char *ngx_http_llmgw_policy_breaker_param(ngx_conf_t *cf,
    llmgw_breaker_conf_t *breaker, ngx_str_t *param);


void
ngx_http_llmgw_policy_defaults(ngx_http_llmgw_srv_conf_t *lscf)
{
    lscf->queue_size = 1000;
    lscf->queue_timeout = 30000;
    lscf->flow.usage_limit = 1;

    /* thresholds of the Gateway API Inference Extension, as in BLIS */
    lscf->saturation.queue_depth = 5;
    lscf->saturation.kv_utilization = 0.8;
    lscf->saturation.max_concurrency = 100;

    lscf->breaker.enabled = 1;
    lscf->breaker.window_ms = 10000;
    lscf->breaker.min_requests = 5;
    lscf->breaker.error_permille = 500;
    lscf->breaker.cooldown_ms = 5000;
    lscf->breaker.max_cooldown_ms = 60000;
    lscf->breaker.probes = 1;

    lscf->hedge_on = 1;
    lscf->hedge_budget = 50;
}


char *
ngx_http_llmgw_policy_queue(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    ngx_str_t                  *value;
    ngx_uint_t                  i;
    ngx_http_llmgw_srv_conf_t  *lscf;

    lscf = ngx_http_llmgw_conf_enable(cf, conf);
    if (lscf == NULL) {
        return NGX_CONF_ERROR;
    }

    if (lscf->queue_set) {
        return "is duplicate";
    }

    lscf->queue_set = 1;
    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {
        lscf->queue_size = 0;
        return NGX_CONF_OK;
    }

    for (i = 1; i < cf->args->nelts; i++) {
        rv = ngx_http_llmgw_policy_queue_param(cf, lscf, &value[i]);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    ngx_http_llmgw_policy_warn_limit(cf, lscf);

    return NGX_CONF_OK;
}


static char *
ngx_http_llmgw_policy_queue_param(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *lscf, ngx_str_t *param)
{
    char        *rv, *name;
    size_t       skip, len;
    ngx_uint_t   permille;

    if (ngx_strncmp(param->data, "timeout=", 8) == 0) {
        return ngx_http_llmgw_policy_time(cf, param, 8, &lscf->queue_timeout);
    }

    if (ngx_strncmp(param->data, "ttl=", 4) == 0) {
        return ngx_http_llmgw_policy_time(cf, param, 4, &lscf->queue_ttl);
    }

    name = (char *) ngx_strlchr(param->data, param->data + param->len, '=');
    name = name ? name + 1 : (char *) param->data;
    len = param->data + param->len - (u_char *) name;

    if (ngx_strncmp(param->data, "order=", 6) == 0) {
        return llmgw_flow_order(name, len, &lscf->flow.order) == 0
               ? NGX_CONF_OK
               : ngx_http_llmgw_policy_not_one_of(cf, param,
                                          "fifo, priority or slo_deadline");
    }

    if (ngx_strncmp(param->data, "fairness=", 9) == 0) {
        return llmgw_flow_fairness(name, len, &lscf->flow.fairness) == 0
               ? NGX_CONF_OK
               : ngx_http_llmgw_policy_not_one_of(cf, param,
                                                  "global or round_robin");
    }

    if (ngx_strncmp(param->data, "saturation=", 11) == 0) {
        return ngx_http_llmgw_policy_saturation(cf, &lscf->saturation, param);
    }

    if (ngx_strncmp(param->data, "usage_limit=", 12) == 0) {
        rv = ngx_http_llmgw_policy_percent(cf, param, 12, &permille);

        if (rv == NGX_CONF_OK) {
            lscf->flow.usage_limit = permille / 1000.0;
        }

        return rv;
    }

    if (ngx_strncmp(param->data, "shedding=", 9) == 0) {
        lscf->flow.has_shedding = ngx_strcmp(name, "on") == 0;

        return lscf->flow.has_shedding || ngx_strcmp(name, "off") == 0
               ? NGX_CONF_OK
               : ngx_http_llmgw_policy_not_one_of(cf, param, "on or off");
    }

    if (ngx_strcmp(param->data, "off") == 0) {
        return "has an \"off\" beside other parameters";
    }

    skip = ngx_strncmp(param->data, "size=", 5) == 0 ? 5 : 0;

    return ngx_http_llmgw_conf_number(cf, param, skip, 1,
                                      NGX_HTTP_LLMGW_MAX_QUEUE,
                                      &lscf->queue_size);
}


static char *
ngx_http_llmgw_policy_saturation(ngx_conf_t *cf,
    llmgw_saturation_t *saturation, ngx_str_t *param)
{
    char        *rv;
    u_char      *name;
    ngx_uint_t   n;

    name = param->data + 11;

    if (ngx_strcmp(name, "capacity") == 0) {
        saturation->kind = LLMGW_SATURATION_NEVER;
        return NGX_CONF_OK;
    }

    if (ngx_strcmp(name, "utilization") == 0) {
        saturation->kind = LLMGW_SATURATION_UTILIZATION;
        return NGX_CONF_OK;
    }

    if (ngx_strncmp(name, "concurrency", 11) != 0
        || (name[11] != '\0' && name[11] != '='))
    {
        return ngx_http_llmgw_policy_not_one_of(cf, param,
                            "capacity, utilization or concurrency[=number]");
    }

    saturation->kind = LLMGW_SATURATION_CONCURRENCY;

    if (name[11] == '=') {
        rv = ngx_http_llmgw_conf_number(cf, param, 23, 1,
                                        NGX_HTTP_LLMGW_MAX_QUEUE, &n);
        if (rv != NGX_CONF_OK) {
            return rv;
        }

        saturation->max_concurrency = n;
    }

    return NGX_CONF_OK;
}


/* It needs bands, and something that reaches their ceilings. */

static void
ngx_http_llmgw_policy_warn_limit(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *lscf)
{
    if (lscf->flow.usage_limit != 1
        && (lscf->flow.order == LLMGW_FLOW_FIFO
            || lscf->saturation.kind == LLMGW_SATURATION_NEVER))
    {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "\"usage_limit\" of \"llmgw_queue\" does nothing "
                           "without order=priority or order=slo_deadline, and "
                           "saturation=utilization or "
                           "saturation=concurrency");
    }
}


char *
ngx_http_llmgw_policy_breaker(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    ngx_str_t                  *value;
    ngx_uint_t                  i;
    ngx_http_llmgw_srv_conf_t  *lscf;

    lscf = ngx_http_llmgw_conf_enable(cf, conf);
    if (lscf == NULL) {
        return NGX_CONF_ERROR;
    }

    if (lscf->breaker_set) {
        return "is duplicate";
    }

    lscf->breaker_set = 1;
    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {
        lscf->breaker.enabled = 0;
        return NGX_CONF_OK;
    }

    for (i = 1; i < cf->args->nelts; i++) {
        rv = ngx_http_llmgw_policy_breaker_param(cf, &lscf->breaker,
                                                 &value[i]);
        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    if (lscf->breaker.max_cooldown_ms < lscf->breaker.cooldown_ms) {
        return "has a max_cooldown below its cooldown";
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_llmgw_policy_breaker_param(ngx_conf_t *cf,
    llmgw_breaker_conf_t *breaker, ngx_str_t *param)
{
    char        *rv;
    ngx_msec_t   ms;
    ngx_uint_t   n;

    if (ngx_strncmp(param->data, "window=", 7) == 0) {
        rv = ngx_http_llmgw_policy_time(cf, param, 7, &ms);

        if (rv == NGX_CONF_OK) {
            breaker->window_ms = ms;
        }

    } else if (ngx_strncmp(param->data, "cooldown=", 9) == 0) {
        rv = ngx_http_llmgw_policy_time(cf, param, 9, &ms);

        if (rv == NGX_CONF_OK) {
            breaker->cooldown_ms = ms;
        }

    } else if (ngx_strncmp(param->data, "max_cooldown=", 13) == 0) {
        rv = ngx_http_llmgw_policy_time(cf, param, 13, &ms);

        if (rv == NGX_CONF_OK) {
            breaker->max_cooldown_ms = ms;
        }

    } else if (ngx_strncmp(param->data, "min_requests=", 13) == 0) {
        rv = ngx_http_llmgw_conf_number(cf, param, 13, 1, 1000000, &n);

        if (rv == NGX_CONF_OK) {
            breaker->min_requests = n;
        }

    } else if (ngx_strncmp(param->data, "probes=", 7) == 0) {
        rv = ngx_http_llmgw_conf_number(cf, param, 7, 1, 1000, &n);

        if (rv == NGX_CONF_OK) {
            breaker->probes = n;
        }

    } else if (ngx_strncmp(param->data, "error_rate=", 11) == 0) {
        rv = ngx_http_llmgw_policy_percent(cf, param, 11, &n);

        if (rv == NGX_CONF_OK) {
            breaker->error_permille = n;
        }

    } else {
        rv = ngx_http_llmgw_conf_invalid(cf, param);
    }

    return rv;
}


char *
ngx_http_llmgw_policy_hedge(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    ngx_str_t                  *value;
    ngx_http_llmgw_srv_conf_t  *lscf;

    lscf = ngx_http_llmgw_conf_enable(cf, conf);
    if (lscf == NULL) {
        return NGX_CONF_ERROR;
    }

    if (lscf->hedge_set) {
        return "is duplicate";
    }

    lscf->hedge_set = 1;

    if (cf->args->nelts == 1) {
        return NGX_CONF_OK;
    }

    value = cf->args->elts;

    if (ngx_strncmp(value[1].data, "delay=", 6) == 0) {
        rv = ngx_http_llmgw_policy_time(cf, &value[1], 6,
                                        &lscf->hedge_delay);

        if (rv != NGX_CONF_OK || cf->args->nelts == 2) {
            return rv;
        }

        if (ngx_strncmp(value[2].data, "budget=", 7) == 0) {
            return ngx_http_llmgw_policy_percent(cf, &value[2], 7,
                                                 &lscf->hedge_budget);
        }

        return ngx_http_llmgw_conf_invalid(cf, &value[2]);
    }

    if (cf->args->nelts > 2) {
        return ngx_http_llmgw_conf_invalid(cf, &value[2]);
    }

    if (ngx_strcmp(value[1].data, "off") == 0) {
        lscf->hedge_on = 0;
        return NGX_CONF_OK;
    }

    return ngx_strcmp(value[1].data, "on") == 0
           ? NGX_CONF_OK : ngx_http_llmgw_conf_invalid(cf, &value[1]);
}


char *
ngx_http_llmgw_policy_time(ngx_conf_t *cf, ngx_str_t *param, size_t skip,
    ngx_msec_t *ms)
{
    ngx_int_t  n;
    ngx_str_t  text;

    text.data = param->data + skip;
    text.len = param->len - skip;

    n = ngx_parse_time(&text, 0);

    if (n == NGX_ERROR || n == 0) {
        return ngx_http_llmgw_policy_must(cf, param, "a time above 0");
    }

    *ms = n;

    return NGX_CONF_OK;
}


/* "50%" or "12.5%": above 0 %, at most 100 %, one decimal. */

static char *
ngx_http_llmgw_policy_percent(ngx_conf_t *cf, ngx_str_t *param, size_t skip,
    ngx_uint_t *permille)
{
    ngx_int_t  n;

    n = NGX_ERROR;

    if (param->len >= skip + 2 && param->data[param->len - 1] == '%') {
        n = ngx_atofp(param->data + skip, param->len - skip - 1, 1);
    }

    if (n == NGX_ERROR || n == 0 || n > 1000) {
        return ngx_http_llmgw_policy_must(cf, param, "0.1% to 100%");
    }

    *permille = n;

    return NGX_CONF_OK;
}


static char *
ngx_http_llmgw_policy_not_one_of(ngx_conf_t *cf, ngx_str_t *param,
    const char *right)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\", it may be %s", param, right);

    return NGX_CONF_ERROR;
}


static char *
ngx_http_llmgw_policy_must(ngx_conf_t *cf, ngx_str_t *param,
    const char *right)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid \"%V\", it must be %s", param, right);

    return NGX_CONF_ERROR;
}
