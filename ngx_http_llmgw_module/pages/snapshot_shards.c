
/*
 * Shards in a snapshot: snapshot.h.  They serve nothing here; the page shows
 * which layers of which model they cover.
 */

#include "pages/snapshot.h"


/* The models of the shards that were copied so far. */
typedef struct {
    uint64_t                      lists[LLMGW_MEMBERS_LISTS];
    const llmgw_shard_model_t    *models[LLMGW_MEMBERS_LISTS];
    ngx_uint_t                    n;
} ngx_http_llmgw_snapshot_models_t;


static const llmgw_shard_model_t *ngx_http_llmgw_snapshot_model(
    ngx_http_llmgw_snapshot_models_t *known, llmgw_members_reader_t *reader,
    uint64_t list, ngx_pool_t *memory);
static const llmgw_shard_model_t *ngx_http_llmgw_snapshot_model_read(
    llmgw_members_reader_t *reader, uint64_t list, ngx_pool_t *memory);


ngx_int_t
ngx_http_llmgw_snapshot_shards(ngx_http_llmgw_snapshot_t *snapshot,
    ngx_pool_t *memory)
{
    size_t                             i, n;
    llmgw_members_view_t              *view;
    ngx_http_llmgw_shard_t            *shard;
    ngx_http_llmgw_snapshot_models_t   known;

    view = &snapshot->pool->view;
    n = 0;

    for (i = 0; i < view->n; i++) {
        n += view->members[i].is_shard;
    }

    if (n == 0) {
        return NGX_OK;
    }

    snapshot->shards = ngx_palloc(memory, n * sizeof(ngx_http_llmgw_shard_t));
    if (snapshot->shards == NULL) {
        return NGX_ERROR;
    }

    known.n = 0;

    for (i = 0; i < view->n; i++) {
        if (!view->members[i].is_shard) {
            continue;
        }

        shard = &snapshot->shards[snapshot->nshards++];
        shard->member = view->members[i];
        shard->load = view->loads[i];
        shard->model = ngx_http_llmgw_snapshot_model(&known,
                           snapshot->pool->reader, shard->member.models,
                           memory);
    }

    return NGX_OK;
}


/* Many shards have one model: its list is read once.  NULL: it is not there. */

static const llmgw_shard_model_t *
ngx_http_llmgw_snapshot_model(ngx_http_llmgw_snapshot_models_t *known,
    llmgw_members_reader_t *reader, uint64_t list, ngx_pool_t *memory)
{
    ngx_uint_t  i;

    if (list == 0) {
        return NULL;
    }

    for (i = 0; i < known->n; i++) {
        if (known->lists[i] == list) {
            return known->models[i];
        }
    }

    /* a segment has no more lists than these */

    if (known->n == LLMGW_MEMBERS_LISTS) {
        return NULL;
    }

    known->lists[known->n] = list;
    known->models[known->n] = ngx_http_llmgw_snapshot_model_read(reader, list,
                                                                 memory);

    return known->models[known->n++];
}


static const llmgw_shard_model_t *
ngx_http_llmgw_snapshot_model_read(llmgw_members_reader_t *reader,
    uint64_t list, ngx_pool_t *memory)
{
    char                  names[LLMGW_MEMBERS_LIST_BYTES];
    size_t                bytes;
    llmgw_shard_model_t  *model;

    model = ngx_palloc(memory, sizeof(llmgw_shard_model_t));

    if (model == NULL
        || llmgw_members_read_list(reader, list, names, &bytes)
           != LLMGW_MEMBERS_DONE
        || llmgw_shard_model_read(model, names, bytes) != 0)
    {
        return NULL;
    }

    return model;
}
