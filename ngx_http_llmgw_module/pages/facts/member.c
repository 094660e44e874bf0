
/* Members that are no replicas: gateways and shards.  They have no metrics. */

#include "pages/facts/snapshot.h"


static void
ngx_http_llmgw_member_facts(ngx_http_llmgw_writer_t *w,
    const llmgw_member_t *m, const char *address)
{
    const char        *cause;
    llmgw_liveness_t   state;

    state = ngx_http_llmgw_replica_shown(m, &cause);

    STATUS("id", TEXT(m->id));
    STATUS("address", TEXT(address));
    STATUS("state", TEXT(llmgw_liveness_name(state)));
    STATUS("cause", TEXT(cause));
}


static ngx_int_t
ngx_http_llmgw_gateway_walk(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_snapshot_t *snapshot, ngx_uint_t i)
{
    const llmgw_member_t  *m;

    if (i == snapshot->nothers) {
        return NGX_DONE;
    }

    m = &snapshot->others[i].member;

    if (!m->is_shard && w->item(w, NULL, NGX_HTTP_LLMGW_ON_STATUS)) {
        ngx_http_llmgw_member_facts(w, m, m->address);
    }

    return NGX_OK;
}


/*
 * A shard may report nothing about itself, or its list may not be in the
 * segment.
 */

static void
ngx_http_llmgw_shard_layers(ngx_http_llmgw_writer_t *w,
    const llmgw_member_t *m, const llmgw_shard_model_t *model)
{
    char           weights[2 * LLMGW_WEIGHTS_ID_BYTES + 1];
    llmgw_shard_t  layers;

    if (model == NULL || llmgw_member_shard(m, &layers) != 0) {
        NOTHING("computes");
        return;
    }

    llmgw_weights_id_write(model->weights_id, weights);

    OBJECT("computes");
    STATUS("model", TEXT(model->name));
    STATUS("weights", TEXT(weights));
    STATUS("numerics", TEXT(model->numerics));
    STATUS("first", NUMBER(layers.first));
    STATUS("last", NUMBER(layers.last));
    STATUS("layers", NUMBER(layers.layers));
    STATUS("memory", NUMBER(layers.memory_bytes));
    STATUS("loaded", FLAG(layers.is_loaded));
    STATUS("zone", TEXT(layers.zone));
    END_OBJECT;
}


static ngx_int_t
ngx_http_llmgw_shard_walk(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_snapshot_t *snapshot, ngx_uint_t i)
{
    const llmgw_member_t          *m;
    const llmgw_member_load_t     *load;
    const ngx_http_llmgw_other_t  *other;

    if (i == snapshot->nothers) {
        return NGX_DONE;
    }

    other = &snapshot->others[i];
    m = &other->member;
    load = &other->load;

    if (!m->is_shard || !w->item(w, NULL, NGX_HTTP_LLMGW_ON_STATUS)) {
        return NGX_OK;
    }

    ngx_http_llmgw_member_facts(w, m, m->grpc);
    STATUS("service", TEXT(llmgw_service_name(m->service)));
    STATUS("draining", FLAG(m->draining));
    STATUS("usable", FLAG(llmgw_shard_is_usable(m)));
    STATUS("sessions", NUMBER(load->active_requests));
    STATUS("max_sessions", NUMBER(m->max_capacity));
    STATUS("queue", NUMBER(load->engine.reported & LLMGW_ENGINE_WAITING
                           ? load->engine.waiting : NGX_HTTP_LLMGW_ABSENT));
    ngx_http_llmgw_shard_layers(w, m, other->model);

    return NGX_OK;
}


const ngx_http_llmgw_scope_t  ngx_http_llmgw_scope_gateway = {
    .key = "gateways", .walk = ngx_http_llmgw_gateway_walk
};

const ngx_http_llmgw_scope_t  ngx_http_llmgw_scope_shard = {
    .key = "shards", .walk = ngx_http_llmgw_shard_walk
};
