
/*
 * Classes and tenants in the zone.  core/admission/cohorts.h defines the
 * counts; this room adds the lock, this worker's row, and the cohorts of the
 * configuration.
 *
 * Pages read zone->shared->cohorts with llmgw_cohorts_at(), _in_flight() and
 * _reason(); the bounds of the first token's buckets are those of
 * llmgw_first_token_seconds.
 */

#ifndef _NGX_HTTP_LLMGW_COHORTS_H_INCLUDED_
#define _NGX_HTTP_LLMGW_COHORTS_H_INCLUDED_


#include "core/admission/cohorts.h"

#include "zone/metrics.h"


/*
 * The cohort that counts a class or tenant of that name.  index: its index in
 * this worker's configuration; LLMGW_COHORT_CLASSES or LLMGW_COHORT_TENANTS is
 * "other".
 */
llmgw_cohort_t *ngx_http_llmgw_cohorts_of(ngx_http_llmgw_zone_t *zone,
    llmgw_cohort_kind_t kind, ngx_uint_t index, const ngx_str_t *name);

void ngx_http_llmgw_cohorts_first_token(llmgw_cohort_t *cohort, ngx_msec_t ms);

/*
 * The tenant has one more or one less in flight, in this worker.  A worker
 * without a row counts none, since its counts could not be taken back.
 */
void ngx_http_llmgw_cohorts_began(ngx_http_llmgw_zone_t *zone,
    const llmgw_cohort_t *tenant);
void ngx_http_llmgw_cohorts_left(ngx_http_llmgw_zone_t *zone,
    const llmgw_cohort_t *tenant);

/*
 * Called when a worker begins, after ngx_http_llmgw_zone_claim(): from now on
 * the zone's bucket is that of this worker's configuration, unless a newer one
 * is in force.  If it was another one, the bucket starts full, and that is
 * logged.
 */
void ngx_http_llmgw_cohorts_bucket(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_srv_conf_t *conf);


#endif /* _NGX_HTTP_LLMGW_COHORTS_H_INCLUDED_ */
