
/*
 * OpenSSL's settings for our connections, from three files: what daemons
 * (tls.h) and nginx share.
 *
 * TLS 1.2 or later, h2 agreed upon by ALPN (RFC 9113, 3.3; RFC 7301), no
 * renegotiation, no compression.  Writes may be partial, and may be repeated
 * from another buffer.
 */

#ifndef TLS_CONTEXT_H
#define TLS_CONTEXT_H

#include <openssl/ssl.h>
#include <sys/stat.h>


#define TLS_ERROR_BYTES  512
#define TLS_NFILES       3

/*
 * Paths of files in PEM; cert's has the certificates between it and the CA,
 * too.
 */
typedef struct {
    const char  *cert;      /* NULL, like key: a client that shows none */
    const char  *key;
    const char  *ca;        /* NULL: a client that accepts any certificate */

    /*
     * A server gives out tickets, so that a client that comes again need not
     * prove itself again.  Tickets are valid until the files change.
     */
    int          has_tickets;
} tls_files_t;


/*
 * Checks that the options go together; names are those of cert, key and ca.
 * needs_own: a certificate must be shown.  0, or -1 and one line in error
 * (TLS_ERROR_BYTES).
 */
int tls_files_check(const tls_files_t *files,
    const char *const names[TLS_NFILES], int needs_own, char *error);

/*
 * Makes a context.  NULL and one line in error (TLS_ERROR_BYTES), which names
 * the file.
 */
SSL_CTX *tls_context(const tls_files_t *files, char *error);

/*
 * 1: a file differs from its state in seen, by device, inode, size or time.
 * *now gets the present states; zeros for a file that cannot be looked at.
 */
int tls_files_look(const tls_files_t *files, struct stat now[TLS_NFILES],
    const struct stat seen[TLS_NFILES]);

#endif /* TLS_CONTEXT_H */
