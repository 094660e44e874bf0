
/*
 * The zone as memory: made with the configuration, kept by reloads, carved
 * into the queue's entries and one slot a replica.  zone.h tells what lies
 * where and who may change it.
 */

#include "zone/zone.h"


#define NGX_HTTP_LLMGW_ZONE_UNUSED_MS  30000

/* those who come back to the line are not held to its size */
#define NGX_HTTP_LLMGW_QUEUE_SPARE    256


static ngx_int_t ngx_http_llmgw_zone_init(ngx_shm_zone_t *shm_zone,
    void *data);
static ngx_int_t ngx_http_llmgw_zone_reuse(ngx_shm_zone_t *shm_zone,
    ngx_http_llmgw_srv_conf_t *conf);
static ngx_int_t ngx_http_llmgw_zone_make_queue(
    ngx_http_llmgw_zone_shared_t *shared, ngx_slab_pool_t *shpool,
    ngx_uint_t size);
static ngx_int_t ngx_http_llmgw_zone_carve(
    ngx_http_llmgw_zone_shared_t *shared, ngx_slab_pool_t *shpool,
    ngx_uint_t nrows);
static ngx_uint_t ngx_http_llmgw_zone_rows(ngx_cycle_t *cycle);
static uint32_t ngx_http_llmgw_zone_unused(
    ngx_http_llmgw_zone_shared_t *shared);
static void ngx_http_llmgw_zone_unchain(ngx_http_llmgw_zone_shared_t *shared,
    uint32_t i);


ngx_int_t
ngx_http_llmgw_zone_add(ngx_conf_t *cf, ngx_http_llmgw_srv_conf_t *conf)
{
    ngx_shm_zone_t  *shm_zone;

    shm_zone = ngx_shared_memory_add(cf, &conf->zone_name, conf->zone_size,
                                     &ngx_http_llmgw_module);
    if (shm_zone == NULL) {
        return NGX_ERROR;
    }

    if (shm_zone->init) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "llmgw: zone \"%V\" of upstream \"%V\" is in use by "
                      "another upstream", &conf->zone_name, &conf->name);
        return NGX_ERROR;
    }

    shm_zone->init = ngx_http_llmgw_zone_init;
    shm_zone->data = conf;
    conf->cycle = cf->cycle;
    conf->shm_zone = shm_zone;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_zone_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_slab_pool_t               *shpool;
    ngx_http_llmgw_srv_conf_t     *conf;
    ngx_http_llmgw_zone_shared_t  *shared;

    conf = shm_zone->data;
    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (data || shm_zone->shm.exists) {
        return ngx_http_llmgw_zone_reuse(shm_zone, conf);
    }

    shared = ngx_slab_calloc(shpool, sizeof(ngx_http_llmgw_zone_shared_t));

    if (shared == NULL
        || ngx_http_llmgw_zone_make_queue(shared, shpool, conf->queue_size)
           != NGX_OK
        || ngx_http_llmgw_zone_carve(shared, shpool,
                                     ngx_http_llmgw_zone_rows(conf->cycle))
           != NGX_OK)
    {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                      "llmgw: zone \"%V\" is too small for its queue and a "
                      "single replica", &shm_zone->shm.name);
        return NGX_ERROR;
    }

    shpool->data = shared;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_zone_reuse(ngx_shm_zone_t *shm_zone,
    ngx_http_llmgw_srv_conf_t *conf)
{
    ngx_slab_pool_t               *shpool;
    ngx_http_llmgw_zone_shared_t  *shared;

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    shared = shpool->data;

    if (conf->queue_size
        && shared->queue.capacity
           < conf->queue_size + NGX_HTTP_LLMGW_QUEUE_SPARE)
    {
        ngx_log_error(NGX_LOG_WARN, shm_zone->shm.log, 0,
                      "llmgw: zone \"%V\" was made for a queue of %uD, and "
                      "keeps it until it gets another size or name",
                      &shm_zone->shm.name, shared->queue.capacity);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_zone_make_queue(ngx_http_llmgw_zone_shared_t *shared,
    ngx_slab_pool_t *shpool, ngx_uint_t size)
{
    uint32_t              capacity;
    llmgw_queue_entry_t  *entries;

    if (size == 0) {
        llmgw_queue_init(&shared->queue, NULL, 0);
        return NGX_OK;
    }

    capacity = size + NGX_HTTP_LLMGW_QUEUE_SPARE;

    entries = ngx_slab_calloc(shpool, ngx_max(ngx_pagesize,
                                  capacity * sizeof(llmgw_queue_entry_t)));
    if (entries == NULL) {
        return NGX_ERROR;
    }

    llmgw_queue_init(&shared->queue, entries, capacity);

    return NGX_OK;
}


/*
 * Slots are taken from the slab as one piece, the largest that it has, so
 * that a zone's size alone says how many replicas it holds.
 */

static ngx_int_t
ngx_http_llmgw_zone_carve(ngx_http_llmgw_zone_shared_t *shared,
    ngx_slab_pool_t *shpool, ngx_uint_t nrows)
{
    size_t    bytes;
    uint32_t  i, n;

    shared->nrows = nrows;
    shared->slot_bytes = ngx_align(offsetof(ngx_http_llmgw_slot_t, shares)
                                   + nrows * sizeof(uint32_t), 64);

    shared->rows = ngx_slab_calloc(shpool,
                                   nrows * sizeof(ngx_http_llmgw_row_t));
    shared->counters = ngx_slab_calloc(shpool,
                                 nrows * sizeof(ngx_http_llmgw_counters_t));

    shared->levels = ngx_slab_calloc(shpool,
                                   nrows * sizeof(ngx_http_llmgw_levels_t));

    if (shared->rows == NULL || shared->counters == NULL
        || shared->levels == NULL)
    {
        return NGX_ERROR;
    }

    bytes = (size_t) shpool->pfree * ngx_pagesize;

    for (n = bytes / (shared->slot_bytes + 2 * sizeof(uint32_t)); n; n--) {

        for (shared->nbuckets = 1; shared->nbuckets < n; /* void */ ) {
            shared->nbuckets *= 2;
        }

        bytes = shared->nbuckets * sizeof(uint32_t);

        if ((bytes + ngx_pagesize - 1) / ngx_pagesize
            + ((size_t) n * shared->slot_bytes + ngx_pagesize - 1)
              / ngx_pagesize <= shpool->pfree)
        {
            break;
        }
    }

    if (n == 0) {
        return NGX_ERROR;
    }

    shared->buckets = ngx_slab_alloc(shpool, ngx_max(bytes, ngx_pagesize));
    shared->slots = ngx_slab_calloc(shpool,
                                    ngx_max((size_t) n * shared->slot_bytes,
                                            ngx_pagesize));
    if (shared->buckets == NULL || shared->slots == NULL) {
        return NGX_ERROR;
    }

    shared->nslots = n;

    for (i = 0; i < shared->nbuckets; i++) {
        shared->buckets[i] = NGX_HTTP_LLMGW_NO_SLOT;
    }

    return NGX_OK;
}


/* Old and new workers live side by side over several reloads. */

static ngx_uint_t
ngx_http_llmgw_zone_rows(ngx_cycle_t *cycle)
{
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (ccf->worker_processes == NGX_CONF_UNSET) {
        return 64;
    }

    return ngx_max(64, 4 * ccf->worker_processes);
}


/* NULL, once with an error: no room for another replica. */

ngx_http_llmgw_slot_t *
ngx_http_llmgw_zone_attach(ngx_http_llmgw_zone_t *zone, ngx_str_t *id)
{
    uint32_t                       i, *bucket;
    ngx_http_llmgw_slot_t         *slot;
    ngx_http_llmgw_zone_shared_t  *shared;

    shared = zone->shared;
    bucket = &shared->buckets[ngx_crc32_long(id->data, id->len)
                              & (shared->nbuckets - 1)];

    ngx_shmtx_lock(&zone->shpool->mutex);

    for (i = *bucket; i != NGX_HTTP_LLMGW_NO_SLOT; i = slot->next) {
        slot = ngx_http_llmgw_zone_slot(shared, i);

        if (slot->id_len == id->len
            && ngx_memcmp(slot->id, id->data, id->len) == 0)
        {
            goto done;
        }
    }

    /* the others of this iteration would look through all slots for nothing */

    i = NGX_HTTP_LLMGW_NO_SLOT;

    if (!zone->full || zone->full_ms != ngx_current_msec) {
        i = ngx_http_llmgw_zone_unused(shared);
    }

    if (i == NGX_HTTP_LLMGW_NO_SLOT) {
        ngx_shmtx_unlock(&zone->shpool->mutex);

        zone->full_ms = ngx_current_msec;

        if (!zone->full) {
            zone->full = 1;
            ngx_log_error(NGX_LOG_ERR, zone->log, 0,
                          "llmgw: zone holds %uD replicas, \"%V\" is not "
                          "routed; enlarge llmgw_zone", shared->nslots, id);
        }

        return NULL;
    }

    slot = ngx_http_llmgw_zone_slot(shared, i);

    ngx_memcpy(slot->id, id->data, id->len);
    slot->id_len = id->len;
    slot->next = *bucket;
    *bucket = i;

done:

    slot->stamp = ngx_current_msec;

    ngx_shmtx_unlock(&zone->shpool->mutex);

    return slot;
}


/*
 * Goes on where it last found one: a worker's first view takes a slot a step.
 * The cursor is a hint, so that it may be as old as it likes.
 */

static uint32_t
ngx_http_llmgw_zone_unused(ngx_http_llmgw_zone_shared_t *shared)
{
    uint32_t  i, n, again;

    for (again = 0; again < 2; again++) {
        for (n = 0; n < shared->nslots; n++) {
            i = (shared->cursor + n) % shared->nslots;

            if (ngx_http_llmgw_zone_slot(shared, i)->id_len == 0) {
                shared->cursor = i;
                return i;
            }
        }

        ngx_http_llmgw_zone_forget_locked(shared);
    }

    return NGX_HTTP_LLMGW_NO_SLOT;
}


/*
 * Gives up the slots that no worker has shown for a while: their series end,
 * and what they counted stays in the sums.
 */

void
ngx_http_llmgw_zone_forget_locked(ngx_http_llmgw_zone_shared_t *shared)
{
    ngx_msec_t              horizon;
    uint32_t                i;
    ngx_http_llmgw_slot_t  *slot;

    horizon = ngx_current_msec - NGX_HTTP_LLMGW_ZONE_UNUSED_MS;

    for (i = 0; i < shared->nslots; i++) {
        slot = ngx_http_llmgw_zone_slot(shared, i);

        if (slot->id_len && (ngx_msec_int_t) (slot->stamp - horizon) < 0
            && slot->counts.in_flight == 0)
        {
            ngx_http_llmgw_zone_unchain(shared, i);
        }
    }
}


static void
ngx_http_llmgw_zone_unchain(ngx_http_llmgw_zone_shared_t *shared, uint32_t i)
{
    uint32_t               *link;
    ngx_http_llmgw_slot_t  *slot;

    slot = ngx_http_llmgw_zone_slot(shared, i);
    link = &shared->buckets[ngx_crc32_long(slot->id, slot->id_len)
                            & (shared->nbuckets - 1)];

    while (*link != i) {
        link = &ngx_http_llmgw_zone_slot(shared, *link)->next;
    }

    *link = slot->next;
    shared->tokens_base += slot->tokens;
    shared->attempts_base += slot->attempts;
    shared->failures_base += slot->failures;

    ngx_memzero(slot, shared->slot_bytes);
}
