
/*
 * llmgw_policy: how a replica is chosen among those that may serve a request.
 */

#include "conf/param.h"


/* For an error about a profile, or about all scorers with their weights. */
#define NGX_HTTP_LLMGW_POLICY_ERROR_BYTES  256


static char *ngx_http_llmgw_conf_weighted(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *lscf, ngx_str_t *weights);


char *
ngx_http_llmgw_conf_policy(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    ngx_str_t                  *value, weights;
    llmgw_rank_policy_t         policy;
    ngx_http_llmgw_srv_conf_t  *lscf = conf;

    rv = ngx_http_llmgw_conf_once(cf, cmd, conf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    value = cf->args->elts;

    if (llmgw_rank_policy((char *) value[1].data, value[1].len, &policy)
        != 0)
    {
        return ngx_http_llmgw_conf_invalid(cf, &value[1],
                                           "affinity, round_robin, "
                                           "least_loaded or weighted");
    }

    lscf->policy = policy;

    if (policy == LLMGW_RANK_WEIGHTED) {
        ngx_str_set(&weights, "default");
        return ngx_http_llmgw_conf_weighted(cf, lscf, cf->args->nelts == 3
                                                      ? &value[2]
                                                      : &weights);
    }

    if (cf->args->nelts == 3) {
        return "has a parameter that only the policy \"weighted\" takes";
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_llmgw_conf_weighted(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *lscf, ngx_str_t *weights)
{
    char  error[NGX_HTTP_LLMGW_POLICY_ERROR_BYTES];

    if (llmgw_weighted_parse(&lscf->weighted, llmgw_scorers,
                             (char *) weights->data, weights->len, error,
                             sizeof(error))
        != 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid weights \"%V\": %s",
                           weights, error);
        return NGX_CONF_ERROR;
    }

    lscf->reads_prefix = (lscf->weighted.needs
                          & (LLMGW_NEEDS_MATCHED|LLMGW_NEEDS_CACHED)) != 0;

    return NGX_CONF_OK;
}
