
/* Private to common/tls/: a set of files, and the context made from them. */

#ifndef TLS_INNER_H
#define TLS_INNER_H

#include "common/tls/tls.h"


struct tls_s {
    tls_files_t    files;
    const log_t   *log;
    SSL_CTX       *context;
    struct stat    seen[TLS_NFILES];    /* the files' states when they were
                                           read */
};


/* Reads changed files again.  A failure is logged, and changes nothing. */
void tls_refresh(tls_t *tls);

#endif /* TLS_INNER_H */
