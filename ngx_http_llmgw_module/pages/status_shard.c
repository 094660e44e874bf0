
/* llmgw_status: a shard, and what it computes. */

#include "pages/status.h"


static json_t *ngx_http_llmgw_status_layers(
    const ngx_http_llmgw_shard_t *shard);


ngx_int_t
ngx_http_llmgw_status_shard(ngx_http_llmgw_snapshot_t *snapshot, ngx_uint_t i,
    json_t **json)
{
    const char                    *cause;
    llmgw_liveness_t               state;
    const llmgw_member_t          *m;
    const ngx_http_llmgw_shard_t  *shard;

    if (i == snapshot->nshards) {
        return NGX_DONE;
    }

    shard = &snapshot->shards[i];
    m = &shard->member;
    state = ngx_http_llmgw_replica_shown(m, &cause);

    *json = json_pack("{s:s, s:s, s:s, s:s?, s:s, s:b, s:b, s:I, s:I, s:o, "
                      "s:o}",
                      "id", m->id,
                      "address", m->grpc,
                      "state", llmgw_liveness_name(state),
                      "cause", cause,
                      "service", llmgw_service_name(m->service),
                      "draining", (int) m->draining,
                      "usable", llmgw_shard_is_usable(m),
                      "sessions", (json_int_t) shard->load.active_requests,
                      "max_sessions", (json_int_t) m->max_capacity,
                      "queue", shard->load.engine.told & LLMGW_ENGINE_WAITING
                      ? json_integer((json_int_t) shard->load.engine.waiting)
                      : json_null(),
                      "computes", ngx_http_llmgw_status_layers(shard));

    return NGX_OK;
}


/* null: it says nothing of itself, or its list is not in the segment. */

static json_t *
ngx_http_llmgw_status_layers(const ngx_http_llmgw_shard_t *shard)
{
    char                        weights[2 * LLMGW_WEIGHTS_ID_BYTES + 1];
    llmgw_shard_t               said;
    const llmgw_shard_model_t  *model;

    model = shard->model;

    if (llmgw_member_shard(&shard->member, &said) != 0 || model == NULL) {
        return json_null();
    }

    llmgw_weights_id_write(model->weights_id, weights);

    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:b, s:s}",
                     "model", model->name,
                     "weights", weights,
                     "numerics", model->numerics,
                     "first", (int) said.first,
                     "last", (int) said.last,
                     "layers", (int) said.layers,
                     "memory", (json_int_t) said.memory_bytes,
                     "loaded", (int) said.is_loaded,
                     "zone", said.zone);
}
