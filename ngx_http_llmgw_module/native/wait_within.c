
/*
 * A wait within the pass, and a refusal.
 *
 * If the replica of a request with queue= fails, nginx asks `get` for another
 * one.  If the others are full the request goes back into the queue, with its
 * old ticket.  nginx's upstream has no way to wait; but it does wait for a
 * connection that is being established.  So it gets a stand-in for the
 * replica's connection: an eventfd, which brings no event.  When the request is
 * granted a replica, nginx is told that this connection has failed, and calls
 * `get` again, which finds the lease.
 *
 *     get: full --> stand-in, in the queue --+--> granted: "connect failed",
 *                                            |    nginx's next try, get
 *                                            +--> refused: the pass is ended,
 *                                            |    answered as before the pass
 *                                            +--> the client goes: nginx ends
 *     get: may not enter --> stand-in, and refused at once
 *
 * The connect timer that nginx sets is deleted: the queue's timeout limits the
 * wait.  A wait needs "error" in proxy_next_upstream or grpc_next_upstream,
 * which is there by default; without it a full pool is a 502 here, too.
 * $upstream_addr shows the upstream's name for a wait.
 */

#include <sys/eventfd.h>

#include "native/native.h"


static ngx_int_t ngx_http_llmgw_native_stand_in(
    ngx_http_llmgw_native_t *pass, ngx_peer_connection_t *pc,
    ngx_event_handler_pt handler);
static void ngx_http_llmgw_native_disarm_handler(ngx_event_t *ev);
static void ngx_http_llmgw_native_refuse_handler(ngx_event_t *ev);


ngx_uint_t
ngx_http_llmgw_native_may_wait(ngx_http_llmgw_native_t *pass)
{
    return pass->claim.turn
           && (pass->upstream->conf->next_upstream
               & NGX_HTTP_UPSTREAM_FT_ERROR);
}


/* To be called when the claim is in the queue.  Returns what `get` returns. */

ngx_int_t
ngx_http_llmgw_native_wait(ngx_http_llmgw_native_t *pass,
    ngx_peer_connection_t *pc)
{
    if (ngx_http_llmgw_native_stand_in(pass, pc,
                                       ngx_http_llmgw_native_disarm_handler)
        != NGX_AGAIN)
    {
        ngx_http_llmgw_claim_leave(&pass->claim);
        return NGX_BUSY;
    }

    pass->state = NGX_HTTP_LLMGW_NATIVE_WAITS;
    ngx_http_llmgw_native_arm(pass);

    return NGX_AGAIN;
}


/* For a pass that may not enter: it is refused after `get`. */

ngx_int_t
ngx_http_llmgw_native_turn_away(ngx_http_llmgw_native_t *pass,
    ngx_peer_connection_t *pc)
{
    return ngx_http_llmgw_native_stand_in(pass, pc,
                                       ngx_http_llmgw_native_refuse_handler);
}


/*
 * NGX_AGAIN: nginx has a connection to wait for, and the handler is called
 * after `get`, when nginx has set its timer.
 */

static ngx_int_t
ngx_http_llmgw_native_stand_in(ngx_http_llmgw_native_t *pass,
    ngx_peer_connection_t *pc, ngx_event_handler_pt handler)
{
    int                fd;
    ngx_log_t         *log;
    ngx_connection_t  *c;

    log = pass->request->connection->log;

    fd = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);
    if (fd == -1) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno, "eventfd() failed");
        return NGX_BUSY;
    }

    c = ngx_get_connection(fd, log);
    if (c == NULL) {
        (void) close(fd);
        return NGX_BUSY;
    }

    pass->stand_in = c;
    pass->after_get.handler = handler;
    pass->after_get.data = pass;
    pass->after_get.log = log;
    ngx_post_event(&pass->after_get, &ngx_posted_events);

    pc->connection = c;
    pc->name = &pass->pool->conf->name;

    return NGX_AGAIN;
}


static void
ngx_http_llmgw_native_disarm_handler(ngx_event_t *ev)
{
    ngx_http_llmgw_native_t  *pass = ev->data;

    if (pass->stand_in && pass->stand_in->write->timer_set) {
        ngx_del_timer(pass->stand_in->write);
    }
}


static void
ngx_http_llmgw_native_refuse_handler(ngx_event_t *ev)
{
    ngx_connection_t         *c;
    ngx_http_request_t       *r;
    ngx_http_llmgw_native_t  *pass = ev->data;

    r = pass->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ngx_http_llmgw_native_refuse(pass, &pass->refusal);

    ngx_http_run_posted_requests(c);
}


/* The pass has a lease.  The request may have ended when this returns. */

void
ngx_http_llmgw_native_wait_ends(ngx_http_llmgw_native_t *pass)
{
    ngx_event_t       *wev;
    ngx_connection_t  *c;

    c = pass->stand_in;
    wev = c->write;

    ngx_http_llmgw_native_wait_forget(pass);

    /* nginx would log a failure, but there was none */
    c->log = &pass->silent;

    wev->handler(wev);
}


/*
 * Ends the pass, so that the request can be answered without it.  Does nothing
 * if the request does not wait within a pass.
 */

void
ngx_http_llmgw_native_wait_aborts(ngx_http_llmgw_native_t *pass)
{
    ngx_http_request_t  *r;

    if (pass->stand_in == NULL) {
        return;
    }

    ngx_http_llmgw_native_wait_forget(pass);

    r = pass->request;

    /* the pass drops one reference, the answer another */
    r->main->count++;

    (*pass->upstream->cleanup)(r);
}


/* nginx closes the connection itself. */

void
ngx_http_llmgw_native_wait_forget(ngx_http_llmgw_native_t *pass)
{
    pass->stand_in = NULL;

    if (pass->after_get.posted) {
        ngx_delete_posted_event(&pass->after_get);
    }
}
