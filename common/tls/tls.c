
/*
 * One connection's TLS, as a channel between socket and session.
 *
 * A record is read by two recv(2), its head and its body, so OpenSSL never
 * holds bytes that the socket no longer shows as readable.  Only if the buffer
 * had no room for a whole record, bytes could stay in OpenSSL; so reading stops
 * before that.
 */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

#include "common/tls/explain.h"
#include "common/tls/peer.h"
#include "common/tls/tls_inner.h"


typedef struct {
    SSL         *ssl;
    tls_peer_t   peer;
    int          read_wants_write;
    char         reason[TLS_REASON_BYTES];
} tls_conn_t;


/*
 * Sets the names to check.  A server without names accepts each certificate
 * that the CA has signed.
 */
static int
tls_expect(tls_conn_t *t, const address_t *peer, const char *names)
{
    t->peer.names = names;

    if (names != NULL) {
        return tls_peer_named(t->ssl, &t->peer);
    }

    return SSL_is_server(t->ssl)
           || tls_peer_at(t->ssl, (const struct sockaddr *) &peer->ss);
}


static void
tls_channel_close(void *channel)
{
    tls_conn_t  *t;

    t = channel;
    SSL_free(t->ssl);
    free(t);
}


static int
tls_begin(tls_conn_t *t, int fd, const address_t *peer, const char *names,
    int is_server)
{
    if (t->ssl == NULL || SSL_set_fd(t->ssl, fd) != 1) {
        return 0;
    }

    if (is_server) {
        SSL_set_accept_state(t->ssl);

    } else {
        SSL_set_connect_state(t->ssl);
    }

    return tls_expect(t, peer, names) == 1;
}


static void *
tls_channel_open(void *context, int fd, const address_t *peer,
    const char *names, int is_server)
{
    tls_t       *tls;
    tls_conn_t  *t;

    tls = context;
    tls_refresh(tls);
    t = calloc(1, sizeof(tls_conn_t));

    if (t == NULL) {
        return NULL;
    }

    t->ssl = SSL_new(tls->context);

    if (!tls_begin(t, fd, peer, names, is_server)) {
        ERR_clear_error();
        tls_channel_close(t);
        return NULL;
    }

    return t;
}


/* The outcome of a call that returned rc, 0 or less. */
static channel_rc_t
tls_outcome(tls_conn_t *t, int rc)
{
    int  error, fault;

    fault = errno;
    error = SSL_get_error(t->ssl, rc);

    switch (error) {

    case SSL_ERROR_WANT_READ:
        return CHANNEL_WANTS_READ;

    case SSL_ERROR_WANT_WRITE:
        return CHANNEL_WANTS_WRITE;

    default:
        if (t->reason[0] == '\0') {     /* the first reason is the cause */
            tls_explain(t->ssl, error, fault, t->reason, sizeof(t->reason));
        }

        ERR_clear_error();
        return error == SSL_ERROR_ZERO_RETURN ? CHANNEL_DONE : CHANNEL_BROKEN;
    }
}


/* Both ends have to use HTTP/2: a server without ALPN is refused. */
static channel_rc_t
tls_check_protocol(tls_conn_t *t)
{
    unsigned        len;
    const uint8_t  *protocol;

    SSL_get0_alpn_selected(t->ssl, &protocol, &len);

    if (len == 2 && memcmp(protocol, "h2", 2) == 0) {
        return CHANNEL_DONE;
    }

    strcpy(t->reason, "the peer does not offer HTTP/2 (ALPN \"h2\")");

    return CHANNEL_BROKEN;
}


static channel_rc_t
tls_channel_handshake(void *channel)
{
    int            rc;
    tls_conn_t    *t;
    channel_rc_t   outcome;

    t = channel;
    errno = 0;
    rc = SSL_do_handshake(t->ssl);

    if (rc == 1) {
        return tls_check_protocol(t);
    }

    outcome = tls_outcome(t, rc);

    return outcome == CHANNEL_DONE ? CHANNEL_BROKEN : outcome;
}


static ssize_t
tls_channel_read(void *channel, uint8_t *buf, size_t capacity)
{
    int          n;
    size_t       got;
    tls_conn_t  *t;

    t = channel;
    t->read_wants_write = 0;

    for (got = 0; capacity - got >= SSL3_RT_MAX_PLAIN_LENGTH; got += n) {
        errno = 0;
        n = SSL_read(t->ssl, buf + got, (int) (capacity - got));

        if (n == SSL3_RT_MAX_PLAIN_LENGTH) {
            continue;
        }

        if (n > 0) {
            return (ssize_t) got + n;   /* a short record is often the last */
        }

        switch (tls_outcome(t, n)) {

        case CHANNEL_WANTS_WRITE:
            t->read_wants_write = 1;
            /* fall through */

        case CHANNEL_WANTS_READ:
            errno = EAGAIN;
            return got > 0 ? (ssize_t) got : -1;

        case CHANNEL_DONE:
            return (ssize_t) got;

        default:
            errno = EPROTO;
            return got > 0 ? (ssize_t) got : -1;
        }
    }

    return (ssize_t) got;
}


/*
 * Each record is a write(2) of its own, and the peer should not wake for the
 * first of several: a row of 16 KiB there and back takes 59 us with this and
 * 112 us without (bench/peers/hop.c, on loopback).
 */
static void
tls_cork(tls_conn_t *t, int is_on)
{
    (void) setsockopt(SSL_get_fd(t->ssl), IPPROTO_TCP, TCP_CORK, &is_on,
                      sizeof(is_on));
}


static ssize_t
tls_put(tls_conn_t *t, const uint8_t *data, size_t len)
{
    int     n;
    size_t  put;

    for (put = 0; put < len; put += n) {
        errno = 0;
        n = SSL_write(t->ssl, data + put, (int) (len - put));

        if (n > 0) {
            continue;
        }

        if (tls_outcome(t, n) == CHANNEL_WANTS_WRITE) {
            errno = EAGAIN;
            return put > 0 ? (ssize_t) put : -1;
        }

        errno = EPROTO;
        return -1;
    }

    return (ssize_t) put;
}


static ssize_t
tls_channel_write(void *channel, const uint8_t *data, size_t len)
{
    int          fault;
    ssize_t      put;
    tls_conn_t  *t;

    t = channel;

    if (len <= SSL3_RT_MAX_PLAIN_LENGTH) {
        return tls_put(t, data, len);
    }

    tls_cork(t, 1);
    put = tls_put(t, data, len);
    fault = errno;
    tls_cork(t, 0);
    errno = fault;

    return put;
}


static int
tls_channel_read_wants_write(void *channel)
{
    tls_conn_t  *t;

    t = channel;

    return t->read_wants_write;
}


static void
tls_channel_finish(void *channel)
{
    tls_conn_t  *t;

    t = channel;
    (void) SSL_shutdown(t->ssl);
    ERR_clear_error();
}


static const char *
tls_channel_reason(void *channel)
{
    tls_conn_t  *t;

    t = channel;

    return t->reason;
}


const grpc_channel_t  tls_channel = {
    .open = tls_channel_open,
    .handshake = tls_channel_handshake,
    .read = tls_channel_read,
    .write = tls_channel_write,
    .read_wants_write = tls_channel_read_wants_write,
    .finish = tls_channel_finish,
    .reason = tls_channel_reason,
    .close = tls_channel_close
};
