
#include "zone/zone.h"
#include "conf/admit.h"


_Static_assert(LLMGW_COHORT_NTIMES == NGX_HTTP_LLMGW_NFIRST_TOKEN,
               "cohorts have as many buckets as the histogram");


/* Each worker looks a name up once: its cohort does not move. */

llmgw_cohort_t *
ngx_http_llmgw_cohorts_of(ngx_http_llmgw_zone_t *zone, llmgw_cohort_kind_t kind,
    ngx_uint_t index, const ngx_str_t *name)
{
    llmgw_cohort_t  **known;

    known = &zone->known[kind][index];

    if (*known == NULL) {
        ngx_http_llmgw_zone_lock(zone);
        *known = llmgw_cohorts_find(zone->shared->cohorts, kind,
                                   (char *) name->data, name->len);
        ngx_http_llmgw_zone_unlock(zone);
    }

    return *known;
}


void
ngx_http_llmgw_cohorts_first_token(llmgw_cohort_t *cohort, ngx_msec_t ms)
{
    ngx_uint_t         i;
    const ngx_msec_t  *bounds;

    bounds = ngx_http_llmgw_metrics_bounds(
                 NGX_HTTP_LLMGW_HISTOGRAM_first_token_seconds);

    for (i = 0; bounds[i] && ms > bounds[i]; i++) {
        /* void */
    }

    llmgw_cohort_first_token(cohort, i, ms);
}


void
ngx_http_llmgw_cohorts_began(ngx_http_llmgw_zone_t *zone,
    const llmgw_cohort_t *tenant)
{
    if (zone->self.row != LLMGW_NO_ROW) {
        llmgw_cohorts_began(zone->shared->cohorts, tenant, zone->self.row);
    }
}


void
ngx_http_llmgw_cohorts_left(ngx_http_llmgw_zone_t *zone,
    const llmgw_cohort_t *tenant)
{
    if (zone->self.row != LLMGW_NO_ROW) {
        llmgw_cohorts_left(zone->shared->cohorts, tenant, zone->self.row);
    }
}


void
ngx_http_llmgw_cohorts_bucket(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_srv_conf_t *conf)
{
    double           capacity, rate;
    ngx_uint_t       is_other, was_one;
    llmgw_bucket_t  *bucket;

    capacity = conf->rules->capacity;
    rate = conf->rules->rate;
    bucket = &zone->shared->cohorts->bucket;

    ngx_http_llmgw_zone_lock(zone);

    was_one = (bucket->capacity != 0);
    is_other = (bucket->capacity != capacity || bucket->rate != rate)
               && (!was_one || conf->zone_number >= zone->shared->ordered);

    if (is_other) {
        (void) llmgw_bucket_init(bucket, capacity, rate,
                                 (int64_t) ngx_current_msec * 1000);
    }

    ngx_http_llmgw_zone_unlock(zone);

    if (is_other && was_one) {
        ngx_log_error(NGX_LOG_NOTICE, zone->log, 0,
                      "llmgw: zone \"%V\" has a token bucket with other "
                      "settings, it begins full", &zone->name);
    }
}
