
/*
 * llmgw_status: how a pool chooses and what it lets in, its classes and its
 * tenants.  Words are those of the directives.
 */

#include "conf/admission.h"
#include "pages/status.h"


static json_t *ngx_http_llmgw_status_bucket(ngx_http_llmgw_pool_t *pool);
static json_t *ngx_http_llmgw_status_ended(const llmgw_group_t *group);
static json_t *ngx_http_llmgw_status_target(ngx_msec_t ms);


json_t *
ngx_http_llmgw_status_policy(const ngx_http_llmgw_srv_conf_t *conf)
{
    uint32_t               i;
    json_t                *scorers;
    const llmgw_weight_t  *weight;

    scorers = json_array();

    for (i = 0; conf->policy == LLMGW_RANK_WEIGHTED && i < conf->weighted.n;
         i++)
    {
        weight = &conf->weighted.weights[i];
        (void) json_array_append_new(scorers,
                                     json_pack("{s:s, s:f}",
                                               "name", weight->scorer->name,
                                               "weight", weight->given));
    }

    return json_pack("{s:s, s:o}", "name", llmgw_rank_policy_word(conf->policy),
                     "scorers", scorers);
}


json_t *
ngx_http_llmgw_status_index(const ngx_http_llmgw_srv_conf_t *conf)
{
    const ngx_http_llmgw_index_t  *index;

    index = &conf->index;

    if (index->shm_zone == NULL) {
        return json_null();
    }

    return json_pack("{s:I, s:I, s:I, s:I}",
                     "block", (json_int_t) index->block,
                     "blocks", (json_int_t) index->blocks,
                     "match", (json_int_t) index->match,
                     "size", (json_int_t) index->shm_zone->shm.size);
}


json_t *
ngx_http_llmgw_status_admission(ngx_http_llmgw_pool_t *pool)
{
    llmgw_rule_kind_t  rule;

    rule = pool->conf->rules ? pool->conf->rules->rule : LLMGW_RULE_ALWAYS;

    return json_pack("{s:s, s:o}", "rule", llmgw_rule_word(rule),
                     "bucket", rule == LLMGW_RULE_TOKEN_BUCKET
                     ? ngx_http_llmgw_status_bucket(pool) : json_null());
}


/* A copy is filled up to now: the bucket itself is when a request comes. */

static json_t *
ngx_http_llmgw_status_bucket(ngx_http_llmgw_pool_t *pool)
{
    llmgw_bucket_t  bucket;

    ngx_http_llmgw_zone_lock(pool->zone);
    bucket = pool->zone->shared->groups->bucket;
    ngx_http_llmgw_zone_unlock(pool->zone);

    (void) llmgw_bucket_take(&bucket, 0, (int64_t) ngx_current_msec * 1000);

    return json_pack("{s:f, s:f, s:f}", "capacity", bucket.capacity,
                     "rate", bucket.rate, "tokens", bucket.tokens);
}


json_t *
ngx_http_llmgw_status_queue(ngx_http_llmgw_pool_t *pool)
{
    llmgw_admission_t          *shared;
    ngx_http_llmgw_srv_conf_t  *conf;

    conf = pool->conf;
    shared = pool->zone->self.shared;

    return json_pack("{s:I, s:I, s:I, s:s?, s:s, s:s, s:s, s:o, s:b}",
                     "length", (json_int_t) shared->queue.length,
                     "size", (json_int_t) conf->queue_size,
                     "timeout_ms", (json_int_t) conf->queue_timeout,
                     "waits_for", shared->queue.length == 0 ? NULL
                     : llmgw_waits_name(shared->waits_for),
                     "order", llmgw_flow_order_word(conf->flow.order),
                     "fairness",
                     llmgw_flow_fairness_word(conf->flow.fairness),
                     "saturation",
                     llmgw_saturation_word(conf->saturation.kind),
                     "ttl_ms", ngx_http_llmgw_status_target(conf->queue_ttl),
                     "shedding", conf->flow.has_shedding);
}


ngx_int_t
ngx_http_llmgw_status_class(ngx_http_llmgw_snapshot_t *snapshot, ngx_uint_t i,
    json_t **json)
{
    uint32_t                 class;
    ngx_http_llmgw_slo_t     slo;
    ngx_http_llmgw_group_t   group;
    ngx_http_llmgw_rules_t  *rules;

    if (ngx_http_llmgw_snapshot_group(snapshot, LLMGW_GROUP_CLASS, i, &group)
        != NGX_OK)
    {
        return NGX_DONE;
    }

    if (!group.has_any) {
        return NGX_DECLINED;
    }

    rules = snapshot->pool->conf->rules;
    class = rules ? llmgw_classes_index(&rules->classes,
                                        (char *) group.name.data,
                                        group.name.len)
                  : LLMGW_CLASSES_MAX;

    ngx_memzero(&slo, sizeof(ngx_http_llmgw_slo_t));

    if (class != LLMGW_CLASSES_MAX) {
        slo = rules->slo[class];
    }

    *json = json_pack("{s:s%, s:o, s:o, s:I, s:o, s:o}",
                      "name", group.name.data, group.name.len,
                      "ttft_ms", ngx_http_llmgw_status_target(slo.ttft),
                      "itl_ms", ngx_http_llmgw_status_target(slo.itl),
                      "goodput", (json_int_t) group.counts.goodput,
                      "requests", ngx_http_llmgw_status_ended(&group.counts),
                      "first_token",
                      ngx_http_llmgw_status_group_times(&group.counts));

    return NGX_OK;
}


ngx_int_t
ngx_http_llmgw_status_tenant(ngx_http_llmgw_snapshot_t *snapshot, ngx_uint_t i,
    json_t **json)
{
    json_t                  *budget;
    ngx_uint_t               k;
    ngx_http_llmgw_group_t   group;
    ngx_http_llmgw_rules_t  *rules;

    if (ngx_http_llmgw_snapshot_group(snapshot, LLMGW_GROUP_TENANT, i, &group)
        != NGX_OK)
    {
        return NGX_DONE;
    }

    if (!group.has_any) {
        return NGX_DECLINED;
    }

    budget = NULL;
    rules = snapshot->pool->conf->rules;

    for (k = 0; rules && k < rules->ntenants; k++) {
        if (rules->tenants[k].name.len == group.name.len
            && ngx_memcmp(rules->tenants[k].name.data, group.name.data,
                          group.name.len)
               == 0)
        {
            budget = json_real(rules->tenants[k].fraction);
        }
    }

    *json = json_pack("{s:s%, s:o, s:I, s:o, s:o}",
                      "name", group.name.data, group.name.len,
                      "budget", budget ? budget : json_null(),
                      "in_flight", (json_int_t) group.in_flight,
                      "requests", ngx_http_llmgw_status_ended(&group.counts),
                      "first_token",
                      ngx_http_llmgw_status_group_times(&group.counts));

    return NGX_OK;
}


/* {"": 300, "queue_full": 2}: by reason, counts above 0, and those served. */

static json_t *
ngx_http_llmgw_status_ended(const llmgw_group_t *group)
{
    json_t    *requests;
    uint32_t   i;

    requests = json_object();

    for (i = 0; i < LLMGW_GROUP_NREASONS; i++) {
        if (group->requests[i] || i == LLMGW_OUTCOME_SERVED) {
            (void) json_object_set_new(requests, llmgw_groups_reason(i),
                                       json_integer((json_int_t)
                                                    group->requests[i]));
        }
    }

    return requests;
}


static json_t *
ngx_http_llmgw_status_target(ngx_msec_t ms)
{
    return ms ? json_integer((json_int_t) ms) : json_null();
}
