
/*
 * How one worker wakes another: an eventfd for each process slot of nginx's.
 *
 * The table is made by the master before the first fork that needs it, and is
 * handed on from one configuration to the next: old workers hold places for
 * which new ones wait, so both generations must reach each other.  For the same
 * reason it is indexed by process slot and not by worker number.
 *
 * A worker whose slot is beyond the table is not woken, but looks by itself
 * every 50 ms (attempt/queue.c).
 *
 * Wakes are posted, so that they follow what an iteration of the event loop
 * sends to replicas: the place of a cancelled stream is free at the replica
 * only when the replica knows.  Otherwise the other worker's request would come
 * first, and be refused as full.
 */

#include <sys/eventfd.h>

#include "zone/wake.h"
#include <ngx_channel.h>


struct ngx_http_llmgw_wakes_s {
    ngx_uint_t                    n;
    int                           fds[1];       /* n of them */
};


static ngx_http_llmgw_main_conf_t *ngx_http_llmgw_wake_had(ngx_cycle_t *old);
static ngx_http_llmgw_wakes_t *ngx_http_llmgw_wake_create(ngx_uint_t n,
    ngx_log_t *log);
static void ngx_http_llmgw_wake_posted(ngx_event_t *ev);
static void ngx_http_llmgw_wake_flush(ngx_http_llmgw_waker_t *waker);
static void ngx_http_llmgw_wake_write(ngx_http_llmgw_waker_t *waker,
    uint32_t process);
static void ngx_http_llmgw_wake_handler(ngx_event_t *ev);
static void ngx_http_llmgw_wake_drain(int fd);


/* Called in the master, for each configuration; not for `nginx -t`. */

ngx_int_t
ngx_http_llmgw_wake_init(ngx_cycle_t *cycle, ngx_http_llmgw_main_conf_t *lmcf)
{
    ngx_core_conf_t             *ccf;
    ngx_http_llmgw_main_conf_t  *had;

    if (ngx_test_config || lmcf->upstreams.nelts == 0) {
        return NGX_OK;
    }

    had = ngx_http_llmgw_wake_had(cycle->old_cycle);

    if (had && had->wakes) {
        lmcf->wakes = had->wakes;
        return NGX_OK;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    lmcf->wakes = ngx_http_llmgw_wake_create(
                      ngx_max(64, 4 * ccf->worker_processes), cycle->log);

    return lmcf->wakes ? NGX_OK : NGX_ERROR;
}


/*
 * NULL: the earlier configuration had no http{}, or was without the module.
 * Its array of modules' configurations then ends before our index.
 */

static ngx_http_llmgw_main_conf_t *
ngx_http_llmgw_wake_had(ngx_cycle_t *old)
{
    ngx_uint_t            i;
    ngx_http_conf_ctx_t  *ctx;

    if (old == NULL || old->conf_ctx == NULL || old->modules == NULL) {
        return NULL;
    }

    for (i = 0; old->modules[i] != &ngx_http_llmgw_module; i++) {
        if (old->modules[i] == NULL) {
            return NULL;
        }
    }

    ctx = (ngx_http_conf_ctx_t *) ngx_get_conf(old->conf_ctx, ngx_http_module);

    return ctx ? ctx->main_conf[ngx_http_llmgw_module.ctx_index] : NULL;
}


static ngx_http_llmgw_wakes_t *
ngx_http_llmgw_wake_create(ngx_uint_t n, ngx_log_t *log)
{
    ngx_uint_t               i;
    ngx_http_llmgw_wakes_t  *wakes;

    n = ngx_min(n, NGX_MAX_PROCESSES);

    wakes = ngx_calloc(sizeof(ngx_http_llmgw_wakes_t) + n * sizeof(int), log);
    if (wakes == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i++) {
        wakes->fds[i] = eventfd(0, EFD_NONBLOCK|EFD_CLOEXEC);

        if (wakes->fds[i] == -1) {
            ngx_log_error(NGX_LOG_WARN, log, ngx_errno,
                          "llmgw: eventfd() failed, %ui of %ui made", i, n);
            break;
        }
    }

    wakes->n = i;

    return wakes;
}


ngx_int_t
ngx_http_llmgw_wake_listen(ngx_http_llmgw_waker_t *waker,
    ngx_cycle_t *cycle)
{
    int                      fd;
    ngx_http_llmgw_wakes_t  *wakes;

    waker->post.handler = ngx_http_llmgw_wake_posted;
    waker->post.data = waker;
    waker->post.log = waker->log;

    waker->conf->waker = waker;
    wakes = waker->conf->wakes;

    if (wakes == NULL || ngx_process_slot < 0
        || (ngx_uint_t) ngx_process_slot >= wakes->n)
    {
        return NGX_OK;
    }

    fd = wakes->fds[ngx_process_slot];
    ngx_http_llmgw_wake_drain(fd);

    return ngx_add_channel_event(cycle, fd, NGX_READ_EVENT,
                                 ngx_http_llmgw_wake_handler);
}


void
ngx_http_llmgw_wake_process(ngx_http_llmgw_waker_t *waker, uint32_t process)
{
    if (waker->n == NGX_HTTP_LLMGW_WAKES) {
        ngx_http_llmgw_wake_flush(waker);
    }

    waker->slots[waker->n++] = process;
    ngx_post_event(&waker->post, &ngx_posted_events);
}


static void
ngx_http_llmgw_wake_posted(ngx_event_t *ev)
{
    ngx_http_llmgw_wake_flush(ev->data);
}


static void
ngx_http_llmgw_wake_flush(ngx_http_llmgw_waker_t *waker)
{
    ngx_uint_t  i;

    for (i = 0; i < waker->n; i++) {
        ngx_http_llmgw_wake_write(waker, waker->slots[i]);
    }

    waker->n = 0;

    if (waker->post.posted) {
        ngx_delete_posted_event(&waker->post);
    }
}


/*
 * Wakes that are posted are still sent: the workers that wait for them live on.
 */

void
ngx_http_llmgw_wake_done(ngx_http_llmgw_waker_t *waker)
{
    ngx_http_llmgw_wake_flush(waker);
    waker->conf->waker = NULL;
}


static void
ngx_http_llmgw_wake_write(ngx_http_llmgw_waker_t *waker, uint32_t process)
{
    uint64_t                 one;
    ngx_http_llmgw_wakes_t  *wakes;

    wakes = waker->conf->wakes;

    if (wakes == NULL || process >= wakes->n) {
        return;
    }

    one = 1;

    if (write(wakes->fds[process], &one, sizeof(one)) == -1
        && ngx_errno != NGX_EAGAIN)
    {
        ngx_log_error(NGX_LOG_ERR, waker->log, ngx_errno,
                      "llmgw: write() to an eventfd failed");
    }
}


static void
ngx_http_llmgw_wake_handler(ngx_event_t *ev)
{
    ngx_connection_t            *c;
    ngx_http_llmgw_main_conf_t  *lmcf;

    c = ev->data;
    ngx_http_llmgw_wake_drain(c->fd);

    lmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                               ngx_http_llmgw_module);

    if (lmcf && lmcf->waker) {
        lmcf->waker->woken(lmcf->waker->data);
    }
}


static void
ngx_http_llmgw_wake_drain(int fd)
{
    uint64_t  n;

    while (read(fd, &n, sizeof(n)) == sizeof(n)) {
        /* void */
    }
}
