
/* The zone of a directory: directory.h. */

#include "zone/directory.h"
#include "zone/zone.h"


#define NGX_HTTP_LLMGW_DIRECTORY_MAGIC    0x7269647767776d6cULL  /* lmwgwdir */
#define NGX_HTTP_LLMGW_DIRECTORY_VERSION  1
#define NGX_HTTP_LLMGW_DIRECTORY_BYTES    (64 * 1024)


typedef struct {
    uint64_t                      magic;
    uint64_t                      layout;
    llmgw_directory_t             directory;
} ngx_http_llmgw_directory_head_t;


static ngx_int_t ngx_http_llmgw_directory_init(ngx_shm_zone_t *shm_zone,
    void *data);
static uint64_t ngx_http_llmgw_directory_layout(void);


ngx_int_t
ngx_http_llmgw_directory_add(ngx_conf_t *cf, ngx_http_llmgw_srv_conf_t *conf)
{
    ngx_str_t        name;
    ngx_shm_zone_t  *shm_zone;

    name.data = ngx_pnalloc(cf->pool, conf->zone_name.len
                                      + sizeof(":models"));
    if (name.data == NULL) {
        return NGX_ERROR;
    }

    name.len = ngx_sprintf(name.data, "%V:models", &conf->zone_name)
               - name.data;

    shm_zone = ngx_shared_memory_add(cf, &name, NGX_HTTP_LLMGW_DIRECTORY_BYTES,
                                     &ngx_http_llmgw_module);
    if (shm_zone == NULL) {
        return NGX_ERROR;
    }

    shm_zone->init = ngx_http_llmgw_directory_init;
    shm_zone->data = conf;
    conf->directory = shm_zone;

    ngx_http_llmgw_zone_compare(cf, shm_zone, NGX_HTTP_LLMGW_DIRECTORY_MAGIC,
                                ngx_http_llmgw_directory_layout());

    return NGX_OK;
}


static uint64_t
ngx_http_llmgw_directory_layout(void)
{
    static const size_t  sizes[] = {
        NGX_HTTP_LLMGW_DIRECTORY_VERSION,
        sizeof(ngx_http_llmgw_directory_head_t)
    };

    return ngx_http_llmgw_zone_mix(sizes, sizeof(sizes) / sizeof(sizes[0]));
}


static ngx_int_t
ngx_http_llmgw_directory_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_slab_pool_t                  *shpool;
    ngx_http_llmgw_directory_head_t  *head;

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    shm_zone->noreuse = 0;          /* the next configuration may reuse it */

    if (shpool->data) {
        return NGX_OK;
    }

    head = ngx_slab_calloc(shpool, sizeof(ngx_http_llmgw_directory_head_t));
    if (head == NULL) {
        return NGX_ERROR;
    }

    head->magic = NGX_HTTP_LLMGW_DIRECTORY_MAGIC;
    head->layout = ngx_http_llmgw_directory_layout();
    shpool->data = head;

    return NGX_OK;
}


llmgw_directory_t *
ngx_http_llmgw_directory_lock(ngx_shm_zone_t *shm_zone)
{
    ngx_slab_pool_t                  *shpool;
    ngx_http_llmgw_directory_head_t  *head;

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    head = shpool->data;

    ngx_shmtx_lock(&shpool->mutex);

    return &head->directory;
}


void
ngx_http_llmgw_directory_unlock(ngx_shm_zone_t *shm_zone)
{
    ngx_shmtx_unlock(&((ngx_slab_pool_t *) shm_zone->shm.addr)->mutex);
}
