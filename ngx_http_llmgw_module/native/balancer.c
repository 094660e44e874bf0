
/*
 * A pool of ours for nginx's upstream code: peer.init, get, free.
 *
 * `get` cannot wait: if the pool is full it returns NGX_BUSY, which becomes a
 * 502.  With queue= a request waits before the pass begins (wait_before.c), and
 * the first `get` finds its lease.  Before the answer's first byte nginx may
 * decide to try again (grpc_next_upstream, proxy_next_upstream).  That try
 * excludes the replicas that have failed, and with queue= it waits again if the
 * others are full (wait_within.c).
 */

#include "fleet/table.h"
#include "native/native.h"


#if (NGX_HTTP_SSL)
static ngx_int_t ngx_http_llmgw_native_set_session(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_llmgw_native_save_session(ngx_peer_connection_t *pc,
    void *data);
#endif
static ngx_int_t ngx_http_llmgw_native_get(ngx_peer_connection_t *pc,
    void *data);
static ngx_int_t ngx_http_llmgw_native_set_peer(ngx_http_llmgw_native_t *pass,
    ngx_peer_connection_t *pc);
static void ngx_http_llmgw_native_free(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);
static ngx_uint_t ngx_http_llmgw_native_is_refused(
    ngx_http_llmgw_native_t *pass, ngx_peer_connection_t *pc,
    ngx_uint_t state);
static void ngx_http_llmgw_native_note_connect(ngx_http_llmgw_native_t *pass,
    ngx_peer_connection_t *pc, ngx_uint_t state);
static ngx_uint_t ngx_http_llmgw_native_was_closed(ngx_peer_connection_t *pc,
    ngx_http_upstream_t *u);
static void ngx_http_llmgw_native_cleanup(void *data);


/* A pass of a request begins here. */

ngx_int_t
ngx_http_llmgw_native_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_upstream_t        *u;
    ngx_http_llmgw_native_t    *pass;
    ngx_http_llmgw_srv_conf_t  *conf;

    conf = ngx_http_conf_upstream_srv_conf(us, ngx_http_llmgw_module);
    pass = ngx_http_llmgw_native_find(r);

    if (pass && (pass->state != NGX_HTTP_LLMGW_NATIVE_GRANTED
                  || pass->pool->conf != conf))
    {
        /*
         * the earlier pass is over, or waited for another upstream than this
         * one
         */
        ngx_http_llmgw_native_release(pass);
        pass = NULL;
    }

    if (pass == NULL) {
        pass = ngx_http_llmgw_native_create(r, us);
        if (pass == NULL) {
            return NGX_ERROR;
        }

        ngx_http_llmgw_native_claim_init(pass);
        (void) ngx_http_llmgw_native_may_enter(pass);
    }

    /* a redirect may have cleared the context */
    ngx_http_set_ctx(r, &pass->record, ngx_http_llmgw_module);

    u = r->upstream;
    pass->upstream = u;

    ngx_http_llmgw_pool_look(pass->pool);

    u->peer.data = pass;
    u->peer.get = ngx_http_llmgw_native_get;
    u->peer.free = ngx_http_llmgw_native_free;
#if (NGX_HTTP_SSL)
    u->peer.set_session = ngx_http_llmgw_native_set_session;
    u->peer.save_session = ngx_http_llmgw_native_save_session;
#endif

    /*
     * one try for each replica that is usable, or may be soon: none is asked
     * twice
     */
    u->peer.tries = ngx_max(pass->pool->table->nusable, 1);

    return NGX_OK;
}


/*
 * nginx asks for these functions in a pass over TLS, where sessions may be
 * reused.  No TLS session is kept: it belongs to one replica, and connections
 * are nginx's own here.
 */

#if (NGX_HTTP_SSL)

static ngx_int_t
ngx_http_llmgw_native_set_session(ngx_peer_connection_t *pc, void *data)
{
    return NGX_OK;
}


static void
ngx_http_llmgw_native_save_session(ngx_peer_connection_t *pc, void *data)
{
}

#endif


ngx_http_llmgw_native_t *
ngx_http_llmgw_native_create(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_cleanup_t       *cln;
    ngx_http_llmgw_pool_t    *pool;
    ngx_http_llmgw_native_t  *pass;

    pool = ngx_http_llmgw_worker_pool_of(r, us);
    pass = ngx_pcalloc(r->pool, sizeof(ngx_http_llmgw_native_t));
    cln = ngx_http_cleanup_add(r, 0);

    if (pool == NULL || pass == NULL || cln == NULL) {
        return NULL;
    }

    pass->record.is_native = 1;
    pass->request = r;
    pass->pool = pool;
    pass->record.start_ms = ngx_current_msec;
    pass->running = 1;

    ngx_http_llmgw_pool_stream_begins(pool);

    cln->handler = ngx_http_llmgw_native_cleanup;
    cln->data = pass;

    return pass;
}


/* The decision log names the request by $request_id. */

void
ngx_http_llmgw_native_claim_init(ngx_http_llmgw_native_t *pass)
{
    ngx_http_request_t  *r;

    r = pass->request;

    ngx_http_llmgw_claim_init(&pass->claim, pass->pool, r->pool,
                              ngx_http_llmgw_native_hash(pass));

    if (!pass->claim.traced) {
        return;
    }

    pass->claim.traced->request = ngx_http_llmgw_record_own_id(r);
}


/*
 * The first pass that is found is the newest: handlers are added at the head.
 */

ngx_http_llmgw_native_t *
ngx_http_llmgw_native_find(ngx_http_request_t *r)
{
    ngx_http_cleanup_t      *cln;
    ngx_http_llmgw_native_t  *pass;

    for (cln = r->main->cleanup; cln; cln = cln->next) {

        if (cln->handler != ngx_http_llmgw_native_cleanup) {
            continue;
        }

        pass = cln->data;

        if (pass->request == r) {
            return pass;
        }
    }

    return NULL;
}


static ngx_int_t
ngx_http_llmgw_native_get(ngx_peer_connection_t *pc, void *data)
{
    llmgw_admission_rc_t        rc;
    ngx_http_llmgw_native_t    *pass = data;

    pc->cached = 0;
    pc->connection = NULL;

    if (pass->refusal.outcome != LLMGW_OUTCOME_SERVED) {
        return ngx_http_llmgw_native_turn_away(pass, pc);
    }

    if (pass->state != NGX_HTTP_LLMGW_NATIVE_GRANTED) {
        /* with so few tries waiting drops no exclusion */
        pass->claim.ask.is_last = 1;

        rc = ngx_http_llmgw_native_claim(pass,
                                     !ngx_http_llmgw_native_may_wait(pass));

        if (rc == LLMGW_ADMISSION_WAITS) {
            return ngx_http_llmgw_native_wait(pass, pc);
        }

        if (rc != LLMGW_ADMISSION_LEASED) {
            return NGX_BUSY;
        }
    }

    pass->state = NGX_HTTP_LLMGW_NATIVE_USES;
    pass->has_data = 0;

    if (ngx_http_llmgw_native_set_peer(pass, pc) != NGX_OK) {
        ngx_http_llmgw_native_give_back(pass, LLMGW_VERDICT_NEUTRAL);
        return NGX_ERROR;
    }

    return NGX_OK;
}


llmgw_admission_rc_t
ngx_http_llmgw_native_claim(ngx_http_llmgw_native_t *pass, ngx_uint_t no_wait)
{
    llmgw_admission_rc_t        rc;

    pass->claim.ask.no_wait = no_wait;

    rc = ngx_http_llmgw_claim(&pass->claim, &pass->lease,
                              &pass->record.route);

    if (rc == LLMGW_ADMISSION_LEASED) {
        pass->replica = pass->lease.replica;
        pass->replica->holders++;
        pass->state = NGX_HTTP_LLMGW_NATIVE_GRANTED;
    }

    return rc;
}


/*
 * nginx's log uses the name until the request's end, so it gets copies of its
 * own.
 */

static ngx_int_t
ngx_http_llmgw_native_set_peer(ngx_http_llmgw_native_t *pass,
    ngx_peer_connection_t *pc)
{
    ngx_str_t                 *name;
    ngx_pool_t                *pool;
    llmgw_usage_slot_t        *slot;
    ngx_http_llmgw_replica_t  *replica;

    replica = pass->replica;
    pool = pass->request->pool;

    name = ngx_palloc(pool, sizeof(ngx_str_t));
    if (name == NULL) {
        return NGX_ERROR;
    }

    name->len = replica->address.len;
    name->data = ngx_pstrdup(pool, &replica->address);
    pass->record.retried = (pass->record.attempts > 0);

    if (name->data == NULL
        || ngx_http_llmgw_record_attempt(&pass->record, pool,
                                         &replica->node.str)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    slot = ngx_http_llmgw_caller_slot(ngx_http_llmgw_caller(pass->request));

    if (slot) {
        llmgw_usage_replica(&slot->usage, (char *) replica->node.str.data,
                            replica->node.str.len);
    }

    ngx_memcpy(&pass->sockaddr, &replica->sockaddr, replica->socklen);

    pc->sockaddr = &pass->sockaddr.sockaddr;
    pc->socklen = replica->socklen;
    pc->name = name;

    return NGX_OK;
}


static void
ngx_http_llmgw_native_free(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state)
{
    ngx_uint_t                 is_absent;
    llmgw_verdict_t            verdict;
    ngx_http_upstream_t       *u;
    ngx_http_llmgw_native_t   *pass = data;
    ngx_http_llmgw_replica_t  *replica;

    replica = pass->replica;
    is_absent = replica && ngx_http_llmgw_replica_is_absent(replica)
                && ngx_http_llmgw_native_is_refused(pass, pc, state);

    if (pc->tries && !is_absent) {
        pc->tries--;
    }

    if (replica == NULL) {
        return;
    }

    u = pass->upstream;
    verdict = LLMGW_VERDICT_NEUTRAL;

    if (is_absent) {
        ngx_http_llmgw_claim_exclude(&pass->claim, pass->request->pool,
                                     replica, 0);

    } else if (!(state & NGX_PEER_FAILED)
               || !ngx_http_llmgw_native_was_closed(pc, u))
    {
        verdict = ngx_http_llmgw_native_verdict(pass, state);
        pass->is_served = ngx_http_llmgw_native_is_ok(pass, verdict);

        if (state & (NGX_PEER_FAILED|NGX_PEER_NEXT)) {
            ngx_http_llmgw_claim_exclude(&pass->claim,
                                         pass->request->pool,
                                         replica, 1);
        }
    }

    ngx_http_llmgw_native_note_connect(pass, pc, state);
    ngx_http_llmgw_native_give_back(pass, verdict);
}


/* 1: the connection was not established: nginx had not begun to send on it. */

static ngx_uint_t
ngx_http_llmgw_native_is_refused(ngx_http_llmgw_native_t *pass,
    ngx_peer_connection_t *pc, ngx_uint_t state)
{
    return (state & NGX_PEER_FAILED)
           && (pc->connection == NULL || !pass->upstream->request_sent);
}


/*
 * A replica that cannot be connected to gets a back-off, which ends only when
 * the replica has answered.
 */

static void
ngx_http_llmgw_native_note_connect(ngx_http_llmgw_native_t *pass,
    ngx_peer_connection_t *pc, ngx_uint_t state)
{
    ngx_http_upstream_t  *u;

    u = pass->upstream;

    if (ngx_http_llmgw_native_is_refused(pass, pc, state)) {
        ngx_http_llmgw_replica_connect_failed(pass->replica);

    } else if (pass->replica->reach.backoff_ms && u->state
               && u->state->bytes_received)
    {
        ngx_http_llmgw_replica_connected(pass->replica);
    }
}


/*
 * 1: a connection was kept alive, and the replica had closed it in the
 * meantime.  That is no failure, and nginx tries the next connection.
 */

static ngx_uint_t
ngx_http_llmgw_native_was_closed(ngx_peer_connection_t *pc,
    ngx_http_upstream_t *u)
{
    ngx_connection_t  *c;

    c = pc->connection;

    return pc->cached && u->state && u->state->bytes_received == 0
           && !(c && (c->read->timedout || c->write->timedout));
}


void
ngx_http_llmgw_native_give_back(ngx_http_llmgw_native_t *pass,
    llmgw_verdict_t verdict)
{
    if (pass->replica == NULL) {
        return;
    }

    pass->state = NGX_HTTP_LLMGW_NATIVE_RESTS;
    pass->replica->holders--;
    pass->replica = NULL;

    if (verdict == LLMGW_VERDICT_FAILURE) {
        ngx_http_llmgw_lease_fails(&pass->lease);
    }

    ngx_http_llmgw_lease_end(&pass->lease, verdict);
}


void
ngx_http_llmgw_native_release(ngx_http_llmgw_native_t *pass)
{
    if (!pass->running) {
        return;
    }

    pass->running = 0;
    ngx_http_llmgw_native_leave(pass);

    if (pass->record.attempts) {
        ngx_http_llmgw_metrics_time(pass->pool->zone,
                        NGX_HTTP_LLMGW_HISTOGRAM_stock_request_seconds,
                        ngx_current_msec - pass->record.start_ms);
    }

    if (pass->claim.pool) {
        ngx_http_llmgw_claim_leave(&pass->claim);
        ngx_http_llmgw_claim_clear_excluded(&pass->claim);
    }

    ngx_http_llmgw_native_give_back(pass, LLMGW_VERDICT_NEUTRAL);
    ngx_http_llmgw_native_wait_forget(pass);

    if (pass->timer.timer_set) {
        ngx_del_timer(&pass->timer);
    }

    ngx_http_llmgw_pool_stream_ends(pass->pool);

    pass->state = NGX_HTTP_LLMGW_NATIVE_RESTS;
}


/* Runs before nginx's own cleanup, whose `free` then finds no lease. */

static void
ngx_http_llmgw_native_cleanup(void *data)
{
    ngx_http_llmgw_native_release(data);
}
