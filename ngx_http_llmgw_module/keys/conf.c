
/*
 * The directives of keys: llmgw_keys and llmgw_identity.  llmgw_usage_log is
 * in usage.c.
 *
 * Lines that name the same zone share it, and so they must name the same file
 * with the same parameters: accounts have one set of limits.
 */

#include "conf/param.h"
#include "keys/keys.h"


static ngx_int_t ngx_http_llmgw_keys_conf_zone(ngx_conf_t *cf,
    ngx_str_t *value, void *field);
static ngx_http_llmgw_keys_t *ngx_http_llmgw_keys_conf_had(
    const ngx_http_llmgw_main_conf_t *lmcf, const ngx_str_t *zone);
static ngx_uint_t ngx_http_llmgw_keys_conf_is_same(
    const ngx_http_llmgw_keys_t *a, const ngx_http_llmgw_keys_t *b);
static char *ngx_http_llmgw_keys_conf_add(ngx_conf_t *cf,
    ngx_http_llmgw_main_conf_t *lmcf, const ngx_http_llmgw_keys_t *given,
    ngx_http_llmgw_keys_t **keys);
static void ngx_http_llmgw_keys_conf_cleanup(void *data);


static const ngx_http_llmgw_param_t  ngx_http_llmgw_keys_params[] = {
    ngx_http_llmgw_param(ngx_http_llmgw_keys_t, NULL, STRING, path,
        .right = "a file, or off"),
    ngx_http_llmgw_param(ngx_http_llmgw_keys_t, "zone", OTHER, zone_name,
        .read = ngx_http_llmgw_keys_conf_zone,
        .right = "name:size, of 128k or more"),
    ngx_http_llmgw_param(ngx_http_llmgw_keys_t, "gateways", NUMBER, gateways,
        .min = 1, .max = 10000),
    ngx_http_llmgw_param(ngx_http_llmgw_keys_t, "state", STRING, state,
        .right = "a file"),
    { .kind = 0 }
};


static const ngx_http_llmgw_param_t  ngx_http_llmgw_identity_params[] = {
    ngx_http_llmgw_param(ngx_http_llmgw_identity_conf_t, "name", VALUE, name),
    ngx_http_llmgw_param(ngx_http_llmgw_identity_conf_t, "models", VALUE,
        models),
    ngx_http_llmgw_param(ngx_http_llmgw_identity_conf_t, "class", VALUE,
        class),
    ngx_http_llmgw_param(ngx_http_llmgw_identity_conf_t, "tenant", VALUE,
        tenant),
    { .kind = 0 }
};


/* llmgw_keys FILE zone=NAME:SIZE [gateways=N] [state=FILE] | off; */

char *
ngx_http_llmgw_keys_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                        *rv;
    ngx_str_t                   *value;
    ngx_http_llmgw_keys_t        given, *had;
    ngx_http_llmgw_loc_conf_t   *llcf = conf;
    ngx_http_llmgw_main_conf_t  *lmcf;

    if (llcf->keys != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {
        llcf->keys = NULL;
        return NGX_CONF_OK;
    }

    ngx_memzero(&given, sizeof(ngx_http_llmgw_keys_t));
    given.gateways = 1;

    rv = ngx_http_llmgw_params(cf, ngx_http_llmgw_keys_params, 1, &given);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (given.zone_size == 0) {
        return "needs \"zone=name:size\"";
    }

    if (ngx_conf_full_name(cf->cycle, &given.path, 1) != NGX_OK
        || (given.state.len
            && ngx_conf_full_name(cf->cycle, &given.state, 1) != NGX_OK))
    {
        return NGX_CONF_ERROR;
    }

    lmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llmgw_module);
    had = ngx_http_llmgw_keys_conf_had(lmcf, &given.zone_name);

    if (had == NULL) {
        return ngx_http_llmgw_keys_conf_add(cf, lmcf, &given, &llcf->keys);
    }

    if (!ngx_http_llmgw_keys_conf_is_same(had, &given)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"llmgw_keys\" with the zone \"%V\" has another "
                           "file or other parameters in %s:%ui; give them "
                           "the same, or another zone", &had->zone_name,
                           had->file, had->line);
        return NGX_CONF_ERROR;
    }

    llcf->keys = had;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_llmgw_keys_conf_zone(ngx_conf_t *cf, ngx_str_t *value, void *field)
{
    u_char                 *p;
    ssize_t                 bytes;
    ngx_str_t               size;
    ngx_http_llmgw_keys_t  *keys;

    keys = (ngx_http_llmgw_keys_t *) ((u_char *) field
                               - offsetof(ngx_http_llmgw_keys_t, zone_name));
    p = ngx_strlchr(value->data, value->data + value->len, ':');

    if (p == NULL || p == value->data) {
        return NGX_DECLINED;
    }

    size.data = p + 1;
    size.len = value->data + value->len - size.data;
    bytes = ngx_parse_size(&size);

    if (bytes < (ssize_t) NGX_HTTP_LLMGW_KEYS_ZONE_MIN) {
        return NGX_DECLINED;
    }

    keys->zone_name.data = value->data;
    keys->zone_name.len = p - value->data;
    keys->zone_size = bytes;

    return NGX_OK;
}


static ngx_http_llmgw_keys_t *
ngx_http_llmgw_keys_conf_had(const ngx_http_llmgw_main_conf_t *lmcf,
    const ngx_str_t *zone)
{
    ngx_uint_t               i;
    ngx_http_llmgw_keys_t  **keys;

    keys = lmcf->keys.elts;

    for (i = 0; i < lmcf->keys.nelts; i++) {
        if (keys[i]->zone_name.len == zone->len
            && ngx_memcmp(keys[i]->zone_name.data, zone->data, zone->len) == 0)
        {
            return keys[i];
        }
    }

    return NULL;
}


static ngx_uint_t
ngx_http_llmgw_keys_conf_is_same(const ngx_http_llmgw_keys_t *a,
    const ngx_http_llmgw_keys_t *b)
{
    return a->zone_size == b->zone_size && a->gateways == b->gateways
           && a->path.len == b->path.len && a->state.len == b->state.len
           && ngx_memcmp(a->path.data, b->path.data, a->path.len) == 0
           && ngx_memcmp(a->state.data, b->state.data, a->state.len) == 0;
}


static char *
ngx_http_llmgw_keys_conf_add(ngx_conf_t *cf, ngx_http_llmgw_main_conf_t *lmcf,
    const ngx_http_llmgw_keys_t *given, ngx_http_llmgw_keys_t **keys)
{
    ngx_pool_cleanup_t      *cln;
    ngx_http_llmgw_keys_t  **slot;

    *keys = ngx_palloc(cf->pool, sizeof(ngx_http_llmgw_keys_t));
    cln = ngx_pool_cleanup_add(cf->cycle->pool, 0);
    slot = ngx_array_push(&lmcf->keys);

    if (*keys == NULL || cln == NULL || slot == NULL) {
        return NGX_CONF_ERROR;
    }

    **keys = *given;
    *slot = *keys;
    (*keys)->main = lmcf;
    (*keys)->file = cf->conf_file->file.name.data;
    (*keys)->line = cf->conf_file->line;

    cln->handler = ngx_http_llmgw_keys_conf_cleanup;
    cln->data = *keys;

    if (ngx_http_llmgw_key_set_load(cf, *keys) != NGX_OK
        || ngx_http_llmgw_keys_zone_add(cf, *keys) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static void
ngx_http_llmgw_keys_conf_cleanup(void *data)
{
    ngx_http_llmgw_keys_t  *keys = data;

    if (keys->watch) {
        ngx_http_llmgw_key_watch_end(keys);
    }

    if (keys->set) {
        ngx_http_llmgw_key_set_release(keys->set);
        keys->set = NULL;
    }

    ngx_http_llmgw_books_release(keys);
}


/* llmgw_identity name=VALUE [models=VALUE] [class=VALUE] [tenant=VALUE]; */

char *
ngx_http_llmgw_identity_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                            *rv;
    ngx_str_t                       *value;
    ngx_http_llmgw_loc_conf_t       *llcf = conf;
    ngx_http_llmgw_identity_conf_t  *identity;

    if (llcf->identity != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {
        llcf->identity = NULL;
        return NGX_CONF_OK;
    }

    identity = ngx_pcalloc(cf->pool, sizeof(ngx_http_llmgw_identity_conf_t));
    if (identity == NULL) {
        return NGX_CONF_ERROR;
    }

    rv = ngx_http_llmgw_params(cf, ngx_http_llmgw_identity_params, 1,
                               identity);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (identity->name == NULL) {
        return "needs \"name=\"";
    }

    llcf->identity = identity;

    return NGX_CONF_OK;
}
