
/* Snapshots of the pools: snapshot.h. */

#include "pages/snapshot.h"


static ngx_int_t ngx_http_llmgw_picture_pool(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_picture_t *picture, ngx_pool_t *memory);
static ngx_int_t ngx_http_llmgw_picture_gateways(
    ngx_http_llmgw_picture_t *picture, ngx_pool_t *memory);
static void ngx_http_llmgw_picture_sum(ngx_http_llmgw_picture_t *picture);


ngx_array_t *
ngx_http_llmgw_picture_take(ngx_http_request_t *r)
{
    ngx_array_t                 *pictures;
    ngx_queue_t                 *q;
    ngx_http_llmgw_picture_t    *picture;
    ngx_http_llmgw_worker_t     *worker;
    ngx_http_llmgw_main_conf_t  *lmcf;

    lmcf = ngx_http_get_module_main_conf(r, ngx_http_llmgw_module);
    worker = lmcf->worker;

    pictures = ngx_array_create(r->pool, 1, sizeof(ngx_http_llmgw_picture_t));
    if (pictures == NULL || worker == NULL) {
        return pictures;
    }

    for (q = ngx_queue_head(&worker->pools);
         q != ngx_queue_sentinel(&worker->pools);
         q = ngx_queue_next(q))
    {
        picture = ngx_array_push(pictures);

        if (picture == NULL
            || ngx_http_llmgw_picture_pool(
                   ngx_queue_data(q, ngx_http_llmgw_pool_t, queue),
                   picture, r->pool)
               != NGX_OK)
        {
            ngx_http_llmgw_picture_release(pictures);
            return NULL;
        }
    }

    return pictures;
}


static ngx_int_t
ngx_http_llmgw_picture_pool(ngx_http_llmgw_pool_t *pool,
    ngx_http_llmgw_picture_t *picture, ngx_pool_t *memory)
{
    ngx_uint_t                 i;
    ngx_http_llmgw_table_t    *table;
    ngx_http_llmgw_replica_t  *replica;

    ngx_http_llmgw_pool_look(pool);
    ngx_http_llmgw_pool_loads(pool);

    table = pool->table;

    ngx_memzero(picture, sizeof(ngx_http_llmgw_picture_t));
    picture->pool = pool;
    picture->replicas = ngx_palloc(memory, (table->n + 1) * sizeof(void *));

    if (picture->replicas == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < table->n; i++) {
        replica = table->replicas[i];

        if (replica->listed) {
            replica->holders++;
            picture->replicas[picture->n++] = replica;
        }
    }

    ngx_http_llmgw_picture_sum(picture);

    return ngx_http_llmgw_picture_gateways(picture, memory);
}


/* The view may be another one by the next slice. */

static ngx_int_t
ngx_http_llmgw_picture_gateways(ngx_http_llmgw_picture_t *picture,
    ngx_pool_t *memory)
{
    size_t                 i, n;
    llmgw_members_view_t  *view;

    view = &picture->pool->view;
    n = 0;

    for (i = 0; i < view->n; i++) {
        n += (view->members[i].role == LLMGW_ROLE_GATEWAY);
    }

    picture->gateways = ngx_palloc(memory, (n + 1) * sizeof(llmgw_member_t));
    if (picture->gateways == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < view->n; i++) {
        if (view->members[i].role == LLMGW_ROLE_GATEWAY) {
            picture->gateways[picture->ngateways++] = view->members[i];
        }
    }

    return NGX_OK;
}


/* All rows and the base, under the lock that moves the one to the other. */

static void
ngx_http_llmgw_picture_sum(ngx_http_llmgw_picture_t *picture)
{
    uint32_t                       i;
    ngx_http_llmgw_zone_t         *zone;
    ngx_http_llmgw_zone_shared_t  *shared;

    zone = picture->pool->zone;
    shared = zone->shared;

    ngx_http_llmgw_zone_lock(zone);

    picture->sum = shared->base;

    for (i = 0; i < shared->nrows; i++) {
        if (shared->rows[i].pid) {
            ngx_http_llmgw_metrics_add(&picture->sum, &shared->counters[i], 0);
            picture->levels.streams += shared->levels[i].streams;
            picture->levels.sessions += shared->levels[i].sessions;
        }
    }

    ngx_http_llmgw_zone_unlock(zone);
}


void
ngx_http_llmgw_picture_release(ngx_array_t *pictures)
{
    ngx_uint_t                 i, k;
    ngx_http_llmgw_picture_t  *picture;

    if (pictures == NULL) {
        return;
    }

    picture = pictures->elts;

    for (i = 0; i < pictures->nelts; i++) {
        for (k = 0; k < picture[i].n; k++) {
            picture[i].replicas[k]->holders--;
        }

        picture[i].n = 0;
    }
}
