
/*
 * Private to common/tls/: what is made of files, and what errors mean.
 */

#ifndef TLS_INNER_H
#define TLS_INNER_H

#include <openssl/ssl.h>
#include <sys/stat.h>

#include "common/tls/tls.h"


#define TLS_NFILES  3

struct tls_s {
    tls_files_t    files;
    const log_t   *log;
    SSL_CTX       *context;
    struct stat    seen[TLS_NFILES];    /* the files when they were read */
};


/*
 * files.c: everything from the files.  NULL and one line in error
 * (TLS_ERROR_BYTES).
 */
SSL_CTX *tls_context(const tls_files_t *files, char *error);

/* Reads changed files again; what fails is logged, and changes nothing. */
void tls_refresh(tls_t *tls);

/*
 * explain.c: what the failed call means and what to do about it, as one
 * line.  rc is its SSL_get_error(), fault the errno behind it.
 */
void tls_explain(SSL *ssl, int rc, int fault, char *buf, size_t capacity);

#endif /* TLS_INNER_H */
