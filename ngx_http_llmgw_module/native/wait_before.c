
/*
 * llmgw_key ... queue=name: a native pass that waits for capacity.
 *
 * nginx's upstream cannot wait within `get`, so the request waits before its
 * content handler runs.  Its body is read as a whole; then it claims a replica,
 * and may wait in the same queue as the streams of llmgw_pass.  When it has a
 * lease the phases continue, and the first `get` finds the lease.  Since the
 * body is read first, a request cannot stream while it is answered: queue= is
 * for unary requests only.
 *
 * llmgw_key body and its like need the body too, and use this handler without
 * the wait.
 *
 * A request that waits has a timer that is not cancelable, so that a worker
 * that is told to exit waits for it.  A client that disconnects ends its
 * request, whose cleanup handler gives up its place in the queue.
 */

#include "http/grpc.h"
#include "http/header.h"
#include "native/native.h"


static void ngx_http_llmgw_native_body_read(ngx_http_request_t *r);
static void ngx_http_llmgw_native_park(ngx_http_llmgw_native_t *pass);
static ngx_int_t ngx_http_llmgw_native_watch(ngx_http_request_t *r);
static void ngx_http_llmgw_native_disarm(ngx_http_llmgw_native_t *pass);
static void ngx_http_llmgw_native_waited(ngx_http_llmgw_native_t *pass);
static void ngx_http_llmgw_native_turn(ngx_http_llmgw_claim_t *claim);
static void ngx_http_llmgw_native_timer_handler(ngx_event_t *ev);
static void ngx_http_llmgw_native_resume(ngx_http_request_t *r);
static void ngx_http_llmgw_native_end(ngx_http_llmgw_native_t *pass,
    llmgw_outcome_t outcome);
static ngx_int_t ngx_http_llmgw_native_refusal_headers(ngx_http_request_t *r,
    const llmgw_end_t *end, ngx_int_t status);


/* Runs in the PRECONTENT phase; called again when the phases continue. */

ngx_int_t
ngx_http_llmgw_native_handler(ngx_http_request_t *r)
{
    ngx_int_t                   rc;
    ngx_http_llmgw_native_t    *pass;
    ngx_http_llmgw_loc_conf_t  *llcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);

    /* a location without a content handler passes no request on */

    if (r != r->main || r->content_handler == NULL || llcf->upstream
        || (llcf->key_queue == NULL
            && llcf->key_from == NGX_HTTP_LLMGW_KEY_VALUE))
    {
        return NGX_DECLINED;
    }

    if (llcf->key_queue == NULL) {

        if (r->request_body) {
            return NGX_DECLINED;
        }

    } else {
        pass = ngx_http_llmgw_native_find(r);

        if (pass && (pass->state == NGX_HTTP_LLMGW_NATIVE_GRANTED
                      || pass->refused))
        {
            return NGX_DECLINED;
        }

        if (pass) {
            /*
             * the request's body could not be read, and an error_page
             * redirected it
             */
            ngx_http_llmgw_native_release(pass);
        }

        pass = ngx_http_llmgw_native_create(r, llcf->key_queue);
        if (pass == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        pass->state = NGX_HTTP_LLMGW_NATIVE_READS;
        ngx_http_set_ctx(r, &pass->record, ngx_http_llmgw_module);
    }

    rc = ngx_http_read_client_request_body(r, ngx_http_llmgw_native_body_read);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    ngx_http_finalize_request(r, NGX_DONE);

    return NGX_DONE;
}


static void
ngx_http_llmgw_native_body_read(ngx_http_request_t *r)
{
    ngx_http_llmgw_native_t    *pass;
    ngx_http_llmgw_loc_conf_t  *llcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);

    if (llcf->key_queue == NULL) {
        ngx_http_llmgw_native_resume(r);
        return;
    }

    pass = ngx_http_llmgw_native_find(r);

    ngx_http_llmgw_native_claim_init(pass);
    pass->claim.ask.spares_unproven = 1;
    pass->claim.turn = ngx_http_llmgw_native_turn;
    pass->wait_left_ms = ngx_http_llmgw_claim_patience(&pass->claim);

    if (!ngx_http_llmgw_native_may_enter(pass)) {
        ngx_http_llmgw_native_refuse(pass, &pass->refusal);
        return;
    }

    ngx_http_llmgw_native_park(pass);
}


/*
 * Claims a replica; then continues, waits or refuses.  The request may be gone
 * after this.
 */

static void
ngx_http_llmgw_native_park(ngx_http_llmgw_native_t *pass)
{
    ngx_http_request_t         *r;
    llmgw_admission_rc_t        rc;

    r = pass->request;
    rc = ngx_http_llmgw_native_claim(pass, 0);

    switch (rc) {

    case LLMGW_ADMISSION_LEASED:

        if (pass->stand_in) {
            ngx_http_llmgw_native_disarm(pass);
            ngx_http_llmgw_native_wait_ends(pass);
            return;
        }

        ngx_http_llmgw_native_resume(r);
        return;

    case LLMGW_ADMISSION_WAITS:
        break;

    case LLMGW_ADMISSION_FULL:
    case LLMGW_ADMISSION_SKIPPABLE:
        ngx_http_llmgw_native_end(pass, LLMGW_OUTCOME_QUEUE_FULL);
        return;

    case LLMGW_ADMISSION_SHED:
        ngx_http_llmgw_native_end(pass, LLMGW_OUTCOME_QUEUE_SHED);
        return;

    case LLMGW_ADMISSION_OPEN:
        ngx_http_llmgw_native_end(pass, LLMGW_OUTCOME_CIRCUITS_OPEN);
        return;

    default:
        ngx_http_llmgw_native_end(pass, LLMGW_OUTCOME_NO_REPLICAS);
        return;
    }

    if (pass->state == NGX_HTTP_LLMGW_NATIVE_WAITS) {
        /* the pass has waited before, perhaps for something else */
        ngx_http_llmgw_native_disarm(pass);
        ngx_http_llmgw_native_arm(pass);
        return;
    }

    pass->state = NGX_HTTP_LLMGW_NATIVE_WAITS;
    ngx_http_llmgw_native_arm(pass);

    if (ngx_http_llmgw_native_watch(r) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }
}


/* Watches for the client's end, which may have come with the body. */

static ngx_int_t
ngx_http_llmgw_native_watch(ngx_http_request_t *r)
{
    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    if (r->connection->read->ready) {
        ngx_post_event(r->connection->read, &ngx_posted_events);
        return NGX_OK;
    }

    return ngx_handle_read_event(r->connection->read, 0);
}


/*
 * Sets the timer for what is left of the queue's timeout, which all waits of a
 * request share, or of the client's deadline, or of the time for which it is
 * held while no replica is there, whichever is least.
 */

void
ngx_http_llmgw_native_arm(ngx_http_llmgw_native_t *pass)
{
    ngx_msec_t  ms, wait, spent;

    wait = pass->wait_left_ms;
    pass->wait_start_ms = ngx_current_msec;
    pass->has_deadline = 0;
    pass->has_hold_end = 0;

    ms = ngx_http_llmgw_grpc_timeout(pass->request);

    if (ms) {
        spent = ngx_current_msec - pass->record.start_ms;
        ms = (ms > spent) ? ms - spent : 0;

        if (ms < wait) {
            wait = ms;
            pass->has_deadline = 1;
        }
    }

    if (pass->claim.ask.hold_end_ms) {
        ms = pass->claim.ask.hold_end_ms
             - ngx_min(pass->claim.ask.hold_end_ms, ngx_current_msec);

        if (ms < wait) {
            wait = ms;
            pass->has_deadline = 0;
            pass->has_hold_end = 1;
        }
    }

    pass->timer.handler = ngx_http_llmgw_native_timer_handler;
    pass->timer.data = pass;
    pass->timer.log = pass->request->connection->log;

    ngx_add_timer(&pass->timer, wait);
}


/*
 * The wait has ended with a lease: its time counts for the request's next wait.
 */

static void
ngx_http_llmgw_native_disarm(ngx_http_llmgw_native_t *pass)
{
    if (pass->timer.timer_set) {
        ngx_http_llmgw_native_waited(pass);
        ngx_del_timer(&pass->timer);
    }
}


static void
ngx_http_llmgw_native_waited(ngx_http_llmgw_native_t *pass)
{
    ngx_msec_t  waited;

    waited = ngx_current_msec - pass->wait_start_ms;
    pass->wait_left_ms -= ngx_min(waited, pass->wait_left_ms);
}


/* Called when a waiting request is at the queue's head: it claims again. */

static void
ngx_http_llmgw_native_turn(ngx_http_llmgw_claim_t *claim)
{
    ngx_connection_t        *c;
    ngx_http_request_t      *r;
    ngx_http_llmgw_native_t  *pass;

    pass = ngx_queue_data(claim, ngx_http_llmgw_native_t, claim);

    r = pass->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ngx_http_llmgw_native_park(pass);

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_llmgw_native_timer_handler(ngx_event_t *ev)
{
    ngx_connection_t        *c;
    ngx_http_request_t      *r;
    ngx_http_llmgw_native_t  *pass = ev->data;

    r = pass->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    if (pass->has_hold_end) {
        ngx_http_llmgw_native_waited(pass);
        ngx_http_llmgw_native_park(pass);

    } else {
        ngx_http_llmgw_native_end(pass, pass->has_deadline
                                  ? LLMGW_OUTCOME_DEADLINE
                                  : ngx_http_llmgw_claim_expires(
                                        &pass->claim));
    }

    ngx_http_run_posted_requests(c);
}


/* Continues with the content handler, which finds the body read. */

static void
ngx_http_llmgw_native_resume(ngx_http_request_t *r)
{
    ngx_http_llmgw_native_t  *pass;

    pass = ngx_http_llmgw_native_find(r);

    if (pass) {
        ngx_http_llmgw_native_disarm(pass);
    }

    r->preserve_body = 1;
    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_core_run_phases;

    ngx_http_core_run_phases(r);
}


static void
ngx_http_llmgw_native_end(ngx_http_llmgw_native_t *pass,
    llmgw_outcome_t outcome)
{
    llmgw_end_t  end;

    ngx_memzero(&end, sizeof(llmgw_end_t));
    end.outcome = outcome;

    ngx_http_llmgw_native_refuse(pass, &end);
}


void
ngx_http_llmgw_native_refuse(ngx_http_llmgw_native_t *pass,
    const llmgw_end_t *end)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = pass->request;

    pass->refusal = *end;
    pass->refused = 1;

    if (pass->claim.traced) {
        ngx_http_llmgw_log_ended(pass->pool->conf->log, pass->claim.traced,
                                 end->outcome);
    }

    ngx_http_llmgw_native_wait_aborts(pass);
    ngx_http_llmgw_native_release(pass);
    ngx_http_llmgw_metrics_request(pass->pool->zone,
                                   ngx_http_llmgw_outcome_grpc(end),
                                   end->outcome);

    /* a subrequest has its parent's headers, and reports by its status */

    if (r == r->main
        && ngx_http_llmgw_header_is_grpc(r->headers_in.content_type))
    {
        ngx_http_llmgw_grpc_answer(r, end);
        return;
    }

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0, "llmgw: %s",
                  llmgw_outcome_text(end->outcome));

    rc = ngx_http_llmgw_outcome_http(end);

    if (ngx_http_llmgw_native_refusal_headers(r, end, rc) != NGX_OK) {
        rc = NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_finalize_request(r, rc);
}


/*
 * Adds the reason, and when to try again: after a 503 in a second, unless the
 * outcome has a time.
 */

static ngx_int_t
ngx_http_llmgw_native_refusal_headers(ngx_http_request_t *r,
    const llmgw_end_t *end, ngx_int_t status)
{
    int          ms;
    ngx_list_t  *list;

    list = &r->headers_out.headers;
    ms = ngx_http_llmgw_outcome_pushback_ms(end);

    if (ms == 0 && status == NGX_HTTP_SERVICE_UNAVAILABLE) {
        ms = 1000;
    }

    if (ms > 0
        && ngx_http_llmgw_header_number(r, list, "Retry-After",
                                        (ms + 999) / 1000)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_llmgw_header_reason(list, end);
}
