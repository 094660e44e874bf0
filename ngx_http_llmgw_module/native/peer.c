
/*
 * A pool of ours as nginx's upstream asks for it: peer.init, get, free.
 *
 * `get` cannot wait: a pool that is full is NGX_BUSY, which is a 502.  With
 * queue= a request waits before the pass begins (queue.c), and brings its lease
 * along for the first `get`.  Another try before the answer's first byte is
 * nginx's to decide (grpc_next_upstream, proxy_next_upstream); here it finds
 * the replicas excluded that have failed, and waits again where the others are
 * full (wait.c).
 */

#include "native/native.h"
#include "upstream/table.h"


static ngx_int_t ngx_http_llmgw_stock_get(ngx_peer_connection_t *pc,
    void *data);
static ngx_int_t ngx_http_llmgw_stock_set_peer(ngx_http_llmgw_stock_t *stock,
    ngx_peer_connection_t *pc);
static void ngx_http_llmgw_stock_free(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);
static void ngx_http_llmgw_stock_note_connect(ngx_http_llmgw_stock_t *stock,
    ngx_peer_connection_t *pc, ngx_uint_t state);
static ngx_uint_t ngx_http_llmgw_stock_is_spent(ngx_peer_connection_t *pc,
    ngx_http_upstream_t *u);
static ngx_uint_t ngx_http_llmgw_stock_tries(ngx_http_llmgw_pool_t *pool);
static void ngx_http_llmgw_stock_cleanup(void *data);


/* nginx's peer.init: each pass of a request begins here. */

ngx_int_t
ngx_http_llmgw_stock_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_upstream_t        *u;
    ngx_http_llmgw_stock_t     *stock;
    ngx_http_llmgw_srv_conf_t  *conf;

    conf = ngx_http_conf_upstream_srv_conf(us, ngx_http_llmgw_module);
    stock = ngx_http_llmgw_stock_find(r);

    if (stock && (stock->state != NGX_HTTP_LLMGW_STOCK_GRANTED
                  || stock->stream.pool->conf != conf))
    {
        /* done with, or it waited for another upstream than it is passed to */
        ngx_http_llmgw_stock_release(stock);
        stock = NULL;
    }

    if (stock == NULL) {
        stock = ngx_http_llmgw_stock_create(r, us);
        if (stock == NULL) {
            return NGX_ERROR;
        }

        ngx_http_llmgw_claim_init(&stock->stream.claim, stock->stream.pool,
                                  ngx_http_llmgw_stock_hash(r, conf));
    }

    /* a redirect since may have cleared it */
    ngx_http_set_ctx(r, &stock->stream, ngx_http_llmgw_module);

    u = r->upstream;
    stock->upstream = u;

    u->peer.data = stock;
    u->peer.get = ngx_http_llmgw_stock_get;
    u->peer.free = ngx_http_llmgw_stock_free;
    u->peer.tries = ngx_http_llmgw_stock_tries(stock->stream.pool);

    return NGX_OK;
}


/* All that could serve, the excluded aside: nobody is asked twice. */

static ngx_uint_t
ngx_http_llmgw_stock_tries(ngx_http_llmgw_pool_t *pool)
{
    ngx_uint_t         i, n;
    llmgw_pick_pool_t  peers;

    ngx_http_llmgw_pool_look(pool);
    ngx_http_llmgw_table_peers(pool, &peers);

    n = 0;

    for (i = 0; i < peers.npeers; i++) {
        n += (peers.peers[i].state != LLMGW_PEER_UNUSABLE);
    }

    return ngx_max(n, 1);
}


ngx_http_llmgw_stock_t *
ngx_http_llmgw_stock_create(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_cleanup_t       *cln;
    ngx_http_llmgw_pool_t    *pool;
    ngx_http_llmgw_stock_t   *stock;
    ngx_http_llmgw_stream_t  *stream;

    pool = ngx_http_llmgw_worker_pool_of(r, us);
    stock = ngx_pcalloc(r->pool, sizeof(ngx_http_llmgw_stock_t));
    cln = ngx_http_cleanup_add(r, 0);

    if (pool == NULL || stock == NULL || cln == NULL) {
        return NULL;
    }

    stream = &stock->stream;

    stream->is_stock = 1;
    stream->request = r;
    stream->pool = pool;
    stream->start_ms = ngx_current_msec;
    stream->running = 1;
    stock->patience_ms = pool->conf->queue_timeout;

    ngx_http_llmgw_pool_stream_begins(pool);

    cln->handler = ngx_http_llmgw_stock_cleanup;
    cln->data = stock;

    return stock;
}


/* The request's last one: a cleanup handler is put before the others. */

ngx_http_llmgw_stock_t *
ngx_http_llmgw_stock_find(ngx_http_request_t *r)
{
    ngx_http_cleanup_t      *cln;
    ngx_http_llmgw_stock_t  *stock;

    for (cln = r->main->cleanup; cln; cln = cln->next) {

        if (cln->handler != ngx_http_llmgw_stock_cleanup) {
            continue;
        }

        stock = cln->data;

        if (stock->stream.request == r) {
            return stock;
        }
    }

    return NULL;
}


static ngx_int_t
ngx_http_llmgw_stock_get(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_llmgw_claim_rc_t   rc;
    ngx_http_llmgw_stock_t     *stock = data;

    pc->cached = 0;
    pc->connection = NULL;

    if (stock->state != NGX_HTTP_LLMGW_STOCK_GRANTED) {
        /* a wait keeps those excluded that have failed: tries are few */
        stock->stream.claim.is_last = 1;

        rc = ngx_http_llmgw_stock_claim(stock,
                                     !ngx_http_llmgw_stock_may_wait(stock));

        if (rc == NGX_HTTP_LLMGW_WAITS) {
            return ngx_http_llmgw_stock_wait(stock, pc);
        }

        if (rc != NGX_HTTP_LLMGW_LEASED) {
            return NGX_BUSY;
        }
    }

    stock->state = NGX_HTTP_LLMGW_STOCK_USES;
    stock->has_data = 0;

    if (ngx_http_llmgw_stock_set_peer(stock, pc) != NGX_OK) {
        ngx_http_llmgw_stock_give_back(stock, LLMGW_VERDICT_NEUTRAL);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* LEASED: the replica is held until ngx_http_llmgw_stock_give_back(). */

ngx_http_llmgw_claim_rc_t
ngx_http_llmgw_stock_claim(ngx_http_llmgw_stock_t *stock, ngx_uint_t no_wait)
{
    ngx_http_llmgw_stream_t    *stream;
    ngx_http_llmgw_claim_rc_t   rc;

    stream = &stock->stream;
    stream->claim.no_wait = no_wait;

    rc = ngx_http_llmgw_claim(&stream->claim, &stream->legs[0].lease,
                              &stream->route);

    if (rc == NGX_HTTP_LLMGW_LEASED) {
        stock->replica = stream->legs[0].lease.replica;
        stock->replica->holders++;
        stock->state = NGX_HTTP_LLMGW_STOCK_GRANTED;
    }

    return rc;
}


/* nginx keeps pointers to the name for its log: it goes with the request. */

static ngx_int_t
ngx_http_llmgw_stock_set_peer(ngx_http_llmgw_stock_t *stock,
    ngx_peer_connection_t *pc)
{
    ngx_str_t                 *name;
    ngx_pool_t                *pool;
    ngx_http_llmgw_stream_t   *stream;
    ngx_http_llmgw_replica_t  *replica;

    stream = &stock->stream;
    replica = stock->replica;
    pool = stream->request->pool;

    name = ngx_palloc(pool, sizeof(ngx_str_t));
    if (name == NULL) {
        return NGX_ERROR;
    }

    name->len = replica->address.len;
    name->data = ngx_pstrdup(pool, &replica->address);
    stream->replica.len = replica->node.str.len;
    stream->replica.data = ngx_pstrdup(pool, &replica->node.str);

    if (name->data == NULL || stream->replica.data == NULL) {
        stream->replica.len = 0;
        return NGX_ERROR;
    }

    ngx_memcpy(&stock->sockaddr, &replica->sockaddr, replica->socklen);

    pc->sockaddr = &stock->sockaddr.sockaddr;
    pc->socklen = replica->socklen;
    pc->name = name;

    stream->retried = (stream->attempts > 0);

    if (stream->attempts++ == 0) {
        stream->queue_ms = ngx_current_msec - stream->start_ms;
    }

    return NGX_OK;
}


static void
ngx_http_llmgw_stock_free(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state)
{
    llmgw_verdict_t            verdict;
    ngx_http_upstream_t       *u;
    ngx_http_llmgw_stock_t    *stock = data;
    ngx_http_llmgw_replica_t  *replica;

    if (pc->tries) {
        pc->tries--;
    }

    replica = stock->replica;

    if (replica == NULL) {
        return;
    }

    u = stock->upstream;
    verdict = LLMGW_VERDICT_NEUTRAL;

    if (!(state & NGX_PEER_FAILED) || !ngx_http_llmgw_stock_is_spent(pc, u)) {
        verdict = ngx_http_llmgw_stock_verdict(stock, state);

        if (state & (NGX_PEER_FAILED|NGX_PEER_NEXT)) {
            ngx_http_llmgw_claim_exclude(&stock->stream.claim,
                                         stock->stream.request->pool,
                                         replica, 1);
        }
    }

    ngx_http_llmgw_stock_note_connect(stock, pc, state);
    ngx_http_llmgw_stock_give_back(stock, verdict);
}


/*
 * Who cannot be connected to is left alone for a while.  nginx has begun to
 * send only where the connection stood; one that was kept, and is not here any
 * more, did.  Only who answers has its back-off taken back.
 */

static void
ngx_http_llmgw_stock_note_connect(ngx_http_llmgw_stock_t *stock,
    ngx_peer_connection_t *pc, ngx_uint_t state)
{
    ngx_uint_t            failed;
    ngx_http_upstream_t  *u;

    u = stock->upstream;
    failed = (state & NGX_PEER_FAILED)
             && (pc->connection == NULL || !u->request_sent);

    if (failed) {
        ngx_http_llmgw_replica_connect_failed(stock->replica);

    } else if (stock->replica->backoff && u->state
               && u->state->bytes_received)
    {
        ngx_http_llmgw_replica_connected(stock->replica);
    }
}


/*
 * A kept connection that the replica had closed in the meantime: that is no
 * fault, and nginx tries once more with the next one, or with a new one.
 */

static ngx_uint_t
ngx_http_llmgw_stock_is_spent(ngx_peer_connection_t *pc,
    ngx_http_upstream_t *u)
{
    ngx_connection_t  *c;

    c = pc->connection;

    return pc->cached && u->state && u->state->bytes_received == 0
           && !(c && (c->read->timedout || c->write->timedout));
}


void
ngx_http_llmgw_stock_give_back(ngx_http_llmgw_stock_t *stock,
    llmgw_verdict_t verdict)
{
    if (stock->replica == NULL) {
        return;
    }

    stock->state = NGX_HTTP_LLMGW_STOCK_RESTS;
    stock->replica->holders--;
    stock->replica = NULL;

    if (verdict == LLMGW_VERDICT_FAILURE) {
        ngx_http_llmgw_lease_fails(&stock->stream.legs[0].lease);
    }

    ngx_http_llmgw_lease_end(&stock->stream.legs[0].lease, verdict);
}


/* All that is not the request's memory; idempotent. */

void
ngx_http_llmgw_stock_release(ngx_http_llmgw_stock_t *stock)
{
    ngx_http_llmgw_stream_t  *stream;

    stream = &stock->stream;

    if (!stream->running) {
        return;
    }

    stream->running = 0;

    if (stream->attempts) {
        ngx_http_llmgw_metrics_time(stream->pool->zone,
                        NGX_HTTP_LLMGW_HISTOGRAM_stock_request_seconds,
                        ngx_current_msec - stream->start_ms);
    }

    if (stream->claim.pool) {
        ngx_http_llmgw_claim_leave(&stream->claim);
        ngx_http_llmgw_claim_clear_excluded(&stream->claim);
    }

    ngx_http_llmgw_stock_give_back(stock, LLMGW_VERDICT_NEUTRAL);
    ngx_http_llmgw_stock_wait_forget(stock);
    ngx_http_llmgw_timer_done(stream);
    ngx_http_llmgw_pool_stream_ends(stream->pool);

    stock->state = NGX_HTTP_LLMGW_STOCK_RESTS;
}


/* Before nginx's own, whose `free` then finds no lease. */

static void
ngx_http_llmgw_stock_cleanup(void *data)
{
    ngx_http_llmgw_stock_release(data);
}
