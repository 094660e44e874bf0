
/*
 * llmgw_status: what this worker knows of its pools, as JSON.
 */

#include <jansson.h>

#include "ngx_http_llmgw_zone.h"


static ngx_int_t ngx_http_llmgw_status_handler(ngx_http_request_t *r);
static json_t *ngx_http_llmgw_status_json(ngx_http_llmgw_main_conf_t *lmcf);
static json_t *ngx_http_llmgw_status_pool(ngx_http_llmgw_pool_t *pool);
static json_t *ngx_http_llmgw_status_view(ngx_http_llmgw_pool_t *pool);
static json_t *ngx_http_llmgw_status_queue(ngx_http_llmgw_pool_t *pool);
static json_t *ngx_http_llmgw_status_replica(
    ngx_http_llmgw_replica_t *replica);
static void ngx_http_llmgw_status_slot(json_t *json,
    ngx_http_llmgw_replica_t *replica);
static json_t *ngx_http_llmgw_status_reported(
    ngx_http_llmgw_replica_t *replica);
static const char *ngx_http_llmgw_status_state(const llmgw_member_t *member);
static ngx_int_t ngx_http_llmgw_status_send(ngx_http_request_t *r,
    ngx_str_t *text);


char *
ngx_http_llmgw_status_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    return ngx_http_llmgw_conf_handler(cf, ngx_http_llmgw_status_handler);
}


static ngx_int_t
ngx_http_llmgw_status_handler(ngx_http_request_t *r)
{
    char                        *dump;
    ngx_int_t                    rc;
    ngx_str_t                    text;
    json_t                      *json;
    ngx_http_llmgw_main_conf_t  *lmcf;

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        return NGX_HTTP_NOT_ALLOWED;
    }

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    lmcf = ngx_http_get_module_main_conf(r, ngx_http_llmgw_module);

    json = ngx_http_llmgw_status_json(lmcf);
    dump = json ? json_dumps(json, JSON_COMPACT|JSON_REAL_PRECISION(6))
                : NULL;
    json_decref(json);

    if (dump == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    text.len = ngx_strlen(dump);
    text.data = ngx_pnalloc(r->pool, text.len + 1);

    if (text.data) {
        ngx_memcpy(text.data, dump, text.len);
        text.data[text.len++] = '\n';
    }

    free(dump);

    return text.data ? ngx_http_llmgw_status_send(r, &text)
                     : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


static ngx_int_t
ngx_http_llmgw_status_send(ngx_http_request_t *r, ngx_str_t *text)
{
    ngx_int_t    rc;
    ngx_buf_t   *b;
    ngx_chain_t  out;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = text->len;
    ngx_str_set(&r->headers_out.content_type, "application/json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    rc = ngx_http_send_header(r);
    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->pos = text->data;
    b->last = text->data + text->len;
    b->memory = 1;
    b->last_buf = 1;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


static json_t *
ngx_http_llmgw_status_json(ngx_http_llmgw_main_conf_t *lmcf)
{
    json_t       *pools;
    ngx_queue_t  *q;

    pools = json_array();

    if (lmcf->worker) {
        for (q = ngx_queue_head(&lmcf->worker->pools);
             q != ngx_queue_sentinel(&lmcf->worker->pools);
             q = ngx_queue_next(q))
        {
            json_array_append_new(pools, ngx_http_llmgw_status_pool(
                         ngx_queue_data(q, ngx_http_llmgw_pool_t, queue)));
        }
    }

    return json_pack("{s:s, s:i, s:o}", "version", LLMGW_VERSION,
                     "worker_pid", (int) ngx_pid, "pools", pools);
}


static json_t *
ngx_http_llmgw_status_pool(ngx_http_llmgw_pool_t *pool)
{
    json_t                    *replicas;
    ngx_uint_t                 i;
    json_int_t                 in_flight;
    ngx_http_llmgw_replica_t  *replica;

    ngx_http_llmgw_pool_look(pool);

    ngx_http_llmgw_pool_loads(pool);

    in_flight = 0;
    replicas = json_array();

    for (i = 0; i < pool->table->n; i++) {
        replica = pool->table->replicas[i];

        if (!replica->listed) {
            continue;
        }

        if (replica->slot) {
            in_flight += replica->slot->counts.in_flight;
        }

        json_array_append_new(replicas,
                              ngx_http_llmgw_status_replica(replica));
    }

    return json_pack("{s:s%, s:o, s:I, s:I, s:o, s:o}",
                     "name", pool->conf->name.data, pool->conf->name.len,
                     "view", ngx_http_llmgw_status_view(pool),
                     "streams", (json_int_t) pool->streams,
                     "in_flight", in_flight,
                     "queue", ngx_http_llmgw_status_queue(pool),
                     "replicas", replicas);
}


static json_t *
ngx_http_llmgw_status_queue(ngx_http_llmgw_pool_t *pool)
{
    return json_pack("{s:I, s:I, s:I}",
                     "length", (json_int_t) pool->zone->shared->queue.length,
                     "size", (json_int_t) pool->conf->queue_size,
                     "timeout_ms", (json_int_t) pool->conf->queue_timeout);
}


static json_t *
ngx_http_llmgw_status_view(ngx_http_llmgw_pool_t *pool)
{
    uint64_t  now;

    if (pool->reader == NULL) {
        return json_pack("{s:n, s:n, s:b, s:I, s:b, s:i}", "source", "age_ms",
                         "stale", 0, "generation", (json_int_t) 0,
                         "isolated", 0, "members", 0);
    }

    now = ngx_http_llmgw_monotonic_ms();

    return json_pack("{s:s%, s:o, s:b, s:I, s:b, s:I}",
                     "source", pool->conf->members.data,
                     pool->conf->members.len,
                     "age_ms", pool->generation
                     ? json_integer((json_int_t)
                                    (now - pool->view.heartbeat_ms))
                     : json_null(),
                     "stale", (int) ngx_http_llmgw_pool_is_stale(pool),
                     "generation", (json_int_t) pool->generation,
                     "isolated", pool->view.isolated,
                     "members", (json_int_t) pool->view.n);
}


static json_t *
ngx_http_llmgw_status_replica(ngx_http_llmgw_replica_t *replica)
{
    double           share;
    json_t          *json;
    llmgw_member_t  *m;

    m = &replica->member;
    share = 0;

    if (replica->index != -1 && llmgw_ring_npoints(replica->pool->table->ring))
    {
        share = llmgw_ring_share_ppm(replica->pool->table->ring,
                                     replica->index) / 1000000.0;
    }

    json = json_pack("{s:s%, s:s, s:s, s:s, s:b, s:b, s:s, s:I, s:I, s:o, "
                     "s:f, s:I}",
                     "id", replica->node.str.data, replica->node.str.len,
                     "address", m->grpc,
                     "state", ngx_http_llmgw_status_state(m),
                     "service", llmgw_service_name(m->service),
                     "draining", (int) m->draining,
                     "routable",
                     (int) ngx_http_llmgw_replica_is_routable(replica),
                     "model_version", m->model_version,
                     "weight", (json_int_t) m->weight,
                     "max_capacity", (json_int_t) m->max_capacity,
                     "reported", ngx_http_llmgw_status_reported(replica),
                     "share", share,
                     "sessions", (json_int_t) replica->nsessions);

    if (json && replica->slot) {
        ngx_http_llmgw_status_slot(json, replica);
    }

    return json;
}


/* What all workers know of it together. */

static void
ngx_http_llmgw_status_slot(json_t *json, ngx_http_llmgw_replica_t *replica)
{
    ngx_http_llmgw_slot_t   *slot;
    llmgw_breaker_conf_t    *conf;
    llmgw_breaker_state_t    state;
    llmgw_breaker_counts_t   counts;

    slot = replica->slot;
    conf = &replica->pool->conf->breaker;

    ngx_http_llmgw_zone_lock(replica->pool->zone);

    state = llmgw_breaker_state(&slot->breaker, conf);
    counts = llmgw_breaker_counts(&slot->breaker, conf, ngx_current_msec);

    ngx_http_llmgw_zone_unlock(replica->pool->zone);

    json_object_set_new(json, "in_flight",
                        json_integer(slot->counts.in_flight));
    json_object_set_new(json, "breaker",
                        json_string(llmgw_breaker_state_name(state)));
    json_object_set_new(json, "breaker_failures",
                        json_integer((json_int_t) counts.failed));
    json_object_set_new(json, "breaker_requests",
                        json_integer((json_int_t) counts.total));
}


/* What the replica says itself; null: nothing yet, or a static line. */

static json_t *
ngx_http_llmgw_status_reported(ngx_http_llmgw_replica_t *replica)
{
    llmgw_member_load_t  *load;

    if (replica->is_static) {
        return json_null();
    }

    load = &replica->pool->view.loads[replica->view_index];

    return load->reported_ms ? json_integer(load->active_requests)
                             : json_null();
}


/* One word for operators, as the agent's own listing has it. */

static const char *
ngx_http_llmgw_status_state(const llmgw_member_t *member)
{
    if (member->service == LLMGW_SERVICE_DOWN) {
        return llmgw_liveness_name(LLMGW_LIVENESS_DEAD);
    }

    if (member->service == LLMGW_SERVICE_STOPPED) {
        return llmgw_liveness_name(LLMGW_LIVENESS_LEFT);
    }

    return llmgw_liveness_name(member->liveness);
}
