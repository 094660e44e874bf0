
/*
 * Checks a key file once a second, by its path: a link may be replaced, as
 * Kubernetes does with its volumes.
 *
 * A change is read when two looks in a row have found the same, one step in
 * each iteration of the event loop.  Only a set that was read whole replaces
 * the one before, so a file that is missing, being written or wrong invalidates
 * no key.  Running requests keep the set by which they were admitted.
 */

#include "keys/set.h"


struct ngx_http_llmgw_key_watch_s {
    ngx_http_llmgw_key_load_t     load;
    ngx_http_llmgw_key_file_t     seen;         /* as of the last look */
    ngx_http_llmgw_key_file_t     wrong;        /* its error was logged */
    ngx_event_t                   step;
    ngx_log_t                    *log;
    unsigned                      loads:1;
    unsigned                      missing:1;    /* already logged */
};


static void ngx_http_llmgw_key_watch_load(ngx_http_llmgw_keys_t *keys);
static void ngx_http_llmgw_key_watch_step(ngx_event_t *ev);
static void ngx_http_llmgw_key_watch_fails(ngx_http_llmgw_keys_t *keys);
static void ngx_http_llmgw_key_watch_loaded(ngx_http_llmgw_keys_t *keys);


ngx_int_t
ngx_http_llmgw_key_watch_begin(ngx_http_llmgw_keys_t *keys,
    ngx_cycle_t *cycle)
{
    ngx_http_llmgw_key_watch_t  *watch;

    watch = ngx_pcalloc(cycle->pool, sizeof(ngx_http_llmgw_key_watch_t));
    if (watch == NULL) {
        return NGX_ERROR;
    }

    watch->log = cycle->log;
    watch->step.handler = ngx_http_llmgw_key_watch_step;
    watch->step.data = keys;
    watch->step.log = cycle->log;
    keys->watch = watch;

    return NGX_OK;
}


void
ngx_http_llmgw_key_watch_end(ngx_http_llmgw_keys_t *keys)
{
    ngx_http_llmgw_key_watch_t  *watch;

    watch = keys->watch;
    keys->watch = NULL;

    if (watch->step.posted) {
        ngx_delete_posted_event(&watch->step);
    }

    if (watch->loads) {
        llmgw_keys_destroy(watch->load.keys);
        ngx_http_llmgw_key_load_end(&watch->load);
    }
}


void
ngx_http_llmgw_key_watch_look(ngx_http_llmgw_keys_t *keys)
{
    ngx_err_t                    err;
    ngx_http_llmgw_key_file_t    file;
    ngx_http_llmgw_key_watch_t  *watch;

    watch = keys->watch;

    if (watch->loads) {
        return;
    }

    if (ngx_http_llmgw_key_file_look((char *) keys->path.data, &file)
        != NGX_OK)
    {
        err = ngx_errno;

        ngx_memzero(&file, sizeof(ngx_http_llmgw_key_file_t));

        if (!watch->missing && ngx_http_llmgw_keys_logged(keys, &file)) {
            ngx_log_error(NGX_LOG_ERR, watch->log, err,
                          "llmgw: key file \"%V\" cannot be checked; the keys "
                          "read before stay in force", &keys->path);
        }

        watch->missing = 1;
        return;
    }

    if (watch->missing) {
        watch->missing = 0;
        (void) ngx_http_llmgw_keys_logged(keys, &file);
    }

    if (!ngx_http_llmgw_key_file_is(&file, &watch->seen)) {
        watch->seen = file;
        return;
    }

    if (!ngx_http_llmgw_key_file_is(&file, &keys->set->file)
        && !ngx_http_llmgw_key_file_is(&file, &watch->wrong))
    {
        ngx_http_llmgw_key_watch_load(keys);
    }
}


static void
ngx_http_llmgw_key_watch_load(ngx_http_llmgw_keys_t *keys)
{
    ngx_http_llmgw_key_watch_t  *watch;

    watch = keys->watch;

    if (ngx_http_llmgw_key_load_begin(&watch->load, (char *) keys->path.data)
        != NGX_OK)
    {
        ngx_http_llmgw_key_watch_fails(keys);
        return;
    }

    watch->loads = 1;
    ngx_post_event(&watch->step, &ngx_posted_next_events);
}


static void
ngx_http_llmgw_key_watch_step(ngx_event_t *ev)
{
    ngx_int_t                    rc;
    ngx_http_llmgw_keys_t       *keys;
    ngx_http_llmgw_key_watch_t  *watch;

    keys = ev->data;
    watch = keys->watch;
    rc = ngx_http_llmgw_key_load_step(&watch->load);

    if (rc == NGX_AGAIN) {
        ngx_post_event(ev, &ngx_posted_next_events);
        return;
    }

    watch->loads = 0;
    ngx_http_llmgw_key_load_end(&watch->load);

    if (rc == NGX_OK) {
        ngx_http_llmgw_key_watch_loaded(keys);

    } else if (rc == NGX_ERROR) {
        ngx_http_llmgw_key_watch_fails(keys);
    }
}


/* Each worker finds the same error; one of them logs it. */

static void
ngx_http_llmgw_key_watch_fails(ngx_http_llmgw_keys_t *keys)
{
    ngx_http_llmgw_key_watch_t  *watch;

    watch = keys->watch;
    watch->wrong = watch->seen;

    if (ngx_http_llmgw_keys_logged(keys, &watch->wrong)) {
        ngx_http_llmgw_key_error(keys, &watch->load.error, NGX_LOG_ERR,
                                 watch->log);
    }
}


static void
ngx_http_llmgw_key_watch_loaded(ngx_http_llmgw_keys_t *keys)
{
    ngx_http_llmgw_key_set_t    *set;
    ngx_http_llmgw_key_watch_t  *watch;

    watch = keys->watch;
    set = ngx_http_llmgw_key_set_create(watch->load.keys, &watch->load.file);

    if (set == NULL) {
        return;                 /* the next look tries again */
    }

    if (ngx_http_llmgw_keys_publish(keys, set)) {
        ngx_log_error(NGX_LOG_NOTICE, watch->log, 0,
                      "llmgw: key file \"%V\" was read again: %uD keys, %uD "
                      "accounts", &keys->path, set->keys->nkeys - 1,
                      set->keys->naccounts);
    }

    ngx_http_llmgw_key_set_release(keys->set);
    keys->set = set;
}
