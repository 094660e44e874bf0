
/*
 * Class and tenant of a request.
 *
 *   class= of its key     wins over all below
 *   llmgw_class VALUE     what the operator sets, perhaps by a variable
 *   llmgw_class request   the message's own field, else a header; the field
 *                         of OpenAI's API is service_tier
 *   llmgw_class off       it has none
 *
 * and the same for llmgw_tenant.  A name that the upstream does not know is
 * neither a label of metrics nor a word in a log, since clients can make up as
 * many as they like: a class is "other" then, and a tenant is its hash.
 */

#include "admit/admit.h"
#include "fleet/pool.h"
#include "http/header.h"


static void ngx_http_llmgw_identity_class(ngx_http_llmgw_pool_t *pool,
    const ngx_str_t *name, ngx_http_llmgw_identity_t *identity);
static void ngx_http_llmgw_identity_tenant(ngx_http_llmgw_pool_t *pool,
    const ngx_str_t *name, ngx_http_llmgw_identity_t *identity);
static ngx_str_t ngx_http_llmgw_identity_name(ngx_http_request_t *r,
    const ngx_http_llmgw_name_source_t *source, const ngx_str_t *said);


void
ngx_http_llmgw_identify(ngx_http_request_t *r, ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_identity_t *identity,
    const ngx_http_llmgw_caller_t *caller, ngx_http_llmgw_record_t *record,
    ngx_http_llmgw_claim_t *claim)
{
    ngx_str_t                   name;
    ngx_http_llmgw_loc_conf_t  *llcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);

    identity->is_known = 1;
    identity->class = LLMGW_CLASSES_MAX;
    identity->priority = LLMGW_CLASS_DEFAULT;

    if (caller && caller->class.len) {
        ngx_http_llmgw_identity_class(pool, &caller->class, identity);

    } else if (llcf->class) {
        name = ngx_http_llmgw_identity_name(r, llcf->class,
                                            &identity->said.class);
        ngx_http_llmgw_identity_class(pool, &name, identity);
    }

    if (caller && caller->tenant.len) {
        identity->name = caller->tenant;

    } else if (llcf->tenant) {
        identity->name = ngx_http_llmgw_identity_name(r, llcf->tenant,
                                                      &identity->said.tenant);
    }

    if (identity->name.len) {
        ngx_http_llmgw_identity_tenant(pool, &identity->name, identity);
    }

    record->whose = &identity->whose;

    if (claim->traced) {
        claim->traced->class = identity->whose.class;
        claim->traced->tenant = identity->whose.tenant;
        claim->traced->tenant_hash = identity->whose.tenant_hash;
    }

    claim->ask.priority = identity->priority;
    claim->ask.tenant = identity->whose.tenant_hash;
    claim->ask.deadline_ms = identity->ttft
                             ? record->start_ms + identity->ttft : 0;
}


/* A missing tenant is treated like an unknown one. */

static void
ngx_http_llmgw_identity_class(ngx_http_llmgw_pool_t *pool,
    const ngx_str_t *name, ngx_http_llmgw_identity_t *identity)
{
    uint32_t                 i;
    llmgw_class_t           *class;
    ngx_http_llmgw_rules_t  *rules;

    rules = pool->conf->rules;
    i = llmgw_classes_index(&rules->classes, (char *) name->data, name->len);

    if (i == LLMGW_CLASSES_MAX) {
        ngx_str_set(&identity->whose.class, "other");

    } else {
        class = &rules->classes.classes[i];

        identity->whose.class.data = (u_char *) class->name;
        identity->whose.class.len = class->len;
        identity->priority = class->priority;
        identity->ttft = rules->slo[i].ttft;
        identity->itl = rules->slo[i].itl;
    }

    identity->class = i;
    identity->class_cohort = ngx_http_llmgw_cohorts_of(pool->upstream->zone,
                                LLMGW_COHORT_CLASS, i, &identity->whose.class);
}


static void
ngx_http_llmgw_identity_tenant(ngx_http_llmgw_pool_t *pool,
    const ngx_str_t *name, ngx_http_llmgw_identity_t *identity)
{
    uint64_t                  hash;
    ngx_uint_t                i;
    ngx_http_llmgw_rules_t   *rules;
    ngx_http_llmgw_tenant_t  *tenant;

    rules = pool->conf->rules;
    hash = ngx_http_llmgw_conf_tenant(name);
    identity->whose.tenant_hash = hash;

    for (i = 0; i < rules->ntenants; i++) {
        tenant = &rules->tenants[i];

        if (tenant->hash == hash && tenant->name.len == name->len
            && ngx_memcmp(tenant->name.data, name->data, name->len) == 0)
        {
            identity->whose.tenant = tenant->name;
            identity->budget = tenant;
            break;
        }
    }

    if (identity->budget == NULL) {
        i = LLMGW_COHORT_TENANTS;
    }

    identity->tenant_cohort = ngx_http_llmgw_cohorts_of(pool->upstream->zone,
                                 LLMGW_COHORT_TENANT, i,
                                 &identity->whose.tenant);
}


/* The name; empty if there is none. */

static ngx_str_t
ngx_http_llmgw_identity_name(ngx_http_request_t *r,
    const ngx_http_llmgw_name_source_t *source, const ngx_str_t *said)
{
    ngx_str_t         name;
    ngx_uint_t        i;
    ngx_table_elt_t  *h;

    ngx_str_null(&name);

    if (source->value) {
        if (ngx_http_complex_value(r, source->value, &name) != NGX_OK) {
            ngx_str_null(&name);
        }

        return name;
    }

    if (said->len) {
        return *said;
    }

    for (i = 0; i < 2 && source->headers[i]; i++) {
        h = ngx_http_llmgw_header_find(&r->headers_in.headers,
                                       source->headers[i]);
        if (h) {
            return h->value;
        }
    }

    return name;
}
