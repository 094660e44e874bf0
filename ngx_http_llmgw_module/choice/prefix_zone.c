
/*
 * The prefix zone: made with the configuration, kept by reloads, matched and
 * written by workers.  prefix_zone.h has its contents and the rules of changing
 * it.
 *
 * Its memory is not touched before it is needed, so unused memory costs
 * nothing.
 */

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "choice/prefix_zone.h"
#include "core/prefix/shared_index.h"


/* To be raised with every change of the zone's layout. */
#define NGX_HTTP_LLMGW_PREFIX_VERSION  1

#define NGX_HTTP_LLMGW_PREFIX_MAGIC    0x78727077676d6c6cULL   /* llmgwprx */


typedef struct {
    uint64_t                      magic;
    uint64_t                      version;
    ngx_uint_t                    block;        /* as in the directive */
    ngx_uint_t                    blocks;
    uint32_t                      nslots;       /* of the upstream's zone */
    uint32_t                      said_short;   /* it was logged */
    llmgw_cold_t                 *cold;         /* of nslots */
    llmgw_prefix_shared_t        *index;        /* for nslots replicas, or the
                                                   index's limit */
} ngx_http_llmgw_prefix_head_t;


/* The prefix zone in a worker. */
struct ngx_http_llmgw_prefix_s {
    ngx_http_llmgw_prefix_head_t *head;
    ngx_slab_pool_t              *shpool;
    ngx_http_llmgw_zone_t        *zone;         /* counts blocks */
    ngx_str_t                     name;
    ngx_log_t                    *log;
    llmgw_cold_t                 *cold;         /* a copy */
    uint64_t                     *scratch;      /* of a match */
    unsigned                      mended:1;     /* to be logged */
    unsigned                      is_short:1;   /* to be logged */
};


static ngx_int_t ngx_http_llmgw_prefix_name(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *lscf, ngx_str_t *name);
static void ngx_http_llmgw_prefix_compare(ngx_conf_t *cf,
    ngx_http_llmgw_srv_conf_t *lscf);
static ngx_uint_t ngx_http_llmgw_prefix_is_same(ngx_shm_zone_t *zone,
    ngx_http_llmgw_index_t *index);
static ngx_int_t ngx_http_llmgw_prefix_init(ngx_shm_zone_t *shm_zone,
    void *data);
static ngx_int_t ngx_http_llmgw_prefix_make(
    ngx_http_llmgw_srv_conf_t *lscf);
static ngx_int_t ngx_http_llmgw_prefix_make_locked(
    ngx_http_llmgw_srv_conf_t *lscf, ngx_slab_pool_t *shpool);
static ngx_int_t ngx_http_llmgw_prefix_carve(
    ngx_http_llmgw_prefix_head_t *head, ngx_slab_pool_t *shpool);
static void ngx_http_llmgw_prefix_lock(ngx_http_llmgw_prefix_t *prefix);
static void ngx_http_llmgw_prefix_unlock(ngx_http_llmgw_prefix_t *prefix);
static void ngx_http_llmgw_prefix_say(ngx_http_llmgw_prefix_t *prefix);


ngx_int_t
ngx_http_llmgw_prefix_add(ngx_conf_t *cf, ngx_http_llmgw_srv_conf_t *lscf)
{
    ngx_str_t        name;
    ngx_shm_zone_t  *shm_zone;

    if (!lscf->reads_prefix) {

        if (lscf->index.set && lscf->number == 0) {
            ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                          "\"llmgw_prefix_index\" is ignored, the policy of "
                          "upstream \"%V\" reads no prefixes, in %s:%ui",
                          &lscf->name, lscf->index.file, lscf->index.line);
        }

        return NGX_OK;
    }

    if (ngx_http_llmgw_prefix_name(cf, lscf, &name) != NGX_OK) {
        return NGX_ERROR;
    }

    shm_zone = ngx_shared_memory_add(cf, &name, lscf->index.size,
                                     &ngx_http_llmgw_module);
    if (shm_zone == NULL) {
        return NGX_ERROR;
    }

    if (shm_zone->init) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "llmgw: zone \"%V\" of upstream \"%V\" is in use by "
                      "another upstream", &name, &lscf->name);
        return NGX_ERROR;
    }

    shm_zone->init = ngx_http_llmgw_prefix_init;
    shm_zone->data = lscf;
    lscf->index.shm_zone = shm_zone;

    ngx_http_llmgw_prefix_compare(cf, lscf);

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_prefix_name(ngx_conf_t *cf, ngx_http_llmgw_srv_conf_t *lscf,
    ngx_str_t *name)
{
    u_char  *p;

    name->data = ngx_pnalloc(cf->pool, lscf->name.len + sizeof("_prefix:")
                                       + NGX_INT_T_LEN);
    if (name->data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_sprintf(name->data, "%V_prefix", &lscf->name);

    if (lscf->number) {
        p = ngx_sprintf(p, ":%ui", lscf->number);
    }

    name->len = p - name->data;

    return NGX_OK;
}


/*
 * The zone is kept only if it was made for the same blocks and the slots are
 * the same, that is, if the upstream's own zone is kept as well.
 */

static void
ngx_http_llmgw_prefix_compare(ngx_conf_t *cf, ngx_http_llmgw_srv_conf_t *lscf)
{
    ngx_uint_t       same_size;
    ngx_shm_zone_t  *old, *shm_zone;

    shm_zone = lscf->index.shm_zone;
    old = ngx_http_llmgw_zone_had(cf->cycle->old_cycle, &shm_zone->shm.name);

    if (old == NULL) {
        return;
    }

    old->noreuse = 0;       /* set by a configuration that failed */
    same_size = ngx_http_llmgw_zone_is_kept(cf, shm_zone);

    if (same_size && ngx_http_llmgw_zone_is_kept(cf, lscf->shm_zone)
        && ngx_http_llmgw_prefix_is_same(old, &lscf->index))
    {
        return;
    }

    if (same_size) {
        /* these flags make nginx create the new zone and free the old one */
        shm_zone->noreuse = 1;
        old->noreuse = 1;
    }

    if (((ngx_slab_pool_t *) old->shm.addr)->data == NULL) {
        return;             /* the zone was not made */
    }

    ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                  "llmgw: zone \"%V\" has other settings, new workers begin "
                  "with an empty prefix index", &shm_zone->shm.name);
}


static ngx_uint_t
ngx_http_llmgw_prefix_is_same(ngx_shm_zone_t *zone,
    ngx_http_llmgw_index_t *index)
{
    ngx_slab_pool_t               *shpool;
    ngx_http_llmgw_prefix_head_t  *head;

    shpool = (ngx_slab_pool_t *) zone->shm.addr;
    head = shpool->data;

    return head && head->magic == NGX_HTTP_LLMGW_PREFIX_MAGIC
           && head->version == NGX_HTTP_LLMGW_PREFIX_VERSION
           && head->block == index->block && head->blocks == index->blocks;
}


/*
 * The pool's own zone was added, and so is made, before this one.  Only the
 * first pool has them from the start; others have neither until a model is
 * bound to them.
 */

static ngx_int_t
ngx_http_llmgw_prefix_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_slab_pool_t            *shpool;
    ngx_http_llmgw_srv_conf_t  *lscf;

    lscf = shm_zone->data;
    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    shm_zone->noreuse = 0;          /* the next configuration may reuse it */

    if (shpool->data || lscf->number) {
        return NGX_OK;
    }

    if (ngx_http_llmgw_prefix_make(lscf) != NGX_OK) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                      "llmgw: zone \"%V\" is too small for the %ui blocks of "
                      "a single replica, in %s:%ui", &shm_zone->shm.name,
                      lscf->index.blocks, lscf->index.file, lscf->index.line);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* As ngx_http_llmgw_zone_make(). */

static ngx_int_t
ngx_http_llmgw_prefix_make(ngx_http_llmgw_srv_conf_t *lscf)
{
    ngx_int_t         rc;
    ngx_slab_pool_t  *shpool;

    shpool = (ngx_slab_pool_t *) lscf->index.shm_zone->shm.addr;
    rc = NGX_OK;

    ngx_shmtx_lock(&shpool->mutex);

    if (shpool->data == NULL) {
        ngx_slab_init(shpool);
        rc = ngx_http_llmgw_prefix_make_locked(lscf, shpool);
    }

    ngx_shmtx_unlock(&shpool->mutex);

    return rc;
}


static ngx_int_t
ngx_http_llmgw_prefix_make_locked(ngx_http_llmgw_srv_conf_t *lscf,
    ngx_slab_pool_t *shpool)
{
    ngx_http_llmgw_prefix_head_t  *head;
    ngx_http_llmgw_zone_shared_t  *shared;

    shared = ((ngx_slab_pool_t *) lscf->shm_zone->shm.addr)->data;
    head = ngx_slab_calloc_locked(shpool,
                                  sizeof(ngx_http_llmgw_prefix_head_t));

    if (head == NULL) {
        return NGX_ERROR;
    }

    head->magic = NGX_HTTP_LLMGW_PREFIX_MAGIC;
    head->version = NGX_HTTP_LLMGW_PREFIX_VERSION;
    head->block = lscf->index.block;
    head->blocks = lscf->index.blocks;
    head->nslots = shared->admission->nslots;

    if (ngx_http_llmgw_prefix_carve(head, shpool) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_memory_barrier();
    shpool->data = head;

    return NGX_OK;
}


/*
 * All that is left goes to the index.  The memory is not cleared, since that
 * would touch it: a new zone is zeroed already.
 */

static ngx_int_t
ngx_http_llmgw_prefix_carve(ngx_http_llmgw_prefix_head_t *head,
    ngx_slab_pool_t *shpool)
{
    char                 *memory;
    size_t                bytes, cold;
    llmgw_prefix_size_t   size;

    bytes = (size_t) shpool->pfree * ngx_pagesize;
    cold = ngx_align(llmgw_cold_bytes(head->nslots), 64);

    size.replicas = ngx_min(head->nslots, LLMGW_PREFIX_MAX_REPLICAS);
    size.blocks = head->blocks;
    size.random = (uint64_t) ngx_random() << 32 ^ (uint64_t) ngx_random();

    if (bytes <= cold
        || llmgw_prefix_shared_fit(&size, bytes - cold) < head->blocks)
    {
        return NGX_ERROR;
    }

    memory = ngx_slab_alloc_locked(shpool, bytes);
    if (memory == NULL) {
        return NGX_ERROR;
    }

    head->cold = llmgw_cold_init(memory, head->nslots);
    head->index = llmgw_prefix_shared_init(memory + cold, &size);

    return NGX_OK;
}


ngx_http_llmgw_prefix_t *
ngx_http_llmgw_prefix_create(ngx_http_llmgw_srv_conf_t *lscf,
    ngx_http_llmgw_zone_t *zone, ngx_log_t *log)
{
    size_t                         words;
    ngx_slab_pool_t               *shpool;
    ngx_http_llmgw_prefix_t       *prefix;
    ngx_http_llmgw_prefix_head_t  *head;

    if (ngx_http_llmgw_prefix_make(lscf) != NGX_OK) {
        return NULL;
    }

    shpool = (ngx_slab_pool_t *) lscf->index.shm_zone->shm.addr;
    head = shpool->data;
    words = llmgw_prefix_scratch(llmgw_prefix_shared_index(head->index));

    prefix = ngx_calloc(sizeof(ngx_http_llmgw_prefix_t)
                        + words * sizeof(uint64_t)
                        + llmgw_cold_bytes(head->nslots), log);
    if (prefix == NULL) {
        return NULL;
    }

    prefix->head = head;
    prefix->shpool = shpool;
    prefix->zone = zone;
    prefix->name = lscf->index.shm_zone->shm.name;
    prefix->log = log;
    prefix->scratch = (uint64_t *) (prefix + 1);
    prefix->cold = llmgw_cold_init(prefix->scratch + words, head->nslots);

    return prefix;
}


void
ngx_http_llmgw_prefix_destroy(ngx_http_llmgw_prefix_t *prefix)
{
    ngx_free(prefix);
}


uint32_t
ngx_http_llmgw_prefix_slots(ngx_http_llmgw_prefix_t *prefix)
{
    return prefix->head->nslots;
}


uint64_t
ngx_http_llmgw_prefix_owner(const void *id, size_t len, uint64_t start_ms)
{
    uint64_t  owner;

    owner = XXH3_64bits_withSeed(id, len, start_ms);

    return owner ? owner : 1;
}


void
ngx_http_llmgw_prefix_match(ngx_http_llmgw_prefix_t *prefix,
    const llmgw_place_t *places, const uint64_t *owners, ngx_uint_t n,
    const uint64_t *blocks, uint32_t nblocks, uint32_t *matched)
{
    uint32_t                slot;
    ngx_uint_t              i;
    llmgw_prefix_shared_t  *index;

    index = prefix->head->index;

    if (!llmgw_prefix_shared_match(index, blocks, nblocks, matched,
                                   prefix->scratch))
    {
        ngx_http_llmgw_prefix_lock(prefix);
        (void) llmgw_prefix_shared_match(index, blocks, nblocks, matched,
                                         prefix->scratch);
        ngx_http_llmgw_prefix_unlock(prefix);
    }

    for (i = 0; i < n; i++) {
        slot = places[i].slot;

        if (slot < prefix->head->nslots
            && (slot >= index->replicas
                || llmgw_prefix_owner(index, slot) != owners[i]))
        {
            matched[slot] = 0;
        }
    }
}


void
ngx_http_llmgw_prefix_record(ngx_http_llmgw_prefix_t *prefix, uint32_t slot,
    uint64_t owner, const uint64_t *blocks, uint32_t nblocks)
{
    uint32_t                       had;
    ngx_http_llmgw_prefix_head_t  *head;

    head = prefix->head;

    if (slot >= head->index->replicas) {
        return;
    }

    ngx_http_llmgw_prefix_lock(prefix);

    if (llmgw_prefix_owner(head->index, slot) != owner) {
        llmgw_cold_forget(head->cold, slot);
    }

    had = llmgw_prefix_shared_record(head->index, slot, owner, blocks,
                                     nblocks);

    if (llmgw_prefix_is_short(llmgw_prefix_shared_index(head->index))
        && !head->said_short)
    {
        head->said_short = 1;
        prefix->is_short = 1;
    }

    ngx_http_llmgw_prefix_unlock(prefix);

    ngx_http_llmgw_metrics_prefix(prefix->zone, had, nblocks - had);
}


llmgw_cold_t *
ngx_http_llmgw_prefix_cold(ngx_http_llmgw_prefix_t *prefix,
    const llmgw_place_t *places, const uint64_t *owners, ngx_uint_t n)
{
    uint32_t                       slot;
    ngx_uint_t                     i;
    ngx_http_llmgw_prefix_head_t  *head;

    head = prefix->head;

    if (!llmgw_cold_copy(head->cold, prefix->cold)) {
        ngx_http_llmgw_prefix_lock(prefix);
        (void) llmgw_cold_copy(head->cold, prefix->cold);
        ngx_http_llmgw_prefix_unlock(prefix);
    }

    for (i = 0; i < n; i++) {
        slot = places[i].slot;

        if (slot < head->index->replicas
            && llmgw_prefix_owner(head->index, slot) != owners[i])
        {
            llmgw_cold_forget(prefix->cold, slot);
        }
    }

    return prefix->cold;
}


void
ngx_http_llmgw_prefix_note_cold(ngx_http_llmgw_prefix_t *prefix,
    const llmgw_candidate_t *candidates, uint32_t n, uint32_t chosen)
{
    ngx_http_llmgw_prefix_lock(prefix);
    llmgw_cold_note(prefix->head->cold, candidates, n, chosen);
    ngx_http_llmgw_prefix_unlock(prefix);
}


static void
ngx_http_llmgw_prefix_lock(ngx_http_llmgw_prefix_t *prefix)
{
    ngx_http_llmgw_prefix_head_t  *head;

    head = prefix->head;

    ngx_shmtx_lock(&prefix->shpool->mutex);

    if (llmgw_prefix_is_torn(head->index)) {
        llmgw_prefix_shared_mend(head->index);
        prefix->mended = 1;
    }

    if (llmgw_cold_is_torn(head->cold)) {
        llmgw_cold_mend(head->cold);
        prefix->mended = 1;
    }
}


static void
ngx_http_llmgw_prefix_unlock(ngx_http_llmgw_prefix_t *prefix)
{
    ngx_shmtx_unlock(&prefix->shpool->mutex);

    if (prefix->mended || prefix->is_short) {
        ngx_http_llmgw_prefix_say(prefix);
    }
}


static void
ngx_http_llmgw_prefix_say(ngx_http_llmgw_prefix_t *prefix)
{
    if (prefix->mended) {
        ngx_log_error(NGX_LOG_NOTICE, prefix->log, 0,
                      "llmgw: a process died while it changed zone \"%V\", the "
                      "prefix index was rebuilt without one replica",
                      &prefix->name);
    }

    if (prefix->is_short) {
        ngx_log_error(NGX_LOG_WARN, prefix->log, 0,
                      "llmgw: zone \"%V\" is too small for %ui blocks of each "
                      "replica, some have fewer", &prefix->name,
                      prefix->head->blocks);
    }

    prefix->mended = 0;
    prefix->is_short = 0;
}
