
/*
 * Models: which names clients may ask for, and which pool serves one.
 *
 * A name is known if an llmgw_model line has it, or if replicas of one of the
 * location's pools report it, whether they live or not: so a request for a
 * model whose replicas are all down is asked to come back.  If neither lines
 * nor replicas name any model, every name is accepted.
 *
 * A list shows what a request could get now: a line's name only while its pool
 * has a replica, and what living replicas report.
 */

#include "fleet/table.h"
#include "front/openai/openai_inner.h"
#include "keys/keys.h"
#include "proto/json/write.h"


/* A model's object without its name, and its comma. */
#define NGX_HTTP_LLMGW_OPENAI_MODEL_BYTES  128


static const ngx_http_llmgw_model_t *ngx_http_llmgw_openai_model_line(
    ngx_http_llmgw_loc_conf_t *llcf, const ngx_str_t *name);
static ngx_int_t ngx_http_llmgw_openai_model_of_line(ngx_http_request_t *r,
    const ngx_http_llmgw_model_t *line, ngx_http_llmgw_openai_model_t *model);
static ngx_int_t ngx_http_llmgw_openai_model_missing(ngx_http_request_t *r,
    ngx_http_llmgw_loc_conf_t *llcf, const ngx_str_t *name);
static llmgw_serves_t ngx_http_llmgw_openai_model_serves(
    ngx_http_llmgw_upstream_t *upstream, const ngx_str_t *name,
    llmgw_serves_t unsaid, ngx_http_llmgw_pool_t **pool);
static ngx_int_t ngx_http_llmgw_openai_model_names(ngx_http_request_t *r,
    ngx_array_t *names);
static void ngx_http_llmgw_openai_model_allowed(ngx_http_request_t *r,
    ngx_array_t *names);
static ngx_int_t ngx_http_llmgw_openai_model_merge(ngx_http_request_t *r,
    ngx_http_llmgw_loc_conf_t *llcf, ngx_uint_t i, ngx_array_t *names,
    ngx_uint_t nlines);
static ngx_uint_t ngx_http_llmgw_openai_model_comes_before(
    ngx_http_llmgw_loc_conf_t *llcf, ngx_uint_t n,
    ngx_http_upstream_srv_conf_t *us);
static ngx_uint_t ngx_http_llmgw_openai_model_is_of(ngx_http_request_t *r,
    ngx_http_llmgw_loc_conf_t *llcf, ngx_uint_t n, const ngx_str_t *name);
static ngx_uint_t ngx_http_llmgw_openai_model_is_served(ngx_http_request_t *r,
    ngx_http_llmgw_loc_conf_t *llcf, const ngx_http_llmgw_model_t *line);
static ngx_uint_t ngx_http_llmgw_openai_model_has(ngx_array_t *names,
    ngx_uint_t n, const ngx_str_t *name);
static char *ngx_http_llmgw_openai_model_write(char *p,
    const ngx_str_t *name);


ngx_int_t
ngx_http_llmgw_openai_model_find(ngx_http_request_t *r, const ngx_str_t *name,
    ngx_http_llmgw_openai_model_t *model)
{
    ngx_uint_t                     i;
    llmgw_serves_t                 serves, best;
    ngx_http_llmgw_pool_t         *pool;
    ngx_http_llmgw_loc_conf_t     *llcf;
    ngx_http_llmgw_upstream_t     *upstream;
    ngx_http_upstream_srv_conf_t  *us;
    const ngx_http_llmgw_model_t  *line;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);
    line = ngx_http_llmgw_openai_model_line(llcf, name);

    if (line) {
        return ngx_http_llmgw_openai_model_of_line(r, line, model);
    }

    ngx_str_null(&model->engine);
    best = LLMGW_SERVES_NOT;

    for (i = 0; (us = ngx_http_llmgw_openai_model_upstream(llcf, i)); i++) {
        upstream = ngx_http_llmgw_worker_upstream(r, us);
        if (upstream == NULL) {
            return NGX_ERROR;
        }

        serves = ngx_http_llmgw_openai_model_serves(upstream, name,
                           llcf->models ? LLMGW_SERVES_NOT : LLMGW_SERVES_ALL,
                           &pool);

        if (i == 0 || serves > best) {
            best = serves;
            model->pool = pool;
        }
    }

    return best != LLMGW_SERVES_NOT
           ? NGX_OK : ngx_http_llmgw_openai_model_missing(r, llcf, name);
}


/* For a name that no pool serves: whether replicas report it all the same. */

static ngx_int_t
ngx_http_llmgw_openai_model_missing(ngx_http_request_t *r,
    ngx_http_llmgw_loc_conf_t *llcf, const ngx_str_t *name)
{
    ngx_uint_t                     i;
    ngx_http_upstream_srv_conf_t  *us;

    for (i = 0; (us = ngx_http_llmgw_openai_model_upstream(llcf, i)); i++) {
        if (ngx_http_llmgw_upstream_lacks_pool(
                ngx_http_llmgw_worker_upstream(r, us), name))
        {
            return NGX_BUSY;
        }
    }

    return NGX_DECLINED;
}


/* A name of a line is accepted, even if no replica reports it. */

static ngx_int_t
ngx_http_llmgw_openai_model_of_line(ngx_http_request_t *r,
    const ngx_http_llmgw_model_t *line, ngx_http_llmgw_openai_model_t *model)
{
    llmgw_serves_t              serves;
    const ngx_str_t            *name;
    ngx_http_llmgw_loc_conf_t  *llcf;
    ngx_http_llmgw_upstream_t  *upstream;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);

    upstream = ngx_http_llmgw_worker_upstream(r, line->upstream
                                                 ? line->upstream
                                                 : llcf->upstream);
    if (upstream == NULL) {
        return NGX_ERROR;
    }

    name = line->engine.len ? &line->engine : &line->name;
    serves = ngx_http_llmgw_upstream_serves(upstream, name, &model->pool);
    model->engine = line->engine;
    model->is_named = 1;

    if (serves == LLMGW_SERVES_NOT) {
        model->pool = ngx_http_llmgw_upstream_lacks_pool(upstream, name)
                      ? NULL : ngx_http_llmgw_upstream_await(upstream, name);
    }

    return model->pool ? NGX_OK : NGX_BUSY;
}


/* How the upstream serves a name; unsaid: none of its replicas reports any. */

static llmgw_serves_t
ngx_http_llmgw_openai_model_serves(ngx_http_llmgw_upstream_t *upstream,
    const ngx_str_t *name, llmgw_serves_t unsaid, ngx_http_llmgw_pool_t **pool)
{
    llmgw_serves_t  serves;

    serves = ngx_http_llmgw_upstream_serves(upstream, name, pool);

    return serves == LLMGW_SERVES_NOT && upstream->main->base == 0 ? unsaid
                                                                   : serves;
}


static const ngx_http_llmgw_model_t *
ngx_http_llmgw_openai_model_line(ngx_http_llmgw_loc_conf_t *llcf,
    const ngx_str_t *name)
{
    ngx_uint_t               i, n;
    ngx_http_llmgw_model_t  *line;

    n = llcf->models ? llcf->models->nelts : 0;
    line = n ? llcf->models->elts : NULL;

    for (i = 0; i < n; i++) {
        if (line[i].name.len == name->len
            && ngx_memcmp(line[i].name.data, name->data, name->len) == 0)
        {
            return &line[i];
        }
    }

    return NULL;
}


ngx_http_upstream_srv_conf_t *
ngx_http_llmgw_openai_model_upstream(ngx_http_llmgw_loc_conf_t *llcf,
    ngx_uint_t i)
{
    ngx_http_llmgw_model_t  *line;

    if (i == 0) {
        return llcf->upstream;
    }

    if (llcf->models == NULL || i > llcf->models->nelts) {
        return NULL;
    }

    line = llcf->models->elts;

    return line[i - 1].upstream ? line[i - 1].upstream : llcf->upstream;
}


void
ngx_http_llmgw_openai_model_unknown(llmgw_openai_error_t *error,
    const ngx_str_t *name)
{
    llmgw_openai_error_set(error, NGX_HTTP_NOT_FOUND, "model_not_found",
                           "model",
                           "The model `%.*s` does not exist or you do not "
                           "have access to it.", (int) name->len,
                           (char *) name->data);
}


ngx_int_t
ngx_http_llmgw_openai_models(ngx_http_request_t *r)
{
    char                           *p;
    size_t                          size;
    ngx_str_t                      *name, json;
    ngx_uint_t                      i;
    ngx_array_t                     names;

    if (ngx_http_llmgw_openai_model_names(r, &names) != NGX_OK) {
        return NGX_ERROR;
    }

    name = names.elts;
    size = NGX_HTTP_LLMGW_OPENAI_MODEL_BYTES;

    for (i = 0; i < names.nelts; i++) {
        size += NGX_HTTP_LLMGW_OPENAI_MODEL_BYTES
                + llmgw_json_string_bytes(name[i].data, name[i].len);
    }

    json.data = ngx_pnalloc(r->pool, size);
    if (json.data == NULL) {
        return NGX_ERROR;
    }

    p = llmgw_json_literal((char *) json.data,
                           "{\"object\":\"list\",\"data\":[");

    for (i = 0; i < names.nelts; i++) {
        p = i ? llmgw_json_literal(p, ",") : p;
        p = ngx_http_llmgw_openai_model_write(p, &name[i]);
    }

    p = llmgw_json_literal(p, "]}");
    json.len = (u_char *) p - json.data;

    return ngx_http_llmgw_openai_answer(r, NGX_HTTP_OK, &json);
}


static ngx_int_t
ngx_http_llmgw_openai_model_names(ngx_http_request_t *r, ngx_array_t *names)
{
    ngx_str_t                     *name;
    ngx_uint_t                     i, n, nlines;
    ngx_http_llmgw_model_t        *line;
    ngx_http_llmgw_loc_conf_t     *llcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);

    if (ngx_array_init(names, r->pool, 8, sizeof(ngx_str_t)) != NGX_OK) {
        return NGX_ERROR;
    }

    nlines = llcf->models ? llcf->models->nelts : 0;
    line = nlines ? llcf->models->elts : NULL;

    for (i = 0; i < nlines; i++) {
        if (!ngx_http_llmgw_openai_model_is_served(r, llcf, &line[i])
            || ngx_http_llmgw_openai_model_has(names, names->nelts,
                                               &line[i].name))
        {
            continue;
        }

        name = ngx_array_push(names);
        if (name == NULL) {
            return NGX_ERROR;
        }

        *name = line[i].name;
    }

    n = names->nelts;

    for (i = 0; ngx_http_llmgw_openai_model_upstream(llcf, i); i++) {
        if (ngx_http_llmgw_openai_model_merge(r, llcf, i, names, n)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    ngx_http_llmgw_openai_model_allowed(r, names);

    return NGX_OK;
}


/* Leaves only names that the request's caller may use. */

static void
ngx_http_llmgw_openai_model_allowed(ngx_http_request_t *r,
    ngx_array_t *names)
{
    ngx_str_t                *name;
    ngx_uint_t                i, n;
    ngx_http_llmgw_caller_t  *caller;

    caller = ngx_http_llmgw_caller(r);
    name = names->elts;
    n = 0;

    for (i = 0; i < names->nelts; i++) {
        if (ngx_http_llmgw_caller_may(caller, &name[i])) {
            name[n++] = name[i];
        }
    }

    names->nelts = n;
}


/*
 * Adds the names that the i-th upstream serves, except those of the nlines
 * lines and of upstreams before it.  Those are sorted, so that no name is
 * compared with all others: a replica may report any number of names.
 */

static ngx_int_t
ngx_http_llmgw_openai_model_merge(ngx_http_request_t *r,
    ngx_http_llmgw_loc_conf_t *llcf, ngx_uint_t i, ngx_array_t *names,
    ngx_uint_t nlines)
{
    size_t                         k;
    ngx_str_t                      name, *slot;
    ngx_http_llmgw_models_t       *models;
    ngx_http_llmgw_upstream_t     *upstream;
    ngx_http_upstream_srv_conf_t  *us;

    us = ngx_http_llmgw_openai_model_upstream(llcf, i);
    upstream = ngx_http_llmgw_worker_upstream(r, us);

    if (upstream == NULL || ngx_http_llmgw_upstream_name(upstream) != NGX_OK) {
        return NGX_ERROR;
    }

    models = &upstream->models;

    if (ngx_http_llmgw_openai_model_comes_before(llcf, i, us)) {
        return NGX_OK;
    }

    for (k = 0; k < models->nnames; k++) {
        name.data = (u_char *) models->names[k];
        name.len = ngx_strlen(name.data);

        if (ngx_http_llmgw_openai_model_has(names, nlines, &name)
            || ngx_http_llmgw_openai_model_is_of(r, llcf, i, &name))
        {
            continue;
        }

        slot = ngx_array_push(names);
        if (slot == NULL) {
            return NGX_ERROR;
        }

        *slot = name;
    }

    return NGX_OK;
}


/* 1: the upstream is one of the location's first n. */

static ngx_uint_t
ngx_http_llmgw_openai_model_comes_before(ngx_http_llmgw_loc_conf_t *llcf,
    ngx_uint_t n, ngx_http_upstream_srv_conf_t *us)
{
    ngx_uint_t  i;

    for (i = 0; i < n; i++) {
        if (ngx_http_llmgw_openai_model_upstream(llcf, i) == us) {
            return 1;
        }
    }

    return 0;
}


/* 1: one of the first n upstreams, whose names are made, serves the name. */

static ngx_uint_t
ngx_http_llmgw_openai_model_is_of(ngx_http_request_t *r,
    ngx_http_llmgw_loc_conf_t *llcf, ngx_uint_t n, const ngx_str_t *name)
{
    ngx_uint_t                     i;
    ngx_http_llmgw_models_t       *models;
    ngx_http_upstream_srv_conf_t  *us;

    for (i = 0; i < n; i++) {
        us = ngx_http_llmgw_openai_model_upstream(llcf, i);
        models = &ngx_http_llmgw_worker_upstream(r, us)->models;

        if (llmgw_models_has(models->names, models->nnames,
                             (char *) name->data, name->len))
        {
            return 1;
        }
    }

    return 0;
}


/* 1: the line's pool has a replica that may serve it. */

static ngx_uint_t
ngx_http_llmgw_openai_model_is_served(ngx_http_request_t *r,
    ngx_http_llmgw_loc_conf_t *llcf, const ngx_http_llmgw_model_t *line)
{
    ngx_http_llmgw_pool_t         *pool;
    ngx_http_llmgw_upstream_t     *upstream;

    upstream = ngx_http_llmgw_worker_upstream(r, line->upstream
                                                 ? line->upstream
                                                 : llcf->upstream);

    return upstream
           && ngx_http_llmgw_openai_model_serves(upstream,
                            line->engine.len ? &line->engine : &line->name,
                            LLMGW_SERVES_ALL, &pool)
              != LLMGW_SERVES_NOT
           && ngx_http_llmgw_table_has_routable(pool);
}


/* 1: one of the first n names is this one. */

static ngx_uint_t
ngx_http_llmgw_openai_model_has(ngx_array_t *names, ngx_uint_t n,
    const ngx_str_t *name)
{
    ngx_str_t   *known;
    ngx_uint_t   i;

    known = names->elts;

    for (i = 0; i < n; i++) {
        if (known[i].len == name->len
            && ngx_memcmp(known[i].data, name->data, name->len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/*
 * No engine reports when a model was created: always the same number is stable.
 */

static char *
ngx_http_llmgw_openai_model_write(char *p, const ngx_str_t *name)
{
    p = llmgw_json_literal(p, "{\"id\":");
    p = llmgw_json_string(p, name->data, name->len);

    return llmgw_json_literal(p, ",\"object\":\"model\",\"created\":0,"
                                 "\"owned_by\":\"llmgw\"}");
}


ngx_int_t
ngx_http_llmgw_openai_model_show(ngx_http_request_t *r, const ngx_str_t *name)
{
    char                           *p;
    ngx_str_t                       json;
    ngx_array_t                     names;
    llmgw_openai_error_t            error;

    if (ngx_http_llmgw_openai_model_names(r, &names) != NGX_OK) {
        return NGX_ERROR;
    }

    if (!ngx_http_llmgw_openai_model_has(&names, names.nelts, name)) {
        ngx_http_llmgw_openai_model_unknown(&error, name);
        return ngx_http_llmgw_openai_refuse(r, &error);
    }

    json.data = ngx_pnalloc(r->pool, NGX_HTTP_LLMGW_OPENAI_MODEL_BYTES
                               + llmgw_json_string_bytes(name->data,
                                                         name->len));
    if (json.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_http_llmgw_openai_model_write((char *) json.data, name);
    json.len = (u_char *) p - json.data;

    return ngx_http_llmgw_openai_answer(r, NGX_HTTP_OK, &json);
}
