
/*
 * Mutual TLS for the daemons' gRPC connections, by OpenSSL.
 *
 * Both ends show a certificate, and accept only those that one CA has signed.
 * The client also looks whether the server's certificate names the address
 * that it connects to (subjectAltName, IP:...).  TLS 1.2 or later, with h2
 * agreed upon by ALPN (RFC 9113, 3.3; RFC 7301).  No sessions are resumed: the
 * connections live for hours.
 *
 * The files are read at start, and again for a new connection after one of
 * them has changed.  What cannot be read then is logged once, and the earlier
 * certificates serve on.
 */

#ifndef TLS_H
#define TLS_H

#include "common/grpc/channel.h"
#include "common/log.h"


#define TLS_ERROR_BYTES  512

typedef struct tls_s  tls_t;

/* Each in PEM; cert is followed by what lies between it and the CA. */
typedef struct {
    const char  *cert;
    const char  *key;
    const char  *ca;
} tls_files_t;

/* files and log outlive it.  NULL and one line in error (TLS_ERROR_BYTES). */
tls_t *tls_open(const tls_files_t *files, const log_t *log, char *error);

/* Connections that it opened may live on.  NULL is fine. */
void tls_close(tls_t *tls);

/* For grpc_conn_options_t; its context is the tls_t. */
extern const grpc_channel_t  tls_channel;

#endif /* TLS_H */
