
/*
 * Classes and tenants: those that ever had requests.  "other" comes first.
 * They belong to the upstream, whichever model was asked for, and are listed
 * with its first pool.  They are read without the lock, while workers continue
 * to count.
 */

#include "conf/admit.h"
#include "pages/facts/snapshot.h"


/* What metrics write later. */
typedef struct {
    ngx_str_t                     name;
    uint64_t                      requests[LLMGW_COHORT_NREASONS];
    ngx_http_llmgw_histogram_t    first_token;
} ngx_http_llmgw_cohort_copy_t;


enum { M_class_requests, M_class_goodput, M_class_first_token_seconds };
enum { M_tenant_requests, M_tenant_in_flight, M_tenant_first_token_seconds };

#define REASONS  { "reason", LLMGW_COHORT_NREASONS, llmgw_cohorts_reason }

static const ngx_http_llmgw_metric_t  ngx_http_llmgw_class_metrics[] = {
    METRIC_LABELLED(class_requests, COUNTER, ONE, RARE,
                    "Requests of a class that have ended", REASONS)
    METRIC_ROW(class_goodput, COUNTER, ONE,
               "Requests of a class that were served within its targets")
    METRIC_ROW(class_first_token_seconds, HISTOGRAM, ONE,
               "From a class's request to its first token")
};

static const ngx_http_llmgw_metric_t  ngx_http_llmgw_tenant_metrics[] = {
    METRIC_LABELLED(tenant_requests, COUNTER, ONE, RARE,
                    "Requests of a tenant that have ended", REASONS)
    METRIC_ROW(tenant_in_flight, GAUGE, ONE,
               "Requests of a tenant that run or wait")
    METRIC_ROW(tenant_first_token_seconds, HISTOGRAM, ONE,
               "From a tenant's request to its first token")
};


/*
 * Begins a cohort's item, and copies the cohort.  NULL: it is not shown, or
 * there is no memory.
 */

static const ngx_http_llmgw_cohort_copy_t *
ngx_http_llmgw_cohort(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_snapshot_t *snapshot, const llmgw_cohort_t *cohort,
    uint32_t in_flight)
{
    ngx_uint_t                     i, has_any;
    ngx_http_llmgw_cohort_copy_t  *copy;

    has_any = (in_flight != 0);

    for (i = 0; i < LLMGW_COHORT_NREASONS; i++) {
        has_any |= (cohort->requests[i] != 0);
    }

    copy = has_any ? ngx_pcalloc(snapshot->memory,
                                 sizeof(ngx_http_llmgw_cohort_copy_t)) : NULL;
    if (copy == NULL) {
        return NULL;
    }

    copy->name.data = (u_char *) cohort->name;
    copy->name.len = cohort->name_len;
    ngx_memcpy(copy->requests, cohort->requests, sizeof(copy->requests));
    ngx_memcpy(copy->first_token.counts, cohort->first_token,
               sizeof(cohort->first_token));
    copy->first_token.sum_ms = cohort->first_token_ms;

    return w->item(w, &copy->name, NGX_HTTP_LLMGW_ON_BOTH) ? copy : NULL;
}


#define METRICS  ngx_http_llmgw_class_metrics

static ngx_int_t
ngx_http_llmgw_class_walk(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_snapshot_t *snapshot, ngx_uint_t i)
{
    uint32_t                             class;
    const llmgw_cohort_t                *cohort;
    ngx_http_llmgw_rules_t              *rules;
    const ngx_http_llmgw_slo_t          *slo;
    const ngx_http_llmgw_cohort_copy_t  *copy;

    static const ngx_http_llmgw_slo_t   none;

    if (!snapshot->is_first) {
        return NGX_DONE;
    }

    cohort = llmgw_cohorts_at(snapshot->pool->upstream->zone->shared->cohorts,
                              LLMGW_COHORT_CLASS, i);
    if (cohort == NULL) {
        return NGX_DONE;
    }

    copy = ngx_http_llmgw_cohort(w, snapshot, cohort, 0);
    if (copy == NULL) {
        return NGX_OK;
    }

    rules = snapshot->pool->conf->rules;
    class = rules ? llmgw_classes_index(&rules->classes, cohort->name,
                                        cohort->name_len)
                  : LLMGW_CLASSES_MAX;
    slo = class == LLMGW_CLASSES_MAX ? &none : &rules->slo[class];

    STATUS("name", STRING(&copy->name));
    STATUS("ttft_ms", SETTING(slo->ttft));
    STATUS("itl_ms", SETTING(slo->itl));
    FACT("goodput", class_goodput, NUMBER(cohort->goodput));
    FACT("requests", class_requests, COUNTS(copy->requests));
    FACT("first_token", class_first_token_seconds, TIMES(&copy->first_token));

    return NGX_OK;
}


const ngx_http_llmgw_scope_t  ngx_http_llmgw_scope_class = {
    SHARED_SCOPE("classes", "class", ngx_http_llmgw_class_walk)
};


#undef METRICS
#define METRICS  ngx_http_llmgw_tenant_metrics

static double
ngx_http_llmgw_tenant_budget(const ngx_http_llmgw_rules_t *rules,
    const ngx_str_t *name)
{
    ngx_uint_t                      i;
    const ngx_http_llmgw_tenant_t  *tenant;

    for (i = 0; rules && i < rules->ntenants; i++) {
        tenant = &rules->tenants[i];

        if (tenant->name.len == name->len
            && ngx_memcmp(tenant->name.data, name->data, name->len) == 0)
        {
            return tenant->fraction;
        }
    }

    return NAN;
}


static ngx_int_t
ngx_http_llmgw_tenant_walk(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_snapshot_t *snapshot, ngx_uint_t i)
{
    uint32_t                             in_flight;
    llmgw_cohorts_t                     *cohorts;
    const llmgw_cohort_t                *cohort;
    const ngx_http_llmgw_cohort_copy_t  *copy;

    if (!snapshot->is_first) {
        return NGX_DONE;
    }

    cohorts = snapshot->pool->upstream->zone->shared->cohorts;

    cohort = llmgw_cohorts_at(cohorts, LLMGW_COHORT_TENANT, i);
    if (cohort == NULL) {
        return NGX_DONE;
    }

    in_flight = llmgw_cohorts_in_flight(cohorts, cohort);

    copy = ngx_http_llmgw_cohort(w, snapshot, cohort, in_flight);
    if (copy == NULL) {
        return NGX_OK;
    }

    STATUS("name", STRING(&copy->name));
    STATUS("budget", REAL(ngx_http_llmgw_tenant_budget(
                              snapshot->pool->conf->rules, &copy->name)));
    FACT("in_flight", tenant_in_flight, NUMBER(in_flight));
    FACT("requests", tenant_requests, COUNTS(copy->requests));
    FACT("first_token", tenant_first_token_seconds, TIMES(&copy->first_token));

    return NGX_OK;
}


const ngx_http_llmgw_scope_t  ngx_http_llmgw_scope_tenant = {
    SHARED_SCOPE("tenants", "tenant", ngx_http_llmgw_tenant_walk)
};
