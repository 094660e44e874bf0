
/*
 * Checks the names in the certificate of a connection's other end.
 *
 * By address: a subjectAltName IP:... that is the address connected to.
 *
 * By name: a subjectAltName DNS:... that is the name, byte for byte.  The
 * subject's common name does not count, and a name with "*" in a certificate
 * matches nothing: members' ids are such names, and a certificate for many
 * members must not be enough to take one member's traffic.  The expected name
 * may be a list of patterns with "*", as for a server: "gw*,ops".
 */

#ifndef TLS_PEER_H
#define TLS_PEER_H

#include <openssl/ssl.h>
#include <stddef.h>
#include <sys/socket.h>


#define TLS_REASON_BYTES  512

typedef struct {
    const char  *names;     /* outlives the handshake */
    char         reason[TLS_REASON_BYTES];  /* why the certificate does not
                                               match */
} tls_peer_t;


/* 1: one of the patterns is the name. */
int tls_names_match(const char *names, const char *name, size_t len);

/*
 * To be called before the handshake, to check by address.  1; or 0: no memory,
 * or no such kind of address.
 */
int tls_peer_at(SSL *ssl, const struct sockaddr *address);

/* The same by name; *peer is zeroed but for its names, and outlives the SSL. */
int tls_peer_named(SSL *ssl, tls_peer_t *peer);

#endif /* TLS_PEER_H */
