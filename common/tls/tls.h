
/*
 * Mutual TLS for the daemons' gRPC connections, by OpenSSL.
 *
 * Both ends show a certificate, and accept only certificates that one CA has
 * signed; a client may show none to a server that does not ask.  Each end also
 * checks the names in the other end's certificate (peer.h): a client requires
 * a given name, or without one the address that it connects to; a server
 * requires one of the names that its options list, or without any accepts all.
 *
 * The files are read at start, and again for a new connection after one of
 * them has changed.  Files that cannot be read then are logged once, and the
 * earlier certificates stay in use.
 */

#ifndef TLS_H
#define TLS_H

#include "common/grpc/channel.h"
#include "common/log.h"
#include "common/tls/context.h"


typedef struct tls_s  tls_t;

/*
 * files and log must outlive it.  NULL and one line in error (TLS_ERROR_BYTES).
 */
tls_t *tls_open(const tls_files_t *files, const log_t *log, char *error);

/* Connections that were opened with it may live on.  NULL is accepted. */
void tls_close(tls_t *tls);

/* For grpc_conn_options_t; its context is the tls_t. */
extern const grpc_channel_t  tls_channel;

#endif /* TLS_H */
