
/*
 * The zone of a key file: accounts in shared memory, for all workers, kept over
 * reloads.
 *
 *   shared | accounts (core/accounts/accounts.h)
 *
 * The lock is the zone's slab mutex, which nginx's master unlocks when its
 * holder dies; the next holder then undoes the change that was left half done.
 * While it is held there are no system calls and no log.
 *
 * Limits carry the version of the file's content that has them.  Each worker
 * reads the file by itself: the first to read a content gives it a number, and
 * the others find the same content with it.
 */

#include "keys/keys.h"
#include "zone/zone.h"


#define NGX_HTTP_LLMGW_KEYS_VERSION  1
#define NGX_HTTP_LLMGW_KEYS_MAGIC    0x7379656b77676d6cULL   /* lmgwkeys */


static ngx_int_t ngx_http_llmgw_keys_zone_init(ngx_shm_zone_t *shm_zone,
    void *data);
static ngx_int_t ngx_http_llmgw_keys_zone_make(ngx_http_llmgw_keys_t *keys,
    ngx_slab_pool_t *shpool, ngx_log_t *log);
static uint64_t ngx_http_llmgw_keys_zone_layout(void);


/* The tag of zones of keys. */
static const char  ngx_http_llmgw_keys_tag[] = "llmgw_keys";


ngx_int_t
ngx_http_llmgw_keys_zone_add(ngx_conf_t *cf, ngx_http_llmgw_keys_t *keys)
{
    ngx_shm_zone_t  *shm_zone;

    shm_zone = ngx_shared_memory_add(cf, &keys->zone_name, keys->zone_size,
                                     (void *) ngx_http_llmgw_keys_tag);
    if (shm_zone == NULL) {
        return NGX_ERROR;
    }

    shm_zone->init = ngx_http_llmgw_keys_zone_init;
    shm_zone->data = keys;
    keys->shm_zone = shm_zone;

    ngx_http_llmgw_zone_compare(cf, shm_zone, NGX_HTTP_LLMGW_KEYS_MAGIC,
                                ngx_http_llmgw_keys_zone_layout());

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_keys_zone_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_slab_pool_t        *shpool;
    ngx_http_llmgw_keys_t  *keys;

    keys = shm_zone->data;
    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    shm_zone->noreuse = 0;          /* the next configuration may reuse it */

    if (shpool->data == NULL
        && ngx_http_llmgw_keys_zone_make(keys, shpool, shm_zone->shm.log)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    (void) ngx_http_llmgw_keys_publish(keys, keys->set);

    return ngx_http_llmgw_books_hold(keys, shm_zone->shm.log);
}


static ngx_int_t
ngx_http_llmgw_keys_zone_make(ngx_http_llmgw_keys_t *keys,
    ngx_slab_pool_t *shpool, ngx_log_t *log)
{
    char                           birth[LLMGW_USAGE_BIRTH_BYTES];
    void                          *memory;
    uint32_t                       n;
    ngx_http_llmgw_keys_shared_t  *shared;

    if (ngx_http_llmgw_books_birth(keys, birth, log) != NGX_OK) {
        return NGX_ERROR;
    }

    shared = ngx_slab_calloc(shpool, sizeof(ngx_http_llmgw_keys_shared_t));
    n = llmgw_accounts_fit((size_t) shpool->pfree * ngx_pagesize);
    memory = n ? ngx_slab_calloc(shpool, llmgw_accounts_bytes(n)) : NULL;

    if (shared == NULL || memory == NULL) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "llmgw: zone \"%V\" is too small for accounts, enlarge "
                      "it in \"llmgw_keys\"", &keys->zone_name);
        return NGX_ERROR;
    }

    shared->accounts = llmgw_accounts_init(memory, n, birth);
    shared->magic = NGX_HTTP_LLMGW_KEYS_MAGIC;
    shared->layout = ngx_http_llmgw_keys_zone_layout();

    if (ngx_http_llmgw_books_start(keys, shared->accounts, log) != NGX_OK) {
        return NGX_ERROR;
    }

    shpool->data = shared;

    return NGX_OK;
}


static uint64_t
ngx_http_llmgw_keys_zone_layout(void)
{
    static const size_t  sizes[] = {
        NGX_HTTP_LLMGW_KEYS_VERSION,
        sizeof(ngx_http_llmgw_keys_shared_t),
        sizeof(llmgw_accounts_t),
        sizeof(llmgw_account_t),
        sizeof(llmgw_usage_slot_t)
    };

    return ngx_http_llmgw_zone_mix(sizes, sizeof(sizes) / sizeof(sizes[0]));
}


ngx_uint_t
ngx_http_llmgw_keys_logged(ngx_http_llmgw_keys_t *keys,
    const ngx_http_llmgw_key_file_t *file)
{
    ngx_uint_t                     is_new;
    ngx_http_llmgw_keys_shared_t  *shared;

    (void) ngx_http_llmgw_keys_lock(keys);
    shared = ngx_http_llmgw_keys_shared(keys);

    is_new = !ngx_http_llmgw_key_file_is(&shared->logged, file);
    shared->logged = *file;

    ngx_http_llmgw_keys_unlock(keys);

    return is_new;
}


ngx_uint_t
ngx_http_llmgw_keys_publish(ngx_http_llmgw_keys_t *keys,
    ngx_http_llmgw_key_set_t *set)
{
    ngx_http_llmgw_keys_shared_t  *shared;

    (void) ngx_http_llmgw_keys_lock(keys);
    shared = ngx_http_llmgw_keys_shared(keys);

    if (!ngx_http_llmgw_key_file_is(&shared->file, &set->file)) {
        shared->version++;
        shared->file = set->file;
    }

    set->version = shared->version;
    ngx_http_llmgw_keys_unlock(keys);

    return ngx_http_llmgw_keys_logged(keys, &set->file);
}


llmgw_accounts_t *
ngx_http_llmgw_keys_lock(ngx_http_llmgw_keys_t *keys)
{
    ngx_slab_pool_t               *shpool;
    ngx_http_llmgw_keys_shared_t  *shared;

    shpool = (ngx_slab_pool_t *) keys->shm_zone->shm.addr;
    ngx_shmtx_lock(&shpool->mutex);
    shared = shpool->data;

    if (llmgw_accounts_mend(shared->accounts)) {
        keys->mended = 1;
    }

    return shared->accounts;
}


void
ngx_http_llmgw_keys_unlock(ngx_http_llmgw_keys_t *keys)
{
    ngx_slab_pool_t  *shpool;

    shpool = (ngx_slab_pool_t *) keys->shm_zone->shm.addr;
    ngx_shmtx_unlock(&shpool->mutex);

    if (keys->mended) {
        keys->mended = 0;
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "llmgw: a process was killed while it changed zone "
                      "\"%V\", its change was undone", &keys->zone_name);
    }
}


void
ngx_http_llmgw_keys_now(llmgw_moment_t *now)
{
    ngx_time_t  *tp;

    tp = ngx_timeofday();

    now->ms = ngx_current_msec;
    now->unix_ms = (uint64_t) tp->sec * 1000 + tp->msec;
}
