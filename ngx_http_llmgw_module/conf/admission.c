
/*
 * llmgw_class and llmgw_tenant: whose requests of a location are; llmgw_slo,
 * llmgw_admission and llmgw_tenant_budget: which of them may enter an upstream,
 * and what they want there.
 *
 * A class or a tenant that one of these lines names becomes a label of metrics,
 * so their number is limited and their names are short words.
 */

#include "conf/admission.h"
#include "core/ring/ring.h"
#include "proto/members/members.h"


#define NGX_HTTP_LLMGW_BUCKET_CAPACITY  10000
#define NGX_HTTP_LLMGW_BUCKET_RATE      1000

/* more tokens than any fleet has, and exact as a double */
#define NGX_HTTP_LLMGW_BUCKET_MAX       1e12

#define NGX_HTTP_LLMGW_DECIMALS         6


static char *ngx_http_llmgw_told_header(ngx_conf_t *cf, ngx_str_t *param,
    ngx_http_llmgw_told_t *told);
static char *ngx_http_llmgw_told_value(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_llmgw_told_t *told);
static char *ngx_http_llmgw_slo_param(ngx_conf_t *cf, ngx_str_t *param,
    ngx_int_t *priority, ngx_http_llmgw_slo_t *slo);
static char *ngx_http_llmgw_slo_priority(ngx_conf_t *cf, ngx_str_t *param,
    ngx_int_t *priority);
static char *ngx_http_llmgw_admission_param(ngx_conf_t *cf, ngx_str_t *param,
    ngx_http_llmgw_rules_t *rules);
static char *ngx_http_llmgw_budgets_add(ngx_conf_t *cf, ngx_str_t *param,
    ngx_http_llmgw_rules_t *rules);
static char *ngx_http_llmgw_admission_name(ngx_conf_t *cf,
    const ngx_str_t *name);
static ngx_int_t ngx_http_llmgw_admission_decimal(const ngx_str_t *param,
    size_t skip, double *number);


char *
ngx_http_llmgw_conf_told(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                    *p = conf;
    ngx_str_t               *value;
    ngx_http_llmgw_told_t   *told, **field;

    field = (ngx_http_llmgw_told_t **) (p + cmd->offset);

    if (*field != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;
    *field = NULL;

    if (ngx_strcmp(value[1].data, "request") == 0) {
        told = ngx_pcalloc(cf->pool, sizeof(ngx_http_llmgw_told_t));
        if (told == NULL) {
            return NGX_CONF_ERROR;
        }

        *field = told;
        told->header = cmd->post;

        return cf->args->nelts == 3
               ? ngx_http_llmgw_told_header(cf, &value[2], told)
               : NGX_CONF_OK;
    }

    if (cf->args->nelts == 3) {
        return ngx_http_llmgw_conf_invalid(cf, &value[2]);
    }

    if (ngx_strcmp(value[1].data, "off") == 0) {
        return NGX_CONF_OK;
    }

    told = ngx_pcalloc(cf->pool, sizeof(ngx_http_llmgw_told_t));
    if (told == NULL) {
        return NGX_CONF_ERROR;
    }

    *field = told;

    return ngx_http_llmgw_told_value(cf, &value[1], told);
}


static char *
ngx_http_llmgw_told_header(ngx_conf_t *cf, ngx_str_t *param,
    ngx_http_llmgw_told_t *told)
{
    u_char  *p;

    if (ngx_strncmp(param->data, "header=", 7) != 0 || param->len == 7) {
        return ngx_http_llmgw_conf_invalid(cf, param);
    }

    for (p = param->data + 7; *p; p++) {
        if ((*p | 0x20) >= 'a' && (*p | 0x20) <= 'z') {
            continue;
        }

        if ((*p < '0' || *p > '9') && *p != '-' && *p != '_') {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid \"%V\", a header's name has letters, "
                               "digits, \"-\" and \"_\"", param);
            return NGX_CONF_ERROR;
        }
    }

    told->header = (char *) param->data + 7;

    return NGX_CONF_OK;
}


static char *
ngx_http_llmgw_told_value(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_llmgw_told_t *told)
{
    ngx_http_compile_complex_value_t  ccv;

    if (value->len == 0) {
        return "is empty, \"off\" turns it off";
    }

    told->value = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));
    if (told->value == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = value;
    ccv.complex_value = told->value;

    return ngx_http_compile_complex_value(&ccv) == NGX_OK ? NGX_CONF_OK
                                                          : NGX_CONF_ERROR;
}


char *
ngx_http_llmgw_conf_slo(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                       *rv;
    uint32_t                    i;
    ngx_int_t                   priority;
    ngx_str_t                  *value;
    ngx_uint_t                  n;
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

    priority = i < LLMGW_CLASSES_MAX ? rules->classes.classes[i].priority
                                     : LLMGW_CLASS_DEFAULT;
    slo.is_set = 1;

    for (n = 2; n < cf->args->nelts; n++) {
        rv = ngx_http_llmgw_slo_param(cf, &value[n], &priority, &slo);
        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    if (llmgw_classes_set(&rules->classes, (char *) value[1].data,
                          value[1].len, priority)
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

    return NGX_CONF_OK;
}


static char *
ngx_http_llmgw_slo_param(ngx_conf_t *cf, ngx_str_t *param,
    ngx_int_t *priority, ngx_http_llmgw_slo_t *slo)
{
    if (ngx_strncmp(param->data, "priority=", 9) == 0) {
        return ngx_http_llmgw_slo_priority(cf, param, priority);
    }

    if (ngx_strncmp(param->data, "ttft=", 5) == 0) {
        return ngx_http_llmgw_policy_time(cf, param, 5, &slo->ttft);
    }

    if (ngx_strncmp(param->data, "itl=", 4) == 0) {
        return ngx_http_llmgw_policy_time(cf, param, 4, &slo->itl);
    }

    return ngx_http_llmgw_conf_invalid(cf, param);
}


static char *
ngx_http_llmgw_slo_priority(ngx_conf_t *cf, ngx_str_t *param,
    ngx_int_t *priority)
{
    size_t     skip;
    ngx_int_t  n;

    skip = 9 + (param->data[9] == '-');
    n = ngx_atoi(param->data + skip, param->len - skip);

    if (n == NGX_ERROR || n > LLMGW_CLASS_PRIORITY_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid \"%V\", it must be %d to %d", param,
                           -LLMGW_CLASS_PRIORITY_MAX, LLMGW_CLASS_PRIORITY_MAX);
        return NGX_CONF_ERROR;
    }

    *priority = skip == 9 ? n : -n;

    return NGX_CONF_OK;
}


char *
ngx_http_llmgw_conf_admission(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
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

    if (rules->rule_set) {
        return "is duplicate";
    }

    rules->rule_set = 1;
    value = cf->args->elts;

    if (llmgw_rule_kind((char *) value[1].data, value[1].len, &rules->rule)
        != 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid rule \"%V\", it must be always, "
                           "token_bucket or reject_all", &value[1]);
        return NGX_CONF_ERROR;
    }

    lscf->admits |= (rules->rule != LLMGW_RULE_ALWAYS);

    for (n = 2; n < cf->args->nelts; n++) {
        rv = ngx_http_llmgw_admission_param(cf, &value[n], rules);
        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_llmgw_admission_param(ngx_conf_t *cf, ngx_str_t *param,
    ngx_http_llmgw_rules_t *rules)
{
    size_t   skip;
    double  *field;

    if (ngx_strncmp(param->data, "capacity=", 9) == 0) {
        skip = 9;
        field = &rules->capacity;

    } else if (ngx_strncmp(param->data, "rate=", 5) == 0) {
        skip = 5;
        field = &rules->rate;

    } else {
        return ngx_http_llmgw_conf_invalid(cf, param);
    }

    if (rules->rule != LLMGW_RULE_TOKEN_BUCKET) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\", only token_bucket has "
                           "it", param);
        return NGX_CONF_ERROR;
    }

    if (ngx_http_llmgw_admission_decimal(param, skip, field) != NGX_OK
        || *field <= 0 || *field > NGX_HTTP_LLMGW_BUCKET_MAX)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid \"%V\", it must be a number of tokens "
                           "above 0", param);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
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
    ngx_uint_t                i;
    ngx_http_llmgw_tenant_t   tenant;

    p = (u_char *) ngx_strchr(param->data, '=');
    if (p == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid \"%V\", it must be tenant=fraction",
                           param);
        return NGX_CONF_ERROR;
    }

    tenant.name.data = param->data;
    tenant.name.len = p - param->data;

    rv = ngx_http_llmgw_admission_name(cf, &tenant.name);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (ngx_http_llmgw_admission_decimal(param, tenant.name.len + 1,
                                         &tenant.fraction)
        != NGX_OK
        || tenant.fraction > 1)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid \"%V\", a budget is a fraction from 0 to "
                           "1", param);
        return NGX_CONF_ERROR;
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

    if (i == LLMGW_GROUP_TENANTS) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "too many tenants, at most %d have budgets",
                           LLMGW_GROUP_TENANTS);
        return NGX_CONF_ERROR;
    }

    rules->tenants[rules->ntenants++] = tenant;

    return NGX_CONF_OK;
}


/* Of a class or a tenant: one that can be a label, and is no other's. */

static char *
ngx_http_llmgw_admission_name(ngx_conf_t *cf, const ngx_str_t *name)
{
    if (!llmgw_name_is_valid((char *) name->data, name->len)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid name \"%V\", it must be at most 63 "
                           "letters, digits, \".\", \"_\" and \"-\", and begin "
                           "with a letter or a digit", name);
        return NGX_CONF_ERROR;
    }

    if (name->len == 5 && ngx_strncmp(name->data, "other", 5) == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid name \"other\", it stands for all names "
                           "that are not configured");
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* Digits, perhaps with a dot and some decimals. */

static ngx_int_t
ngx_http_llmgw_admission_decimal(const ngx_str_t *param, size_t skip,
    double *number)
{
    u_char     last;
    ngx_int_t  n;

    last = param->data[param->len - 1];
    n = ngx_atofp(param->data + skip, param->len - skip,
                  NGX_HTTP_LLMGW_DECIMALS);

    if (n == NGX_ERROR || last < '0' || last > '9') {
        return NGX_ERROR;
    }

    *number = (double) n / 1e6;

    return NGX_OK;
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
    ngx_http_llmgw_rules_t  *rules;

    if (lscf->rules) {
        return lscf->rules;
    }

    rules = ngx_pcalloc(cf->pool, sizeof(ngx_http_llmgw_rules_t));
    if (rules == NULL) {
        return NULL;
    }

    llmgw_classes_init(&rules->classes);
    rules->capacity = NGX_HTTP_LLMGW_BUCKET_CAPACITY;
    rules->rate = NGX_HTTP_LLMGW_BUCKET_RATE;

    lscf->rules = rules;

    return rules;
}
