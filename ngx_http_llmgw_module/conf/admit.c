
/*
 * llmgw_class and llmgw_tenant: class and tenant of a location's requests;
 * llmgw_slo, llmgw_admission and llmgw_tenant_budget: their admission to an
 * upstream, and their targets there.
 *
 * A class or a tenant that one of these lines names becomes a label of metrics,
 * so their number is limited and their names are short words.
 */

#include "conf/admit.h"
#include "conf/param.h"
#include "core/ring/ring.h"
#include "proto/members/members.h"


#define NGX_HTTP_LLMGW_BUCKET_CAPACITY  10000
#define NGX_HTTP_LLMGW_BUCKET_RATE      1000

/* more tokens than any fleet has, and exact as a double */
#define NGX_HTTP_LLMGW_BUCKET_MAX       1000000000000

#define NGX_HTTP_LLMGW_DECIMALS         6
#define NGX_HTTP_LLMGW_MILLION          1000000     /* 1 with so many */


static ngx_int_t ngx_http_llmgw_name_source_header(ngx_conf_t *cf,
    ngx_str_t *value,
    void *field);
static ngx_int_t ngx_http_llmgw_admission_rule(ngx_conf_t *cf,
    ngx_str_t *value, void *field);
static char *ngx_http_llmgw_budgets_add(ngx_conf_t *cf, ngx_str_t *param,
    ngx_http_llmgw_rules_t *rules);
static char *ngx_http_llmgw_admission_name(ngx_conf_t *cf, ngx_str_t *name);


/* by value: NGX_CONF_UNSET_PTR is off, NULL is what the request states */

static const ngx_conf_enum_t  ngx_http_llmgw_name_source_words[] = {
    { ngx_string("off"), (ngx_uint_t) -1 },
    { ngx_string("request"), 0 },
    { ngx_null_string, 0 }
};


char *const  ngx_http_llmgw_class_headers[2] = {
    "x-llm-d-inference-objective", "x-gateway-inference-objective"
};

char *const  ngx_http_llmgw_tenant_headers[2] = {
    "x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id"
};


static const ngx_http_llmgw_param_t  ngx_http_llmgw_name_source_params[] = {
    ngx_http_llmgw_param(ngx_http_llmgw_name_source_t, NULL, VALUE, value,
        .words = ngx_http_llmgw_name_source_words,
        .right = "off, request or a string that is not empty"),
    ngx_http_llmgw_param(ngx_http_llmgw_name_source_t, "header", OTHER, headers,
        .read = ngx_http_llmgw_name_source_header,
        .right = "a name of letters, digits, \"-\" and \"_\""),
    { .kind = 0 }
};


static const ngx_http_llmgw_param_t  ngx_http_llmgw_slo_params[] = {
    ngx_http_llmgw_param(ngx_http_llmgw_slo_t, "priority", NUMBER, priority,
        .min = -LLMGW_CLASS_PRIORITY_MAX, .max = LLMGW_CLASS_PRIORITY_MAX),
    ngx_http_llmgw_param(ngx_http_llmgw_slo_t, "ttft", MSEC, ttft),
    ngx_http_llmgw_param(ngx_http_llmgw_slo_t, "itl", MSEC, itl),
    ngx_http_llmgw_param(ngx_http_llmgw_slo_t, "engine_priority", NUMBER,
        engine_priority,
        .min = -LLMGW_CLASS_PRIORITY_MAX, .max = LLMGW_CLASS_PRIORITY_MAX),
    { .kind = 0 }
};


static const ngx_http_llmgw_param_t  ngx_http_llmgw_admission_params[] = {
    ngx_http_llmgw_param(ngx_http_llmgw_rules_t, NULL, OTHER, rule,
        .read = ngx_http_llmgw_admission_rule,
        .right = "always, token_bucket or reject_all"),
    ngx_http_llmgw_param(ngx_http_llmgw_rules_t, "capacity", DECIMAL, capacity,
        .min = 1, .max = NGX_HTTP_LLMGW_BUCKET_MAX * NGX_HTTP_LLMGW_MILLION,
        .digits = NGX_HTTP_LLMGW_DECIMALS,
        .right = "a number of tokens above 0"),
    ngx_http_llmgw_param(ngx_http_llmgw_rules_t, "rate", DECIMAL, rate,
        .min = 1, .max = NGX_HTTP_LLMGW_BUCKET_MAX * NGX_HTTP_LLMGW_MILLION,
        .digits = NGX_HTTP_LLMGW_DECIMALS,
        .right = "a number of tokens above 0"),
    { .kind = 0 }
};


static const ngx_http_llmgw_param_t  ngx_http_llmgw_budget =
    ngx_http_llmgw_param(ngx_http_llmgw_tenant_t, NULL, DECIMAL, fraction,
        .max = NGX_HTTP_LLMGW_MILLION, .digits = NGX_HTTP_LLMGW_DECIMALS,
        .right = "a fraction from 0 to 1");


char *
ngx_http_llmgw_conf_name_source(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                          *rv, *p = conf;
    ngx_str_t                     *value;
    ngx_http_llmgw_name_source_t  *source;

    source = ngx_pcalloc(cf->pool, sizeof(ngx_http_llmgw_name_source_t));
    if (source == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memcpy(source->headers, cmd->post, sizeof(source->headers));
    rv = ngx_http_llmgw_conf_once(cf, cmd, conf);

    if (rv == NGX_CONF_OK) {
        rv = ngx_http_llmgw_params(cf, ngx_http_llmgw_name_source_params, 1,
                                   source);
    }

    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (cf->args->nelts == 3 && source->value) {
        value = cf->args->elts;
        return ngx_http_llmgw_conf_invalid(cf, &value[2], "behind request");
    }

    *(ngx_http_llmgw_name_source_t **) (p + cmd->offset) =
                      source->value == NGX_CONF_UNSET_PTR ? NULL : source;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_llmgw_name_source_header(ngx_conf_t *cf, ngx_str_t *value, void *field)
{
    char    **headers = field;
    u_char   *p;

    for (p = value->data; *p; p++) {
        if (((*p | 0x20) < 'a' || (*p | 0x20) > 'z')
            && (*p < '0' || *p > '9') && *p != '-' && *p != '_')
        {
            return NGX_DECLINED;
        }
    }

    headers[0] = (char *) value->data;
    headers[1] = NULL;

    return NGX_OK;
}


char *
ngx_http_llmgw_conf_slo(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    uint32_t                    i;
    ngx_str_t                  *value;
    ngx_http_llmgw_slo_t        slo;
    ngx_http_llmgw_rules_t     *rules;
    ngx_http_llmgw_srv_conf_t  *lscf;

    lscf = ngx_http_llmgw_conf_enable(cf, conf);
    rules = lscf ? ngx_http_llmgw_conf_rules(cf, lscf) : NULL;

    if (rules == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;
    ngx_memzero(&slo, sizeof(ngx_http_llmgw_slo_t));

    rv = ngx_http_llmgw_admission_name(cf, &value[1]);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    i = llmgw_classes_index(&rules->classes, (char *) value[1].data,
                            value[1].len);

    if (i < LLMGW_CLASSES_MAX && rules->slo[i].is_set) {
        return "is duplicate, the class has a line";
    }

    slo.priority = i < LLMGW_CLASSES_MAX ? rules->classes.classes[i].priority
                                         : LLMGW_CLASS_DEFAULT;
    slo.engine_priority = NGX_CONF_UNSET;
    slo.is_set = 1;

    rv = ngx_http_llmgw_params(cf, ngx_http_llmgw_slo_params, 2, &slo);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (llmgw_classes_set(&rules->classes, (char *) value[1].data,
                          value[1].len, slo.priority)
        != LLMGW_CLASSES_OK)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "too many classes, at most %d with the five that "
                           "are built in", LLMGW_CLASSES_MAX);
        return NGX_CONF_ERROR;
    }

    i = llmgw_classes_index(&rules->classes, (char *) value[1].data,
                            value[1].len);
    rules->slo[i] = slo;
    rules->has_engine_priority |= (slo.engine_priority != NGX_CONF_UNSET);

    return NGX_CONF_OK;
}


char *
ngx_http_llmgw_conf_admission(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    ngx_http_llmgw_rules_t     *rules;
    ngx_http_llmgw_srv_conf_t  *lscf = conf;

    rv = ngx_http_llmgw_conf_once(cf, cmd, conf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    rules = ngx_http_llmgw_conf_rules(cf, lscf);
    if (rules == NULL) {
        return NGX_CONF_ERROR;
    }

    rv = ngx_http_llmgw_params(cf, ngx_http_llmgw_admission_params, 1, rules);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (cf->args->nelts > 2 && rules->rule != LLMGW_RULE_TOKEN_BUCKET) {
        return "has parameters that only token_bucket takes";
    }

    lscf->admits |= (rules->rule != LLMGW_RULE_ALWAYS);

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_llmgw_admission_rule(ngx_conf_t *cf, ngx_str_t *value, void *field)
{
    return llmgw_rule_kind((char *) value->data, value->len, field) == 0
           ? NGX_OK : NGX_DECLINED;
}


char *
ngx_http_llmgw_conf_budgets(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    ngx_str_t                  *value;
    ngx_uint_t                  n;
    ngx_http_llmgw_rules_t     *rules;
    ngx_http_llmgw_srv_conf_t  *lscf;

    lscf = ngx_http_llmgw_conf_enable(cf, conf);
    rules = lscf ? ngx_http_llmgw_conf_rules(cf, lscf) : NULL;

    if (rules == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;
    lscf->admits = 1;

    for (n = 1; n < cf->args->nelts; n++) {
        rv = ngx_http_llmgw_budgets_add(cf, &value[n], rules);
        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_llmgw_budgets_add(ngx_conf_t *cf, ngx_str_t *param,
    ngx_http_llmgw_rules_t *rules)
{
    char                     *rv;
    u_char                   *p;
    ngx_str_t                 fraction;
    ngx_uint_t                i;
    ngx_http_llmgw_tenant_t   tenant;

    p = (u_char *) ngx_strchr(param->data, '=');
    if (p == NULL) {
        return ngx_http_llmgw_conf_invalid(cf, param, "tenant=fraction");
    }

    tenant.name.data = param->data;
    tenant.name.len = p - param->data;
    fraction.data = p + 1;
    fraction.len = param->len - tenant.name.len - 1;

    rv = ngx_http_llmgw_admission_name(cf, &tenant.name);

    if (rv == NGX_CONF_OK) {
        rv = ngx_http_llmgw_param_read(cf, &ngx_http_llmgw_budget, param,
                                       &fraction, &tenant);
    }

    if (rv != NGX_CONF_OK) {
        return rv;
    }

    tenant.hash = ngx_http_llmgw_conf_tenant(&tenant.name);

    for (i = 0; i < rules->ntenants; i++) {
        if (rules->tenants[i].hash == tenant.hash) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "tenant \"%V\" has a budget already",
                               &tenant.name);
            return NGX_CONF_ERROR;
        }
    }

    if (i == LLMGW_COHORT_TENANTS) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "too many tenants, at most %d have budgets",
                           LLMGW_COHORT_TENANTS);
        return NGX_CONF_ERROR;
    }

    rules->tenants[rules->ntenants++] = tenant;

    return NGX_CONF_OK;
}


/*
 * Checks the name of a class or a tenant: it must be fit for a label, and not
 * be taken.
 */

static char *
ngx_http_llmgw_admission_name(ngx_conf_t *cf, ngx_str_t *name)
{
    if (!llmgw_name_is_valid((char *) name->data, name->len)) {
        return ngx_http_llmgw_conf_invalid(cf, name,
                                           "a name of at most 63 letters, "
                                           "digits, \".\", \"_\" and \"-\" "
                                           "that begins with a letter or a "
                                           "digit");
    }

    if (name->len == 5 && ngx_strncmp(name->data, "other", 5) == 0) {
        return ngx_http_llmgw_conf_invalid(cf, name,
                                           "another name: \"other\" stands "
                                           "for all that are not configured");
    }

    return NGX_CONF_OK;
}


uint64_t
ngx_http_llmgw_conf_tenant(const ngx_str_t *name)
{
    uint64_t  hash;

    hash = llmgw_ring_hash(name->data, name->len);

    return hash ? hash : 1;
}


ngx_http_llmgw_rules_t *
ngx_http_llmgw_conf_rules(ngx_conf_t *cf, ngx_http_llmgw_srv_conf_t *lscf)
{
    ngx_uint_t               i;
    ngx_http_llmgw_rules_t  *rules;

    if (lscf->rules) {
        return lscf->rules;
    }

    rules = ngx_pcalloc(cf->pool, sizeof(ngx_http_llmgw_rules_t));
    if (rules == NULL) {
        return NULL;
    }

    llmgw_classes_init(&rules->classes);

    for (i = 0; i < LLMGW_CLASSES_MAX; i++) {
        rules->slo[i].engine_priority = NGX_CONF_UNSET;
    }

    rules->capacity = NGX_HTTP_LLMGW_BUCKET_CAPACITY;
    rules->rate = NGX_HTTP_LLMGW_BUCKET_RATE;

    lscf->rules = rules;

    return rules;
}
