
/*
 * Base models and pools: which pool a base model has, in an upstream with
 * several.
 *
 * Workers bind in the directory that they share (core/directory.h), each by the
 * view that it has, and each follows what others have bound.  So all of them
 * find the same, and it does not matter which was first.  Of several models
 * that are new, those with most replicas come first; if no pool is left the
 * others have none until one is free, which is logged once.
 */

#include "fleet/pool.h"
#include "zone/directory.h"


/* A copy of a directory's place, taken under the directory's lock. */
typedef struct {
    uint64_t                      hash;
    uint64_t                      binding;
    char                          name[LLMGW_DIRECTORY_NAME_BYTES];
} ngx_http_llmgw_bound_t;


static const char *ngx_http_llmgw_bind_locked(
    ngx_http_llmgw_upstream_t *upstream, llmgw_directory_t *directory,
    const llmgw_model_base_t *bases, size_t n);
static void ngx_http_llmgw_bind_place_locked(
    ngx_http_llmgw_upstream_t *upstream, llmgw_directory_t *directory,
    const llmgw_model_base_t *base);
static void ngx_http_llmgw_bind_unused_locked(
    ngx_http_llmgw_upstream_t *upstream, llmgw_directory_t *directory,
    ngx_uint_t nwanted);
static ngx_uint_t ngx_http_llmgw_bind_follow(
    ngx_http_llmgw_upstream_t *upstream, ngx_uint_t i,
    const ngx_http_llmgw_bound_t *bound);
static void ngx_http_llmgw_bind_copy(ngx_http_llmgw_bound_t *bound,
    const llmgw_directory_place_t *place);
static void ngx_http_llmgw_bind_route(ngx_http_llmgw_upstream_t *upstream,
    const llmgw_model_base_t *bases, size_t n);


ngx_uint_t
ngx_http_llmgw_upstream_bind(ngx_http_llmgw_upstream_t *upstream)
{
    size_t                    n;
    ngx_uint_t                i, npools, has_changed;
    const char               *refused;
    llmgw_directory_t        *directory;
    llmgw_model_base_t        bases[LLMGW_MODELS_MAX];
    ngx_http_llmgw_bound_t    bound[LLMGW_DIRECTORY_PLACES];

    npools = upstream->conf->npools;
    n = llmgw_models_bases(&upstream->models.known, bases);

    directory = ngx_http_llmgw_directory_lock(upstream->conf->directory);

    refused = ngx_http_llmgw_bind_locked(upstream, directory, bases, n);

    for (i = 0; i < npools; i++) {
        ngx_http_llmgw_bind_copy(&bound[i], &directory->places[i]);
    }

    ngx_http_llmgw_directory_unlock(upstream->conf->directory);

    if (refused) {
        ngx_log_error(NGX_LOG_ERR, upstream->worker->log, 0,
                      "llmgw: upstream \"%V\": model \"%s\" is not routed, "
                      "all %ui pools have other models: raise \"models=\" of "
                      "\"llmgw_members\"", &upstream->conf->name, refused,
                      npools);
    }

    has_changed = 0;

    for (i = 0; i < npools; i++) {
        has_changed |= ngx_http_llmgw_bind_follow(upstream, i, &bound[i]);
    }

    ngx_http_llmgw_bind_route(upstream, bases, n);

    return has_changed;
}


/* Returns the name of a model that got no pool, if that has to be logged. */

static const char *
ngx_http_llmgw_bind_locked(ngx_http_llmgw_upstream_t *upstream,
    llmgw_directory_t *directory, const llmgw_model_base_t *bases, size_t n)
{
    size_t       i;
    uint32_t     npools;
    ngx_uint_t   nwanted;
    const char  *last;

    npools = upstream->conf->npools;
    nwanted = 0;

    /* models that have a place keep it, before others look for one */

    for (i = 0; i < n; i++) {
        if (!bases[i].serves) {
            continue;
        }

        if (llmgw_directory_find(directory, npools, bases[i].hash)
            == LLMGW_DIRECTORY_NONE)
        {
            nwanted++;

        } else {
            ngx_http_llmgw_bind_place_locked(upstream, directory, &bases[i]);
        }
    }

    ngx_http_llmgw_bind_unused_locked(upstream, directory, nwanted);

    last = NULL;
    upstream->nunrouted = 0;

    for (i = 0; i < n; i++) {
        if (!bases[i].serves) {
            continue;
        }

        ngx_http_llmgw_bind_place_locked(upstream, directory, &bases[i]);

        if (llmgw_directory_find(directory, npools, bases[i].hash)
            == LLMGW_DIRECTORY_NONE)
        {
            upstream->nunrouted++;
            last = bases[i].name;
        }
    }

    /* a worker of an older configuration may have fewer pools */

    return !ngx_exiting
           && llmgw_directory_refused(directory, upstream->nunrouted) ? last
                                                                      : NULL;
}


/*
 * Some replica serves the model: binds it, if there is a place, and notes that
 * it is in use.
 */

static void
ngx_http_llmgw_bind_place_locked(ngx_http_llmgw_upstream_t *upstream,
    llmgw_directory_t *directory, const llmgw_model_base_t *base)
{
    uint32_t  place, npools;

    npools = upstream->conf->npools;
    place = llmgw_directory_find(directory, npools, base->hash);

    if (place == LLMGW_DIRECTORY_NONE) {
        place = llmgw_directory_free(directory, npools);

        if (place != LLMGW_DIRECTORY_NONE
            && directory->places[place].binding)
        {
            ngx_http_llmgw_totals_part(upstream->conf->pools[place]->shm_zone);
        }

        place = llmgw_directory_bind(directory, npools, base->name, base->hash,
                                     ngx_current_msec);
    }

    if (place != LLMGW_DIRECTORY_NONE) {
        llmgw_directory_use(directory, place, ngx_current_msec);
    }
}


/*
 * Looks at streams and waiters of all workers, also of those of an old
 * generation.  nwanted: how many models look for a place.
 */

static void
ngx_http_llmgw_bind_unused_locked(ngx_http_llmgw_upstream_t *upstream,
    llmgw_directory_t *directory, ngx_uint_t nwanted)
{
    uint32_t    i;
    ngx_uint_t  nfree;

    nfree = 0;

    for (i = 0; i < upstream->conf->npools; i++) {
        nfree += directory->places[i].hash == 0;
    }

    for (i = 0; i < upstream->conf->npools; i++) {

        if (!llmgw_directory_is_unused(directory, i, nwanted > nfree,
                                       ngx_current_msec))
        {
            continue;
        }

        if (ngx_http_llmgw_zone_is_idle(upstream->conf->pools[i]->shm_zone)) {
            llmgw_directory_unbind(directory, i);

        } else {
            llmgw_directory_use(directory, i, ngx_current_msec);
        }
    }
}


/*
 * 1: the pool has another model now, or none.  A stream that is still in it
 * knows the base model that it came for (attempt/claim.h).
 */

static ngx_uint_t
ngx_http_llmgw_bind_follow(ngx_http_llmgw_upstream_t *upstream, ngx_uint_t i,
    const ngx_http_llmgw_bound_t *bound)
{
    ngx_http_llmgw_pool_t  *pool;

    pool = upstream->pools[i];

    if (pool == NULL && bound->hash) {
        pool = ngx_http_llmgw_pool_create(upstream, upstream->conf->pools[i]);
        upstream->pools[i] = pool;
    }

    if (pool == NULL
        || (pool->base == bound->hash
            && (bound->hash == 0 || pool->binding == bound->binding)))
    {
        return 0;
    }

    if (bound->hash) {
        ngx_log_error(NGX_LOG_INFO, upstream->worker->log, 0,
                      "llmgw: upstream \"%V\": pool %ui serves \"%s\"",
                      &upstream->conf->name, i, bound->name);
    }

    pool->base = bound->hash;
    pool->binding = bound->hash ? bound->binding : 0;
    ngx_memcpy(pool->model, bound->name, LLMGW_DIRECTORY_NAME_BYTES);

    return 1;
}


static void
ngx_http_llmgw_bind_copy(ngx_http_llmgw_bound_t *bound,
    const llmgw_directory_place_t *place)
{
    bound->hash = place->hash;
    bound->binding = place->binding;
    ngx_memcpy(bound->name, place->name, LLMGW_DIRECTORY_NAME_BYTES);
}


/* Marks the routed lists, and finds the pool of members without a model. */

static void
ngx_http_llmgw_bind_route(ngx_http_llmgw_upstream_t *upstream,
    const llmgw_model_base_t *bases, size_t n)
{
    size_t                  i, nrouted;
    uint64_t                routed[LLMGW_MODELS_MAX];
    ngx_http_llmgw_pool_t  *pool, *most;

    nrouted = 0;
    most = NULL;

    for (i = 0; i < n; i++) {
        pool = ngx_http_llmgw_upstream_pool_of(upstream, bases[i].hash);

        if (pool) {
            routed[nrouted++] = bases[i].hash;
            most = most ? most : pool;
        }
    }

    (void) llmgw_models_route(&upstream->models.known, routed, nrouted);

    upstream->main = most ? most : upstream->pools[0];
}


ngx_http_llmgw_pool_t *
ngx_http_llmgw_upstream_pool_of(ngx_http_llmgw_upstream_t *upstream,
    uint64_t base)
{
    ngx_uint_t              i;
    ngx_http_llmgw_pool_t  *pool;

    for (i = 0; base && i < upstream->conf->npools; i++) {
        pool = upstream->pools[i];

        if (pool && pool->base == base) {
            return pool;
        }
    }

    return NULL;
}


llmgw_serves_t
ngx_http_llmgw_upstream_serves(ngx_http_llmgw_upstream_t *upstream,
    const ngx_str_t *name, ngx_http_llmgw_pool_t **pool)
{
    uint64_t         base, hash;
    llmgw_serves_t   serves;

    ngx_http_llmgw_upstream_look(upstream);

    base = 0;
    hash = llmgw_models_hash((char *) name->data, name->len);
    serves = llmgw_models_find_base(&upstream->models.known,
                                    upstream->main->base, hash, &base);

    if (serves == LLMGW_SERVES_NOT) {
        /*
         * the pool's replicas are gone, and it stays bound for some minutes
         * more
         */
        base = hash;
        serves = LLMGW_SERVES_ALL;
    }

    *pool = ngx_http_llmgw_upstream_pool_of(upstream, base);

    if (*pool) {
        return serves;
    }

    *pool = upstream->main;

    return LLMGW_SERVES_NOT;
}


ngx_http_llmgw_pool_t *
ngx_http_llmgw_upstream_await(ngx_http_llmgw_upstream_t *upstream,
    const ngx_str_t *name)
{
    uint32_t                  place;
    llmgw_directory_t        *directory;
    llmgw_model_base_t        base;
    ngx_http_llmgw_bound_t    bound;
    char                      text[LLMGW_DIRECTORY_NAME_BYTES];

    if (upstream->conf->npools == 1 || upstream->nsilent
        || upstream->conf->statics.nelts || name->len >= sizeof(text)
        || upstream->models.incomplete || upstream->main->base == 0)
    {
        return upstream->main;
    }

    (void) ngx_cpystrn((u_char *) text, name->data, name->len + 1);
    ngx_memzero(&base, sizeof(llmgw_model_base_t));
    base.name = text;
    base.hash = llmgw_models_hash(text, name->len);

    directory = ngx_http_llmgw_directory_lock(upstream->conf->directory);

    ngx_http_llmgw_bind_unused_locked(upstream, directory, 1);
    ngx_http_llmgw_bind_place_locked(upstream, directory, &base);
    place = llmgw_directory_find(directory, upstream->conf->npools, base.hash);

    if (place != LLMGW_DIRECTORY_NONE) {
        ngx_http_llmgw_bind_copy(&bound, &directory->places[place]);
    }

    ngx_http_llmgw_directory_unlock(upstream->conf->directory);

    if (place == LLMGW_DIRECTORY_NONE) {
        return NULL;
    }

    (void) ngx_http_llmgw_bind_follow(upstream, place, &bound);

    return upstream->pools[place];
}


ngx_uint_t
ngx_http_llmgw_upstream_lacks_pool(ngx_http_llmgw_upstream_t *upstream,
    const ngx_str_t *name)
{
    return upstream->conf->npools > 1
           && llmgw_models_are_reported(&upstream->models.known,
                                        llmgw_models_hash((char *) name->data,
                                                          name->len));
}


ngx_int_t
ngx_http_llmgw_upstream_name(ngx_http_llmgw_upstream_t *upstream)
{
    ngx_http_llmgw_upstream_look(upstream);

    return ngx_http_llmgw_models_name(&upstream->models);
}
