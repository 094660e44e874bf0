
/*
 * Directives for replicas that are full, slow or failing: llmgw_queue,
 * llmgw_breaker, llmgw_hedge.
 *
 * All three are active by default, even if the block does not name them.
 */

#include "conf/param.h"


#define NGX_HTTP_LLMGW_MAX_QUEUE  1000000
#define NGX_HTTP_LLMGW_HOLD_MS  5000    /* enough for an engine's crash and
                                           restart */
#define NGX_HTTP_LLMGW_HEDGE_BUDGET  50         /* permille */

/* per replica: the threshold of the Gateway API Inference Extension */
#define NGX_HTTP_LLMGW_CONCURRENCY  100

/* while a line is read: it has no saturation= yet */
#define NGX_HTTP_LLMGW_NO_SATURATION  ((llmgw_saturation_kind_t) -1)


static ngx_int_t ngx_http_llmgw_conf_order(ngx_conf_t *cf, ngx_str_t *value,
    void *field);
static ngx_int_t ngx_http_llmgw_conf_fairness(ngx_conf_t *cf,
    ngx_str_t *value, void *field);


static const ngx_conf_enum_t  ngx_http_llmgw_saturations[] = {
    { ngx_string("capacity"), LLMGW_SATURATION_NEVER },
    { ngx_string("utilization"), LLMGW_SATURATION_UTILIZATION },
    { ngx_string("concurrency"), LLMGW_SATURATION_CONCURRENCY },
    { ngx_null_string, 0 }
};


static const ngx_conf_enum_t  ngx_http_llmgw_on_off[] = {
    { ngx_string("on"), 1 },
    { ngx_string("off"), 0 },
    { ngx_null_string, 0 }
};


static const ngx_conf_enum_t  ngx_http_llmgw_no_hold[] = {
    { ngx_string("0"), 0 },
    { ngx_null_string, 0 }
};


const ngx_http_llmgw_param_t  ngx_http_llmgw_queue_params[] = {
    ngx_http_llmgw_srv_param("size", NUMBER, queue_size, .min = 1,
        .max = NGX_HTTP_LLMGW_MAX_QUEUE, .words = ngx_http_llmgw_off,
        .bare = 1, .alone = 1, .right = "off or 1 to 1000000"),
    ngx_http_llmgw_srv_param("timeout", MSEC, queue_timeout),
    ngx_http_llmgw_srv_param("ttl", MSEC, queue_ttl),
    ngx_http_llmgw_srv_param("hold", MSEC, queue_hold,
        .words = ngx_http_llmgw_no_hold, .right = "0 or a time above 0"),
    ngx_http_llmgw_srv_param("order", OTHER, flow.order,
        .read = ngx_http_llmgw_conf_order,
        .right = "fifo, priority or slo_deadline"),
    ngx_http_llmgw_srv_param("fairness", OTHER, flow.fairness,
        .read = ngx_http_llmgw_conf_fairness,
        .right = "global or round_robin"),
    ngx_http_llmgw_srv_param("saturation=concurrency", NUMBER,
        saturation.max_concurrency, .min = 1, .max = NGX_HTTP_LLMGW_MAX_QUEUE),
    ngx_http_llmgw_srv_param("saturation", WORD, saturation.kind,
        .words = ngx_http_llmgw_saturations,
        .right = "capacity, utilization or concurrency[=number]"),
    ngx_http_llmgw_srv_param("usage_limit", PERCENT, flow.usage_limit,
        .min = 1, .max = 1000, .digits = 1, .right = "0.1% to 100%"),
    ngx_http_llmgw_srv_param("shedding", WORD, flow.has_shedding,
        .words = ngx_http_llmgw_on_off, .right = "on or off"),
    { .kind = 0 }
};


const ngx_http_llmgw_param_t  ngx_http_llmgw_breaker_params[] = {
    ngx_http_llmgw_srv_param(NULL, WORD, breaker.enabled,
        .words = ngx_http_llmgw_off, .alone = 1, .right = "off"),
    ngx_http_llmgw_srv_param("window", MSEC, breaker.window_ms),
    ngx_http_llmgw_srv_param("min_requests", NUMBER, breaker.min_requests,
        .min = 1, .max = 1000000),
    ngx_http_llmgw_srv_param("error_rate", PERCENT, breaker.error_permille,
        .min = 1, .max = 1000, .digits = 1, .right = "0.1% to 100%"),
    ngx_http_llmgw_srv_param("cooldown", MSEC, breaker.cooldown_ms),
    ngx_http_llmgw_srv_param("max_cooldown", MSEC, breaker.max_cooldown_ms),
    ngx_http_llmgw_srv_param("probes", NUMBER, breaker.probes, .min = 1,
        .max = 1000),
    { .kind = 0 }
};


const ngx_http_llmgw_param_t  ngx_http_llmgw_hedge_params[] = {
    ngx_http_llmgw_srv_param(NULL, WORD, hedge_on,
        .words = ngx_http_llmgw_on_off, .alone = 1, .right = "on, off"),
    ngx_http_llmgw_srv_param("delay", MSEC, hedge_delay),
    ngx_http_llmgw_srv_param("budget", PERCENT, hedge_budget, .min = 1,
        .max = 1000, .digits = 1, .right = "0.1% to 100%"),
    { .kind = 0 }
};


void
ngx_http_llmgw_conf_resilience_defaults(ngx_http_llmgw_srv_conf_t *lscf)
{
    lscf->queue_size = 1000;
    lscf->queue_timeout = 30000;
    lscf->queue_hold = NGX_HTTP_LLMGW_HOLD_MS;
    lscf->flow.usage_limit = 1;

    /* thresholds of the Gateway API Inference Extension, as in BLIS */
    lscf->saturation.queue_depth = 5;
    lscf->saturation.kv_utilization = 0.8;
    lscf->saturation.max_concurrency = NGX_HTTP_LLMGW_CONCURRENCY;

    lscf->breaker.enabled = 1;
    lscf->breaker.window_ms = 10000;
    lscf->breaker.min_requests = 5;
    lscf->breaker.error_permille = 500;
    lscf->breaker.cooldown_ms = 5000;
    lscf->breaker.max_cooldown_ms = 60000;
    lscf->breaker.probes = 1;

    lscf->hedge_on = 1;
    lscf->hedge_budget = NGX_HTTP_LLMGW_HEDGE_BUDGET;
}


char *
ngx_http_llmgw_conf_queue(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    llmgw_saturation_t         *saturation;
    ngx_http_llmgw_srv_conf_t  *lscf = conf;

    saturation = &lscf->saturation;
    saturation->kind = NGX_HTTP_LLMGW_NO_SATURATION;
    saturation->max_concurrency = 0;
    lscf->queue_hold = NGX_CONF_UNSET_MSEC;
    rv = ngx_http_llmgw_conf_line(cf, cmd, conf);

    if (lscf->queue_hold == NGX_CONF_UNSET_MSEC) {
        lscf->queue_hold = ngx_min(NGX_HTTP_LLMGW_HOLD_MS,
                                   lscf->queue_timeout);

    } else if (rv == NGX_CONF_OK && lscf->queue_hold > lscf->queue_timeout) {
        return "has a \"hold\" longer than its \"timeout\", which ends "
               "every wait: raise \"timeout\" as well";
    }

    /* "saturation=concurrency=8" has a line of its own in the table */

    if (saturation->max_concurrency == 0) {
        saturation->max_concurrency = NGX_HTTP_LLMGW_CONCURRENCY;

        if (saturation->kind == NGX_HTTP_LLMGW_NO_SATURATION) {
            saturation->kind = LLMGW_SATURATION_NEVER;
        }

    } else if (saturation->kind == NGX_HTTP_LLMGW_NO_SATURATION) {
        saturation->kind = LLMGW_SATURATION_CONCURRENCY;

    } else if (rv == NGX_CONF_OK) {
        return "has more than one \"saturation\"";
    }

    /*
     * a limit has an effect only with bands, and with something that reaches
     * their ceilings
     */

    if (rv == NGX_CONF_OK && lscf->flow.usage_limit != 1
        && (lscf->flow.order == LLMGW_FLOW_FIFO
            || saturation->kind == LLMGW_SATURATION_NEVER))
    {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "\"usage_limit\" of \"llmgw_queue\" does nothing "
                           "without order=priority or order=slo_deadline, and "
                           "saturation=utilization or "
                           "saturation=concurrency");
    }

    return rv;
}


static ngx_int_t
ngx_http_llmgw_conf_order(ngx_conf_t *cf, ngx_str_t *value, void *field)
{
    return llmgw_flow_order((char *) value->data, value->len, field) == 0
           ? NGX_OK : NGX_DECLINED;
}


static ngx_int_t
ngx_http_llmgw_conf_fairness(ngx_conf_t *cf, ngx_str_t *value, void *field)
{
    return llmgw_flow_fairness((char *) value->data, value->len, field) == 0
           ? NGX_OK : NGX_DECLINED;
}


char *
ngx_http_llmgw_conf_breaker(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    ngx_http_llmgw_srv_conf_t  *lscf = conf;

    rv = ngx_http_llmgw_conf_line(cf, cmd, conf);

    if (rv == NGX_CONF_OK
        && lscf->breaker.max_cooldown_ms < lscf->breaker.cooldown_ms)
    {
        return "has a max_cooldown below its cooldown";
    }

    return rv;
}


char *
ngx_http_llmgw_conf_hedge(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    ngx_http_llmgw_srv_conf_t  *lscf = conf;

    lscf->hedge_budget = 0;
    rv = ngx_http_llmgw_conf_line(cf, cmd, conf);

    if (lscf->hedge_budget == 0) {
        lscf->hedge_budget = NGX_HTTP_LLMGW_HEDGE_BUDGET;

    } else if (rv == NGX_CONF_OK && lscf->hedge_delay == 0) {
        return "has a \"budget\" without a \"delay\"";
    }

    return rv;
}
