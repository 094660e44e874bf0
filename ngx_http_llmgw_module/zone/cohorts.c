
#include "zone/zone.h"
#include "conf/admission.h"


_Static_assert(LLMGW_GROUP_NTIMES == NGX_HTTP_LLMGW_NFIRST_TOKEN,
               "groups have as many buckets as the histogram");


/* Each worker looks a name up once: its group does not move. */

llmgw_group_t *
ngx_http_llmgw_groups_of(ngx_http_llmgw_zone_t *zone, llmgw_group_kind_t kind,
    ngx_uint_t index, const ngx_str_t *name)
{
    llmgw_group_t  **known;

    known = &zone->known[kind][index];

    if (*known == NULL) {
        ngx_http_llmgw_zone_lock(zone);
        *known = llmgw_groups_find(zone->shared->groups, kind,
                                   (char *) name->data, name->len);
        ngx_http_llmgw_zone_unlock(zone);
    }

    return *known;
}


void
ngx_http_llmgw_groups_first_token(llmgw_group_t *group, ngx_msec_t ms)
{
    ngx_uint_t         i;
    const ngx_msec_t  *bounds;

    bounds = ngx_http_llmgw_metrics_bounds(
                 NGX_HTTP_LLMGW_HISTOGRAM_first_token_seconds);

    for (i = 0; bounds[i] && ms > bounds[i]; i++) {
        /* void */
    }

    llmgw_group_first_token(group, i, ms);
}


void
ngx_http_llmgw_groups_began(ngx_http_llmgw_zone_t *zone,
    const llmgw_group_t *tenant)
{
    if (zone->self.row != LLMGW_NO_ROW) {
        llmgw_groups_began(zone->shared->groups, tenant, zone->self.row);
    }
}


void
ngx_http_llmgw_groups_left(ngx_http_llmgw_zone_t *zone,
    const llmgw_group_t *tenant)
{
    if (zone->self.row != LLMGW_NO_ROW) {
        llmgw_groups_left(zone->shared->groups, tenant, zone->self.row);
    }
}


void
ngx_http_llmgw_groups_bucket(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_srv_conf_t *conf)
{
    double           capacity, rate;
    ngx_uint_t       is_other, was_one;
    llmgw_bucket_t  *bucket;

    capacity = conf->rules->capacity;
    rate = conf->rules->rate;
    bucket = &zone->shared->groups->bucket;

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
