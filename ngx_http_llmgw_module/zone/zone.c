
/*
 * The zone as memory: made with the configuration, kept by reloads, carved into
 * rows and admission's memory.  zone.h has its layout, and when it may change.
 */

#include "zone/responses.h"
#include "zone/zone.h"


/* requests that come back to the queue are not limited by its size */
#define NGX_HTTP_LLMGW_QUEUE_SPARE    256

/*
 * Flow control that no directive asks for may take one part in this many, so
 * that a reload can turn it on.  In a smaller zone that memory is for replicas.
 */
#define NGX_HTTP_LLMGW_FLOW_SHARE     8


static uint64_t ngx_http_llmgw_zone_layout(void);
static ngx_int_t ngx_http_llmgw_zone_init(ngx_shm_zone_t *shm_zone,
    void *data);
static ngx_int_t ngx_http_llmgw_zone_reuse(ngx_shm_zone_t *shm_zone,
    ngx_http_llmgw_srv_conf_t *conf);
static ngx_int_t ngx_http_llmgw_zone_make_locked(
    ngx_http_llmgw_srv_conf_t *conf, ngx_slab_pool_t *shpool);
static ngx_int_t ngx_http_llmgw_zone_make_rows(
    ngx_http_llmgw_zone_shared_t *shared, ngx_slab_pool_t *shpool,
    ngx_uint_t nrows);
static ngx_int_t ngx_http_llmgw_zone_carve(
    ngx_http_llmgw_zone_shared_t *shared, ngx_slab_pool_t *shpool,
    ngx_uint_t nrows, ngx_http_llmgw_srv_conf_t *conf);
static ngx_uint_t ngx_http_llmgw_zone_rows(ngx_cycle_t *cycle);


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

    ngx_http_llmgw_zone_compare(cf, shm_zone, NGX_HTTP_LLMGW_ZONE_MAGIC,
                                ngx_http_llmgw_zone_layout());

    return NGX_OK;
}


/*
 * The layout of the code compiled here: a zone with another layout is not used.
 */

static uint64_t
ngx_http_llmgw_zone_layout(void)
{
    static const size_t  sizes[] = {
        NGX_HTTP_LLMGW_ZONE_VERSION,
        sizeof(ngx_http_llmgw_zone_shared_t),
        sizeof(ngx_http_llmgw_counters_t),
        sizeof(ngx_http_llmgw_levels_t),
        sizeof(llmgw_cohorts_t),
        sizeof(llmgw_takeovers_t),
        sizeof(llmgw_admission_t),
        sizeof(ngx_http_llmgw_slot_t),
        sizeof(llmgw_queue_entry_t)
    };

    return ngx_http_llmgw_zone_mix(sizes, sizeof(sizes) / sizeof(sizes[0]));
}


uint64_t
ngx_http_llmgw_zone_mix(const size_t *sizes, ngx_uint_t n)
{
    uint64_t    mix;
    ngx_uint_t  i;

    mix = 0;

    for (i = 0; i < n; i++) {
        mix = mix * 1000003 + sizes[i];
    }

    return mix;
}


void
ngx_http_llmgw_zone_compare(ngx_conf_t *cf, ngx_shm_zone_t *shm_zone,
    uint64_t magic, uint64_t layout)
{
    uint64_t         *shared;
    ngx_shm_zone_t   *old;
    ngx_slab_pool_t  *shpool;

    old = ngx_http_llmgw_zone_had(cf->cycle->old_cycle, &shm_zone->shm.name);

    if (old == NULL) {
        return;
    }

    old->noreuse = 0;       /* set by a configuration that failed */
    shpool = (ngx_slab_pool_t *) old->shm.addr;
    shared = shpool->data;

    if (shared == NULL) {
        return;             /* no model was bound to its pool */
    }

    if (ngx_http_llmgw_zone_is_kept(cf, shm_zone)) {

        if (shared[0] == magic && shared[1] == layout) {
            return;
        }

        /* these flags make nginx create the new zone and free the old one */
        shm_zone->noreuse = 1;
        old->noreuse = 1;
    }

    ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                  "llmgw: zone \"%V\" has another %s, new workers count "
                  "from zero", &shm_zone->shm.name,
                  old->shm.size == shm_zone->shm.size ? "layout" : "size");
}


ngx_uint_t
ngx_http_llmgw_zone_is_kept(ngx_conf_t *cf, ngx_shm_zone_t *shm_zone)
{
    ngx_shm_zone_t  *old;

    old = ngx_http_llmgw_zone_had(cf->cycle->old_cycle, &shm_zone->shm.name);

    return old && old->tag == shm_zone->tag && !shm_zone->noreuse
           && old->shm.size == shm_zone->shm.size;
}


ngx_shm_zone_t *
ngx_http_llmgw_zone_had(ngx_cycle_t *old, ngx_str_t *name)
{
    ngx_uint_t        i;
    ngx_shm_zone_t   *zones;
    ngx_list_part_t  *part;

    if (old == NULL || old->shared_memory.part.elts == NULL) {
        return NULL;
    }

    for (part = &old->shared_memory.part; part; part = part->next) {
        zones = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (zones[i].shm.addr && zones[i].shm.name.len == name->len
                && ngx_memcmp(zones[i].shm.name.data, name->data, name->len)
                   == 0)
            {
                return &zones[i];
            }
        }
    }

    return NULL;
}


/*
 * Makes the zone of the first pool.  The others' are made when a model is bound
 * to them, by the first worker that claims a row: until then they take no
 * memory.
 */

static ngx_int_t
ngx_http_llmgw_zone_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_slab_pool_t            *shpool;
    ngx_http_llmgw_srv_conf_t  *conf;

    conf = shm_zone->data;
    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    shm_zone->noreuse = 0;          /* the next configuration may reuse it */

    if (shpool->data) {
        return ngx_http_llmgw_zone_reuse(shm_zone, conf);
    }

    if (conf->number) {
        return NGX_OK;
    }

    if (ngx_http_llmgw_zone_make(shm_zone) != NGX_OK) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                      "llmgw: zone \"%V\" is too small for its queue and a "
                      "single replica, enlarge \"llmgw_zone\" of upstream "
                      "\"%V\"", &shm_zone->shm.name, &conf->name);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * A worker that is killed here leaves a zone without data: the next one begins
 * anew.
 */

ngx_int_t
ngx_http_llmgw_zone_make(ngx_shm_zone_t *shm_zone)
{
    ngx_int_t         rc;
    ngx_slab_pool_t  *shpool;

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    rc = NGX_OK;

    ngx_shmtx_lock(&shpool->mutex);

    if (shpool->data == NULL) {
        ngx_slab_init(shpool);
        rc = ngx_http_llmgw_zone_make_locked(shm_zone->data, shpool);
    }

    ngx_shmtx_unlock(&shpool->mutex);

    return rc;
}


static ngx_int_t
ngx_http_llmgw_zone_make_locked(ngx_http_llmgw_srv_conf_t *conf,
    ngx_slab_pool_t *shpool)
{
    ngx_uint_t                     nrows;
    ngx_http_llmgw_zone_shared_t  *shared;

    nrows = ngx_http_llmgw_zone_rows(conf->cycle);
    shared = ngx_slab_calloc_locked(shpool,
                                    sizeof(ngx_http_llmgw_zone_shared_t));

    if (shared) {
        ngx_http_llmgw_responses_make_locked(shared, shpool, conf->zone_size);
    }

    if (shared == NULL
        || ngx_http_llmgw_zone_make_rows(shared, shpool, nrows) != NGX_OK
        || ngx_http_llmgw_zone_carve(shared, shpool, nrows, conf) != NGX_OK)
    {
        return NGX_ERROR;
    }

    (void) llmgw_admission_order(shared->admission,
                                 ngx_http_llmgw_conf_flow(conf));

    shared->magic = NGX_HTTP_LLMGW_ZONE_MAGIC;
    shared->layout = ngx_http_llmgw_zone_layout();

    ngx_memory_barrier();
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
    conf->zone_number = ++shared->made;

    if (conf->queue_size
        && shared->admission->queue.capacity
           < conf->queue_size + NGX_HTTP_LLMGW_QUEUE_SPARE)
    {
        ngx_log_error(NGX_LOG_WARN, shm_zone->shm.log, 0,
                      "llmgw: zone \"%V\" was made for a queue of %uD, and "
                      "keeps it until it gets another size or name",
                      &shm_zone->shm.name, shared->admission->queue.capacity);
    }

    if (ngx_http_llmgw_conf_flow(conf)
        && shared->admission->queue.flow == NULL)
    {
        ngx_log_error(NGX_LOG_WARN, shm_zone->shm.log, 0,
                      "llmgw: zone \"%V\" was made without flow control, its "
                      "queue stays first come, first served until it gets "
                      "another size or name", &shm_zone->shm.name);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_zone_make_rows(ngx_http_llmgw_zone_shared_t *shared,
    ngx_slab_pool_t *shpool, ngx_uint_t nrows)
{
    void  *cohorts;

    shared->rows = ngx_slab_calloc_locked(shpool,
                                 nrows * sizeof(ngx_http_llmgw_row_t));
    shared->counters = ngx_slab_calloc_locked(shpool,
                                 nrows * sizeof(ngx_http_llmgw_counters_t));
    shared->levels = ngx_slab_calloc_locked(shpool,
                                 nrows * sizeof(ngx_http_llmgw_levels_t));
    cohorts = ngx_slab_calloc_locked(shpool, llmgw_cohorts_bytes(nrows));
    shared->takeovers = ngx_slab_calloc_locked(shpool,
                                               sizeof(llmgw_takeovers_t));

    if (shared->rows == NULL || shared->counters == NULL
        || shared->levels == NULL || cohorts == NULL
        || shared->takeovers == NULL)
    {
        return NGX_ERROR;
    }

    shared->cohorts = llmgw_cohorts_init(cohorts, nrows);

    return NGX_OK;
}


/*
 * Admission gets all that is left as one piece, so that a zone's size alone
 * determines how many replicas it holds.
 */

static ngx_int_t
ngx_http_llmgw_zone_carve(ngx_http_llmgw_zone_shared_t *shared,
    ngx_slab_pool_t *shpool, ngx_uint_t nrows, ngx_http_llmgw_srv_conf_t *conf)
{
    void                    *memory;
    size_t                   bytes;
    llmgw_admission_size_t   size;

    size.nrows = nrows;
    size.slot_bytes = ngx_align(sizeof(ngx_http_llmgw_slot_t), 64);
    size.queue_capacity = conf->queue_size
                          ? conf->queue_size + NGX_HTTP_LLMGW_QUEUE_SPARE : 0;

    bytes = (size_t) shpool->pfree * ngx_pagesize;
    size.without_flow = ngx_http_llmgw_conf_flow(conf) == NULL
                        && llmgw_flow_bytes(size.queue_capacity)
                           > bytes / NGX_HTTP_LLMGW_FLOW_SHARE;

    for (size.nslots = bytes / (size.slot_bytes + nrows * sizeof(uint32_t));
         size.nslots && llmgw_admission_bytes(&size) > bytes;
         size.nslots--)
    {
        /* void */
    }

    memory = size.nslots ? ngx_slab_calloc_locked(shpool, bytes) : NULL;

    if (memory == NULL) {
        return NGX_ERROR;
    }

    shared->admission = llmgw_admission_init(memory, &size);

    return NGX_OK;
}


/* Old and new workers run side by side over several reloads. */

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


ngx_http_llmgw_slot_t *
ngx_http_llmgw_zone_attach(ngx_http_llmgw_zone_t *zone, ngx_str_t *id,
    llmgw_place_t *place)
{
    llmgw_admission_t  *shared;

    shared = zone->self.shared;

    ngx_http_llmgw_zone_lock(zone);

    place->slot = llmgw_slots_attach(shared, (char *) id->data, id->len,
                                     ngx_current_msec);

    /* the others of this iteration would look through all slots for nothing */

    if (place->slot == LLMGW_NO_SLOT
        && (!zone->full || zone->full_ms != ngx_current_msec))
    {
        ngx_http_llmgw_zone_forget_locked(zone);
        place->slot = llmgw_slots_attach(shared, (char *) id->data, id->len,
                                         ngx_current_msec);
    }

    if (place->slot != LLMGW_NO_SLOT) {
        place->generation = llmgw_slot(shared, place->slot)->generation;
    }

    ngx_http_llmgw_zone_unlock(zone);

    if (place->slot != LLMGW_NO_SLOT) {
        return ngx_http_llmgw_zone_slot(zone->shared, place->slot);
    }

    zone->full_ms = ngx_current_msec;

    if (!zone->full) {
        zone->full = 1;
        ngx_log_error(NGX_LOG_ERR, zone->log, 0,
                      "llmgw: zone holds %uD replicas, \"%V\" is not "
                      "routed; enlarge llmgw_zone", shared->nslots, id);
    }

    return NULL;
}


/*
 * The series of these slots end, and their counts stay in the sums: each word
 * moves by itself, so that if this worker is killed meanwhile at most one word
 * counts twice.
 */

void
ngx_http_llmgw_zone_forget_locked(ngx_http_llmgw_zone_t *zone)
{
    uint32_t                       i;
    ngx_http_llmgw_slot_t         *slot;
    ngx_http_llmgw_zone_shared_t  *shared;

    shared = zone->shared;

    for (i = llmgw_slots_unused(shared->admission, 0, ngx_current_msec);
         i != LLMGW_NO_SLOT;
         i = llmgw_slots_unused(shared->admission, i + 1, ngx_current_msec))
    {
        slot = ngx_http_llmgw_zone_slot(shared, i);

        (void) ngx_atomic_fetch_add(&shared->tokens_base, slot->tokens);
        slot->tokens = 0;
        shared->attempts_base += slot->attempts;
        slot->attempts = 0;
        shared->failures_base += slot->failures;
        slot->failures = 0;
        shared->denials_base += slot->denials;
        slot->denials = 0;

        ngx_memzero((u_char *) slot + sizeof(llmgw_slot_t),
                    sizeof(ngx_http_llmgw_slot_t) - sizeof(llmgw_slot_t));

        llmgw_slots_free(shared->admission, i);
    }
}


/* Mends the zone: the last holder of the lock died while it held it. */

void
ngx_http_llmgw_zone_mend_locked(ngx_http_llmgw_zone_t *zone)
{
    llmgw_admission_mend(zone->self.shared);

    zone->mended = 1;
}


void
ngx_http_llmgw_zone_log_mended(ngx_http_llmgw_zone_t *zone)
{
    zone->mended = 0;

    ngx_log_error(NGX_LOG_NOTICE, zone->log, 0,
                  "llmgw: a process died while it changed zone \"%V\", totals "
                  "and queue were rebuilt",
                  &zone->name);
}
