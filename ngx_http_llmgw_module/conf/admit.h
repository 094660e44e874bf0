
/*
 * Directives for a request's class and tenant and its admission: llmgw_class
 * and llmgw_tenant of a location; llmgw_slo, llmgw_admission and
 * llmgw_tenant_budget of an upstream{} block.
 */

#ifndef _NGX_HTTP_LLMGW_CONF_ADMIT_H_INCLUDED_
#define _NGX_HTTP_LLMGW_CONF_ADMIT_H_INCLUDED_


#include "conf/conf.h"
#include "core/admission/cohorts.h"
#include "core/admission/rules.h"


/* llmgw_class, llmgw_tenant: where a request's class or tenant comes from. */
struct ngx_http_llmgw_name_source_s {
    ngx_http_complex_value_t     *value;        /* NULL: the request's own
                                                   message, or the first of
                                                   these headers that it has */
    char                         *headers[2];   /* NULL: none */
};


/* llmgw_slo: targets of a class; 0: none. */
typedef struct {
    ngx_int_t                     priority;
    ngx_msec_t                    ttft;
    ngx_msec_t                    itl;
    ngx_int_t                     engine_priority;  /* NGX_CONF_UNSET: the
                                                       engine's default */
    unsigned                      is_set:1;
} ngx_http_llmgw_slo_t;


/* llmgw_tenant_budget: a tenant that has a name. */
typedef struct {
    ngx_str_t                     name;
    uint64_t                      hash;
    double                        fraction;
} ngx_http_llmgw_tenant_t;


struct ngx_http_llmgw_rules_s {
    llmgw_classes_t               classes;
    ngx_http_llmgw_slo_t          slo[LLMGW_CLASSES_MAX];   /* by index in
                                                               classes */
    ngx_http_llmgw_tenant_t       tenants[LLMGW_COHORT_TENANTS];
    ngx_uint_t                    ntenants;
    ngx_uint_t                    has_engine_priority;  /* 1: some slo sets
                                                           engine_priority */
    llmgw_rule_kind_t             rule;
    double                        capacity;     /* of the token bucket */
    double                        rate;         /* per second */
};


/* The hash of a tenant's name; never 0. */
uint64_t ngx_http_llmgw_conf_tenant(const ngx_str_t *name);

/* The block's rules, made with their defaults; NULL: no memory. */
ngx_http_llmgw_rules_t *ngx_http_llmgw_conf_rules(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *lscf);

/* The default headers: the newer name comes first. */
extern char *const  ngx_http_llmgw_class_headers[2];
extern char *const  ngx_http_llmgw_tenant_headers[2];

/* admit.c: the directives; cmd->post of llmgw_class and llmgw_tenant are their
 * headers */
char *ngx_http_llmgw_conf_name_source(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_llmgw_conf_slo(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llmgw_conf_admission(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_llmgw_conf_budgets(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


#endif /* _NGX_HTTP_LLMGW_CONF_ADMIT_H_INCLUDED_ */
