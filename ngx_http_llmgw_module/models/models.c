
/*
 * The lists of names that a view's members have.
 *
 * A list is read when the first view names it and freed when no member has it
 * any more.  A list that is not in the segment (damaged, or given up while the
 * view was read) counts as no list; the pool reads its view again within a
 * second.
 */

#include "models/models.h"


static void ngx_http_llmgw_models_read(ngx_http_llmgw_models_t *models,
    llmgw_members_reader_t *reader, const llmgw_member_t *member);
static void ngx_http_llmgw_models_warn(ngx_http_llmgw_models_t *models,
    uint64_t first);
static void ngx_http_llmgw_models_unname(ngx_http_llmgw_models_t *models);


void
ngx_http_llmgw_models_init(ngx_http_llmgw_models_t *models,
    ngx_str_t *upstream, ngx_str_t *wanted, ngx_log_t *log)
{
    models->log = log;
    models->upstream = upstream;

    if (wanted->len) {
        models->wanted = llmgw_models_hash((char *) wanted->data, wanted->len);
    }
}


void
ngx_http_llmgw_models_done(ngx_http_llmgw_models_t *models)
{
    ngx_uint_t  i;

    ngx_http_llmgw_models_unname(models);

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        ngx_free(llmgw_models_remove(&models->known, i));
    }
}


void
ngx_http_llmgw_models_begin(ngx_http_llmgw_models_t *models,
    llmgw_members_reader_t *reader, const llmgw_members_view_t *view)
{
    size_t                 i;
    llmgw_model_list_t    *list;
    const llmgw_member_t  *member;

    models->incomplete = 0;
    ngx_http_llmgw_models_unname(models);

    for (i = 0; i < view->n; i++) {
        member = &view->members[i];

        if (member->role == LLMGW_ROLE_REPLICA && member->models
            && ngx_http_llmgw_models_of(models, member) == 0)
        {
            ngx_http_llmgw_models_read(models, reader, member);
        }
    }

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        list = models->known.lists[i];

        if (list) {
            list->nmembers = 0;
            list->nliving = 0;
            list->nserving = 0;
        }
    }
}


static void
ngx_http_llmgw_models_read(ngx_http_llmgw_models_t *models,
    llmgw_members_reader_t *reader, const llmgw_member_t *member)
{
    void    *memory;
    char     names[LLMGW_MEMBERS_LIST_BYTES];
    size_t   bytes;

    memory = NULL;

    if (llmgw_members_read_list(reader, member->models, names, &bytes)
        == LLMGW_MEMBERS_DONE)
    {
        memory = ngx_alloc(llmgw_models_bytes(names, bytes), models->log);
    }

    if (memory == NULL) {
        models->incomplete = 1;
        return;
    }

    if (llmgw_models_add(&models->known, memory, member->models,
                         member->models_cut != 0, names, bytes)
        == 0)
    {
        ngx_free(memory);
    }
}


ngx_uint_t
ngx_http_llmgw_models_of(ngx_http_llmgw_models_t *models,
    const llmgw_member_t *member)
{
    return member->models
           ? llmgw_models_find(&models->known, member->models,
                               member->models_cut != 0)
           : 0;
}


ngx_uint_t
ngx_http_llmgw_models_takes(ngx_http_llmgw_models_t *models,
    const llmgw_member_t *member)
{
    ngx_uint_t  number;

    if (member->role != LLMGW_ROLE_REPLICA) {
        return 0;
    }

    number = ngx_http_llmgw_models_of(models, member);

    return models->wanted == 0
           || (number && models->known.lists[number]->base == models->wanted);
}


/*
 * The names of living members, whether they drain or not, are listed.  So are
 * those of a group's standby, for the time in which another engine has died and
 * the standby takes over.
 */

void
ngx_http_llmgw_models_count(ngx_http_llmgw_models_t *models,
    ngx_uint_t number, const llmgw_member_t *member, ngx_uint_t isolated,
    ngx_uint_t stands_by)
{
    ngx_uint_t           lives, is_ready;
    llmgw_model_list_t  *list;

    if (number == 0) {
        return;
    }

    list = models->known.lists[number];
    list->nmembers++;

    lives = member->liveness == LLMGW_LIVENESS_ALIVE
            || member->liveness == LLMGW_LIVENESS_SUSPECT
            || (member->liveness == LLMGW_LIVENESS_DEAD && isolated);
    is_ready = member->service == LLMGW_SERVICE_READY || stands_by;

    list->nliving += lives && is_ready;
    list->nserving += lives && (is_ready || member->draining
                                || member->service == LLMGW_SERVICE_STARTING);
}


void
ngx_http_llmgw_models_end(ngx_http_llmgw_models_t *models)
{
    ngx_uint_t           i;
    llmgw_model_list_t  *list;

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        list = models->known.lists[i];

        if (list && list->nmembers == 0) {
            ngx_free(llmgw_models_remove(&models->known, i));
        }
    }
}


ngx_uint_t
ngx_http_llmgw_models_settle(ngx_http_llmgw_models_t *models, uint64_t *base)
{
    if (!llmgw_models_settle(&models->known, base)) {
        return 0;
    }

    ngx_http_llmgw_models_warn(models, *base);

    return 1;
}


static void
ngx_http_llmgw_models_warn(ngx_http_llmgw_models_t *models, uint64_t first)
{
    ngx_uint_t                 i, n;
    llmgw_model_list_t        *list, *other;
    const llmgw_model_list_t  *base, *yielding;

    n = 0;
    other = NULL;
    base = llmgw_models_named(&models->known, first);
    yielding = llmgw_models_yielding(&models->known);

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        list = models->known.lists[i];

        if (list && list->is_other && list->nmembers) {
            n += list->nmembers;
            other = list;
        }
    }

    if (base == NULL || other == NULL) {
        ngx_log_error(NGX_LOG_NOTICE, models->log, 0,
                      "llmgw: upstream \"%V\": all replicas serve one model "
                      "again", models->upstream);
        return;
    }

    if (yielding) {
        ngx_log_error(NGX_LOG_WARN, models->log, 0,
                      "llmgw: upstream \"%V\": most replicas serve \"%s\", "
                      "but none of them is up; those that serve \"%s\" are "
                      "routed instead: use \"models=\" of \"llmgw_members\"",
                      models->upstream, yielding->names, base->names);
        return;
    }

    ngx_log_error(NGX_LOG_WARN, models->log, 0,
                  "llmgw: upstream \"%V\": replicas serve different models; "
                  "most serve \"%s\", so %ui that serve \"%s\" or others are "
                  "not routed: use \"models=\" of \"llmgw_members\"",
                  models->upstream, base->names, n, other->names);
}


ngx_uint_t
ngx_http_llmgw_models_is_other(ngx_http_llmgw_models_t *models,
    ngx_uint_t number)
{
    return number && models->known.lists[number]->is_other;
}


ngx_int_t
ngx_http_llmgw_models_name(ngx_http_llmgw_models_t *models)
{
    if (models->names) {
        return NGX_OK;
    }

    models->names = ngx_alloc((llmgw_models_count(&models->known) + 1)
                              * sizeof(char *), models->log);
    if (models->names == NULL) {
        return NGX_ERROR;
    }

    models->nnames = llmgw_models_names(&models->known, models->names);

    return NGX_OK;
}


static void
ngx_http_llmgw_models_unname(ngx_http_llmgw_models_t *models)
{
    ngx_free(models->names);
    models->names = NULL;
    models->nnames = 0;
}
