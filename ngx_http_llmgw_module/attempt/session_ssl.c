
/*
 * A session's handshake, and its bytes after that.
 *
 * OpenSSL reads ahead and may have bytes that the socket no longer shows, so
 * reading continues until OpenSSL has none.
 */

#include "attempt/session_ssl.h"


#if (NGX_HTTP_SSL)

#include <openssl/err.h>

#include "common/tls/explain.h"
#include "fleet/ssl.h"


struct ngx_http_llmgw_session_ssl_s {
    ngx_http_llmgw_ssl_peer_t     app;          /* first: it is the SSL's app
                                                   data */
    SSL                          *connection;
    u_char                        name[256];    /* which the peer has to have */
    char                          reason[TLS_REASON_BYTES];     /* of the
                                                                   failure */
    unsigned                      read_waits:1; /* until the socket is */
    unsigned                      write_waits:1;    /* writable, or readable */
    unsigned                      ended:1;      /* the peer sends no more */
    unsigned                      broken:1;
    unsigned                      was_reset:1;  /* ended by the network, not by
                                                   TLS */
};


static ngx_int_t ngx_http_llmgw_session_ssl_create(
    ngx_http_llmgw_session_t *session);
static ngx_int_t ngx_http_llmgw_session_ssl_expect(
    ngx_http_llmgw_session_t *session);
static ngx_int_t ngx_http_llmgw_session_ssl_host(
    ngx_http_llmgw_session_t *session, ngx_str_t *host);
static void ngx_http_llmgw_session_ssl_shaken(
    ngx_http_llmgw_session_t *session);
static void ngx_http_llmgw_session_ssl_tell(
    ngx_http_llmgw_session_t *session, const char *reason);
static void ngx_http_llmgw_session_ssl_failed(
    ngx_http_llmgw_session_t *session, const char *reason);
static ssize_t ngx_http_llmgw_session_ssl_recv(ngx_connection_t *c,
    u_char *buf, size_t size);
static ssize_t ngx_http_llmgw_session_ssl_send(ngx_connection_t *c,
    u_char *buf, size_t size);
static ngx_int_t ngx_http_llmgw_session_ssl_outcome(
    ngx_http_llmgw_session_t *session, int rc);


void
ngx_http_llmgw_session_ssl_begin(ngx_http_llmgw_session_t *session)
{
    session->shaking = 1;

    if (ngx_http_llmgw_session_ssl_create(session) != NGX_OK) {
        ngx_http_llmgw_session_ssl_failed(session, "out of memory");
        return;
    }

    ngx_http_llmgw_session_ssl_shake(session);
}


static ngx_int_t
ngx_http_llmgw_session_ssl_create(ngx_http_llmgw_session_t *session)
{
    BIO                           *bio;
    ngx_http_llmgw_ssl_t          *made;
    ngx_http_llmgw_session_ssl_t  *s;

    made = session->replica->pool->conf->ssl.made;

    s = ngx_calloc(sizeof(ngx_http_llmgw_session_ssl_t), &session->log);
    if (s == NULL) {
        return NGX_ERROR;
    }

    session->ssl = s;
    s->app.replica = session->replica;
    s->connection = SSL_new(made->context);
    bio = BIO_new(made->method);

    if (s->connection == NULL || bio == NULL) {
        BIO_free(bio);
        ERR_clear_error();
        return NGX_ERROR;
    }

    BIO_set_data(bio, session->peer.connection);
    BIO_set_init(bio, 1);
    SSL_set_bio(s->connection, bio, bio);
    SSL_set_connect_state(s->connection);
    SSL_set_app_data(s->connection, s);

    if (s->app.replica->resumed) {
        (void) SSL_set_session(s->connection, s->app.replica->resumed);
    }

    return ngx_http_llmgw_session_ssl_expect(session);
}


/*
 * The name that the peer's certificate has to have: by default the member's id.
 * So a peer that takes part in gossip, and claims another member's id, gets no
 * traffic.
 */

static ngx_int_t
ngx_http_llmgw_session_ssl_expect(ngx_http_llmgw_session_t *session)
{
    ngx_str_t                      name, *given;
    ngx_http_llmgw_replica_t      *replica;
    ngx_http_llmgw_session_ssl_t  *s;

    s = session->ssl;
    replica = session->replica;
    given = &replica->pool->conf->ssl.name;

    if (given->len != 6 || ngx_strncmp(given->data, "member", 6) != 0) {
        name = *given;

    } else if (!replica->is_static) {
        name = replica->node.str;

    } else if (ngx_http_llmgw_session_ssl_host(session, &name) != NGX_OK) {
        return tls_peer_at(s->connection, &replica->sockaddr.sockaddr)
               ? NGX_OK : NGX_ERROR;
    }

    (void) ngx_snprintf(s->name, sizeof(s->name) - 1, "%V", &name);
    s->app.peer.names = (char *) s->name;

    return tls_peer_named(s->connection, &s->app.peer) ? NGX_OK : NGX_ERROR;
}


/* The host of a static line; NGX_DECLINED: it is an address. */

static ngx_int_t
ngx_http_llmgw_session_ssl_host(ngx_http_llmgw_session_t *session,
    ngx_str_t *host)
{
    ngx_uint_t                 i;
    ngx_array_t               *statics;
    ngx_http_llmgw_static_t   *one;
    ngx_http_llmgw_replica_t  *replica;

    replica = session->replica;
    statics = &replica->pool->conf->statics;
    one = statics->elts;

    for (i = 0; i < statics->nelts; i++) {
        if (one[i].id.len == replica->node.str.len
            && ngx_memcmp(one[i].id.data, replica->node.str.data,
                          one[i].id.len) == 0)
        {
            *host = one[i].host;
            return host->len ? NGX_OK : NGX_DECLINED;
        }
    }

    return NGX_DECLINED;
}


void
ngx_http_llmgw_session_ssl_shake(ngx_http_llmgw_session_t *session)
{
    int                rc;
    ngx_int_t          outcome;
    ngx_connection_t  *c;

    c = session->peer.connection;

    ERR_clear_error();
    ngx_set_errno(0);
    rc = SSL_do_handshake(session->ssl->connection);

    if (rc == 1) {
        ngx_http_llmgw_session_ssl_shaken(session);
        return;
    }

    outcome = ngx_http_llmgw_session_ssl_outcome(session, rc);

    if (outcome == NGX_AGAIN && ngx_handle_read_event(c->read, 0) == NGX_OK
        && ngx_handle_write_event(c->write, 0) == NGX_OK)
    {
        return;
    }

    ngx_http_llmgw_session_ssl_failed(session, session->ssl->reason);
}


static void
ngx_http_llmgw_session_ssl_shaken(ngx_http_llmgw_session_t *session)
{
    unsigned           len;
    const u_char      *protocol;
    ngx_connection_t  *c;

    SSL_get0_alpn_selected(session->ssl->connection, &protocol, &len);

    if (len != 2 || ngx_memcmp(protocol, "h2", 2) != 0) {
        ngx_http_llmgw_session_ssl_failed(session, "the peer does not offer "
                                          "HTTP/2 (ALPN \"h2\")");
        return;
    }

    c = session->peer.connection;
    c->recv = ngx_http_llmgw_session_ssl_recv;
    c->send = ngx_http_llmgw_session_ssl_send;

    session->shaking = 0;

    /* bytes after the handshake may have been read already */

    ngx_post_event(c->read, &ngx_posted_events);
    ngx_http_llmgw_session_open(session);
}


/* A TLS session that was resumed is not resumed again. */

static void
ngx_http_llmgw_session_ssl_tell(ngx_http_llmgw_session_t *session,
    const char *reason)
{
    ngx_log_error(NGX_LOG_ERR, &session->log, 0,
                  "llmgw: no TLS with replica \"%V\" at %V: %s",
                  &session->replica->node.str, &session->replica->address,
                  reason);

    ngx_http_llmgw_ssl_forget(session->replica);
}


static void
ngx_http_llmgw_session_ssl_failed(ngx_http_llmgw_session_t *session,
    const char *reason)
{
    ngx_http_llmgw_session_ssl_tell(session, reason);
    ngx_http_llmgw_replica_connect_failed(session->replica);
    ngx_http_llmgw_session_fail(session, "TLS failed");
}


/*
 * The result of a call that returned rc: NGX_AGAIN, NGX_DONE at the end of the
 * peer's stream, or NGX_ERROR with a reason.
 *
 * A replica that refuses this end's certificate under TLS 1.3 does so when the
 * handshake is over here, and before HTTP/2 is ready: that is a failure to
 * connect, too.
 */

static ngx_int_t
ngx_http_llmgw_session_ssl_outcome(ngx_http_llmgw_session_t *session, int rc)
{
    int                            error;
    ngx_err_t                      err;
    ngx_http_llmgw_session_ssl_t  *s;

    s = session->ssl;
    err = ngx_socket_errno;
    error = SSL_get_error(s->connection, rc);

    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        return NGX_AGAIN;
    }

    tls_explain(s->connection, error, err, s->reason, sizeof(s->reason));
    ERR_clear_error();

    if (error == SSL_ERROR_ZERO_RETURN) {
        s->ended = 1;
        return NGX_DONE;
    }

    s->broken = 1;
    s->was_reset = (error == SSL_ERROR_SYSCALL);

    if (error == SSL_ERROR_SSL && !session->shaking) {
        ngx_http_llmgw_session_ssl_tell(session, s->reason);

        if (!session->ready) {
            ngx_http_llmgw_replica_connect_failed(session->replica);
        }
    }

    return NGX_ERROR;
}


static ssize_t
ngx_http_llmgw_session_ssl_recv(ngx_connection_t *c, u_char *buf, size_t size)
{
    int                            n;
    size_t                         got;
    ngx_http_llmgw_session_t      *session;
    ngx_http_llmgw_session_ssl_t  *s;

    session = c->data;
    s = session->ssl;
    s->read_waits = 0;

    if (s->write_waits) {
        s->write_waits = 0;
        ngx_http_llmgw_session_wake(session);
    }

    for (got = 0; got < size && !s->ended && !s->broken; got += n) {
        ERR_clear_error();
        ngx_set_errno(0);
        n = SSL_read(s->connection, buf + got, size - got);

        if (n > 0) {
            continue;
        }

        if (ngx_http_llmgw_session_ssl_outcome(session, n) == NGX_AGAIN) {
            s->read_waits = SSL_want_write(s->connection);
            return got ? (ssize_t) got : NGX_AGAIN;
        }

        n = 0;
    }

    /* there is more, or an end that the next call reports */

    c->read->ready = 1;

    if (got) {
        return got;
    }

    return s->broken ? NGX_ERROR : 0;
}


static ssize_t
ngx_http_llmgw_session_ssl_send(ngx_connection_t *c, u_char *buf, size_t size)
{
    int                            n;
    size_t                         put;
    ngx_http_llmgw_session_t      *session;
    ngx_http_llmgw_session_ssl_t  *s;

    session = c->data;
    s = session->ssl;

    for (put = 0; put < size; put += n) {
        ERR_clear_error();
        ngx_set_errno(0);
        n = SSL_write(s->connection, buf + put, size - put);

        if (n > 0) {
            continue;
        }

        if (ngx_http_llmgw_session_ssl_outcome(session, n) != NGX_AGAIN) {
            return NGX_ERROR;
        }

        s->write_waits = SSL_want_read(s->connection);
        return put ? (ssize_t) put : NGX_AGAIN;
    }

    return put;
}


ngx_uint_t
ngx_http_llmgw_session_ssl_reads(ngx_http_llmgw_session_t *session)
{
    return session->ssl && session->ssl->read_waits;
}


void
ngx_http_llmgw_session_ssl_done(ngx_http_llmgw_session_t *session)
{
    ngx_http_llmgw_session_ssl_t  *s;

    s = session->ssl;

    if (s == NULL) {
        return;
    }

    if (s->connection && !session->shaking) {

        if (!s->broken) {
            (void) SSL_shutdown(s->connection);
            ERR_clear_error();

        } else if (s->was_reset) {

            /* otherwise OpenSSL would not resume its TLS session */

            SSL_set_shutdown(s->connection,
                             SSL_SENT_SHUTDOWN|SSL_RECEIVED_SHUTDOWN);
        }
    }

    SSL_free(s->connection);
    ngx_free(s);
    session->ssl = NULL;
}

#endif
