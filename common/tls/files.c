
/*
 * Certificates that are read again when their files have changed.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tls/tls_inner.h"


void
tls_refresh(tls_t *tls)
{
    char          error[TLS_ERROR_BYTES];
    SSL_CTX      *context;
    struct stat   now[TLS_NFILES];

    if (!tls_files_look(&tls->files, now, tls->seen)) {
        return;
    }

    /*
     * states were read before the files: a change meanwhile is found next time
     */

    memcpy(tls->seen, now, sizeof(now));
    context = tls_context(&tls->files, error);

    if (context == NULL) {
        log_write(tls->log, LOG_WARN, "the previous certificates stay in use, "
                  "since the new ones cannot be used: %s", error);
        return;
    }

    SSL_CTX_free(tls->context);
    tls->context = context;
    log_write(tls->log, LOG_INFO, "certificates were read again");
}


tls_t *
tls_open(const tls_files_t *files, const log_t *log, char *error)
{
    tls_t  *tls;

    tls = calloc(1, sizeof(tls_t));

    if (tls == NULL) {
        snprintf(error, TLS_ERROR_BYTES, "out of memory");
        return NULL;
    }

    tls->files = *files;
    tls->log = log;
    (void) tls_files_look(files, tls->seen, tls->seen);
    tls->context = tls_context(files, error);

    if (tls->context == NULL) {
        free(tls);
        return NULL;
    }

    return tls;
}


void
tls_close(tls_t *tls)
{
    if (tls != NULL) {
        SSL_CTX_free(tls->context);
        free(tls);
    }
}
