
/*
 * The shared zone: what all workers count together.
 *
 *   header | rows[nrows] | buckets[nbuckets] | slots[nslots]
 *
 * A *slot* is a replica's: its id, the total of attempts in flight, and one
 * share of that total for each row.  A *row* is a worker process's, claimed
 * by pid and start time.  Total and share always change together, under the
 * zone's slab mutex, which nginx's master unlocks when its holder dies; so a
 * worker that is killed leaves behind exactly its shares, and whoever sweeps
 * next takes them off the totals.  Nothing here is ever reset by a guess.
 *
 * Slots are found by a hash of the id and chained.  A worker that shows a
 * replica stamps its slot every second.  When no slot is left, one is taken
 * that nobody has stamped for a while and nobody counts in: stamps cannot
 * leak as reference counts would.
 *
 * A reload with the same name and size keeps all of it; old and new workers
 * count in the same totals.
 */

#include "ngx_http_llmgw.h"


#define NGX_HTTP_LLMGW_ZONE_MAGIC    0x6c6c6d677a303031ull    /* "llmgz001" */
#define NGX_HTTP_LLMGW_ZONE_UNUSED_S 10
#define NGX_HTTP_LLMGW_NO_ROW        NGX_MAX_UINT32_VALUE
#define NGX_HTTP_LLMGW_NO_SLOT       NGX_MAX_UINT32_VALUE


typedef struct {
    ngx_pid_t                     pid;          /* 0: free */
    uint64_t                      started;      /* clock ticks since boot */
} ngx_http_llmgw_row_t;


struct ngx_http_llmgw_slot_s {
    u_char                        id[LLMGW_MEMBERS_ADDRESS_BYTES];
    uint32_t                      id_len;       /* 0: free */
    uint32_t                      next;         /* in its bucket */
    time_t                        stamp;
    llmgw_peer_counts_t           counts;
    uint32_t                      shares[1];    /* of nrows */
};


typedef struct {
    uint64_t                      magic;
    uint32_t                      nrows;
    uint32_t                      nbuckets;     /* a power of two */
    uint32_t                      nslots;
    uint32_t                      slot_bytes;
    ngx_http_llmgw_row_t         *rows;
    uint32_t                     *buckets;
    u_char                       *slots;
} ngx_http_llmgw_zone_shared_t;


/* In the process: which zone, and which row of it is ours. */
struct ngx_http_llmgw_zone_s {
    ngx_http_llmgw_zone_shared_t *shared;
    ngx_slab_pool_t              *shpool;
    ngx_log_t                    *log;
    uint32_t                      row;
    unsigned                      full:1;       /* said so in the log */
};


static ngx_int_t ngx_http_llmgw_zone_init(ngx_shm_zone_t *shm_zone,
    void *data);
static ngx_int_t ngx_http_llmgw_zone_carve(
    ngx_http_llmgw_zone_shared_t *shared, ngx_slab_pool_t *shpool,
    ngx_uint_t nrows);
static ngx_uint_t ngx_http_llmgw_zone_rows(ngx_cycle_t *cycle);
static void ngx_http_llmgw_zone_sweep_locked(
    ngx_http_llmgw_zone_shared_t *shared);
static void ngx_http_llmgw_zone_take_back(
    ngx_http_llmgw_zone_shared_t *shared, uint32_t row);
static uint64_t ngx_http_llmgw_zone_started(ngx_pid_t pid);
static ngx_http_llmgw_slot_t *ngx_http_llmgw_zone_slot(
    ngx_http_llmgw_zone_shared_t *shared, uint32_t i);
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
    shm_zone->data = cf->cycle;
    conf->shm_zone = shm_zone;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_zone_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_cycle_t                   *cycle;
    ngx_slab_pool_t               *shpool;
    ngx_http_llmgw_zone_shared_t  *shared;

    cycle = shm_zone->data;
    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (data || shm_zone->shm.exists) {
        shm_zone->data = shpool->data;
        return NGX_OK;
    }

    shared = ngx_slab_calloc(shpool, sizeof(ngx_http_llmgw_zone_shared_t));
    if (shared == NULL
        || ngx_http_llmgw_zone_carve(shared, shpool,
                                     ngx_http_llmgw_zone_rows(cycle))
           != NGX_OK)
    {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                      "llmgw: zone \"%V\" is too small for a single replica",
                      &shm_zone->shm.name);
        return NGX_ERROR;
    }

    shared->magic = NGX_HTTP_LLMGW_ZONE_MAGIC;
    shpool->data = shared;
    shm_zone->data = shared;

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
    if (shared->rows == NULL) {
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


ngx_http_llmgw_zone_t *
ngx_http_llmgw_zone_claim(ngx_shm_zone_t *shm_zone, ngx_log_t *log)
{
    uint32_t                       i;
    ngx_http_llmgw_zone_t         *zone;
    ngx_http_llmgw_zone_shared_t  *shared;

    zone = ngx_calloc(sizeof(ngx_http_llmgw_zone_t), log);
    if (zone == NULL) {
        return NULL;
    }

    shared = shm_zone->data;

    zone->shared = shared;
    zone->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    zone->log = log;
    zone->row = NGX_HTTP_LLMGW_NO_ROW;

    ngx_shmtx_lock(&zone->shpool->mutex);

    ngx_http_llmgw_zone_sweep_locked(shared);

    for (i = 0; i < shared->nrows; i++) {
        if (shared->rows[i].pid == 0) {
            shared->rows[i].pid = ngx_pid;
            shared->rows[i].started = ngx_http_llmgw_zone_started(ngx_pid);
            zone->row = i;
            break;
        }
    }

    ngx_shmtx_unlock(&zone->shpool->mutex);

    if (zone->row == NGX_HTTP_LLMGW_NO_ROW) {
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "llmgw: zone \"%V\" has no row left of %uD, this worker "
                      "counts for itself alone", &shm_zone->shm.name,
                      shared->nrows);
    }

    return zone;
}


/* An orderly end: shares go with the worker, at once. */

void
ngx_http_llmgw_zone_yield(ngx_http_llmgw_zone_t *zone)
{
    if (zone->row != NGX_HTTP_LLMGW_NO_ROW) {
        ngx_shmtx_lock(&zone->shpool->mutex);
        ngx_http_llmgw_zone_take_back(zone->shared, zone->row);
        ngx_shmtx_unlock(&zone->shpool->mutex);
    }

    ngx_free(zone);
}


void
ngx_http_llmgw_zone_sweep(ngx_http_llmgw_zone_t *zone)
{
    ngx_shmtx_lock(&zone->shpool->mutex);
    ngx_http_llmgw_zone_sweep_locked(zone->shared);
    ngx_shmtx_unlock(&zone->shpool->mutex);
}


static void
ngx_http_llmgw_zone_sweep_locked(ngx_http_llmgw_zone_shared_t *shared)
{
    uint32_t               i;
    ngx_http_llmgw_row_t  *row;

    for (i = 0; i < shared->nrows; i++) {
        row = &shared->rows[i];

        if (row->pid == 0 || row->pid == ngx_pid) {
            continue;
        }

        if (ngx_http_llmgw_zone_started(row->pid) != row->started) {
            ngx_http_llmgw_zone_take_back(shared, i);
        }
    }
}


static void
ngx_http_llmgw_zone_take_back(ngx_http_llmgw_zone_shared_t *shared,
    uint32_t row)
{
    uint32_t                i;
    ngx_http_llmgw_slot_t  *slot;

    for (i = 0; i < shared->nslots; i++) {
        slot = ngx_http_llmgw_zone_slot(shared, i);
        slot->counts.in_flight -= slot->shares[row];
        slot->shares[row] = 0;
    }

    shared->rows[row].pid = 0;
}


/*
 * When the process began, in clock ticks since boot: field 22 of its stat,
 * counted behind the name, which may hold anything.  A pid alone may have
 * been given to another process meanwhile.  0: there is no such process.
 */

static uint64_t
ngx_http_llmgw_zone_started(ngx_pid_t pid)
{
    char        *p, buf[1024];
    ssize_t      n;
    ngx_fd_t     fd;
    ngx_uint_t   field;
    u_char       path[sizeof("/proc//stat") + NGX_INT64_LEN];

    ngx_sprintf(path, "/proc/%P/stat%Z", pid);

    fd = open((char *) path, O_RDONLY|O_CLOEXEC);
    if (fd == -1) {
        return 0;
    }

    n = read(fd, buf, sizeof(buf) - 1);
    (void) close(fd);

    if (n <= 0) {
        return 0;
    }

    buf[n] = '\0';
    p = strrchr(buf, ')');

    for (field = 2; p && field < 22; field++) {
        p = strchr(p + 1, ' ');
    }

    return p ? strtoull(p, NULL, 10) : 0;
}


static ngx_http_llmgw_slot_t *
ngx_http_llmgw_zone_slot(ngx_http_llmgw_zone_shared_t *shared, uint32_t i)
{
    return (ngx_http_llmgw_slot_t *)
               (shared->slots + (size_t) i * shared->slot_bytes);
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

    i = ngx_http_llmgw_zone_unused(shared);

    if (i == NGX_HTTP_LLMGW_NO_SLOT) {
        ngx_shmtx_unlock(&zone->shpool->mutex);

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

    slot->stamp = ngx_time();

    ngx_shmtx_unlock(&zone->shpool->mutex);

    return slot;
}


static uint32_t
ngx_http_llmgw_zone_unused(ngx_http_llmgw_zone_shared_t *shared)
{
    time_t                  horizon;
    uint32_t                i;
    ngx_http_llmgw_slot_t  *slot;

    horizon = ngx_time() - NGX_HTTP_LLMGW_ZONE_UNUSED_S;

    for (i = 0; i < shared->nslots; i++) {
        slot = ngx_http_llmgw_zone_slot(shared, i);

        if (slot->id_len == 0) {
            return i;
        }
    }

    for (i = 0; i < shared->nslots; i++) {
        slot = ngx_http_llmgw_zone_slot(shared, i);

        if (slot->stamp < horizon && slot->counts.in_flight == 0) {
            ngx_http_llmgw_zone_unchain(shared, i);
            return i;
        }
    }

    return NGX_HTTP_LLMGW_NO_SLOT;
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
    slot->id_len = 0;
}


void
ngx_http_llmgw_zone_stamp(ngx_http_llmgw_slot_t *slot)
{
    slot->stamp = ngx_time();
}


void
ngx_http_llmgw_zone_lock(ngx_http_llmgw_zone_t *zone)
{
    ngx_shmtx_lock(&zone->shpool->mutex);
}


void
ngx_http_llmgw_zone_unlock(ngx_http_llmgw_zone_t *zone)
{
    ngx_shmtx_unlock(&zone->shpool->mutex);
}


/*
 * A worker without a row counts nothing: what it would add, nobody could take
 * back after its death.
 */

void
ngx_http_llmgw_zone_reserve_locked(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_slot_t *slot)
{
    if (zone->row != NGX_HTTP_LLMGW_NO_ROW) {
        slot->counts.in_flight++;
        slot->shares[zone->row]++;
    }
}


void
ngx_http_llmgw_zone_release(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_slot_t *slot)
{
    if (zone->row == NGX_HTTP_LLMGW_NO_ROW) {
        return;
    }

    ngx_shmtx_lock(&zone->shpool->mutex);

    slot->counts.in_flight--;
    slot->shares[zone->row]--;

    ngx_shmtx_unlock(&zone->shpool->mutex);
}


llmgw_peer_counts_t *
ngx_http_llmgw_zone_counts(ngx_http_llmgw_slot_t *slot)
{
    return &slot->counts;
}
