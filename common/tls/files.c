
/*
 * A context of OpenSSL from three files.
 */

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/tls/tls_inner.h"


#define TLS_CIPHERS  "HIGH:!aNULL:!kRSA:!MD5:!RC4"      /* TLS 1.2's */

/* Protocols as ALPN has them: each behind its length. */
static const uint8_t  tls_protocols[] = { 2, 'h', '2' };


static int
tls_fail(char *error, const char *path, const char *what)
{
    if (access(path, R_OK) != 0) {
        what = strerror(errno);
    }

    snprintf(error, TLS_ERROR_BYTES, "\"%.200s\": %s", path, what);

    return -1;
}


/* A passphrase would be asked for on the terminal. */
static int
tls_no_passphrase(char *buf, int size, int is_written, void *data)
{
    return -1;
}


static int
tls_take_own(SSL_CTX *context, const tls_files_t *files, char *error)
{
    if (SSL_CTX_use_certificate_chain_file(context, files->cert) != 1) {
        return tls_fail(error, files->cert,
                        "there is no certificate in it, in PEM");
    }

    SSL_CTX_set_default_passwd_cb(context, tls_no_passphrase);

    if (SSL_CTX_use_PrivateKey_file(context, files->key, SSL_FILETYPE_PEM)
        == 1)
    {
        return 0;
    }

    return tls_fail(error, files->key,
                    ERR_GET_REASON(ERR_peek_last_error())
                    == X509_R_KEY_VALUES_MISMATCH
                    ? "this key is not the certificate's"
                    : "there is no private key in it, in PEM and without "
                      "a passphrase");
}


static int
tls_take_ca(SSL_CTX *context, const tls_files_t *files, char *error)
{
    STACK_OF(X509_NAME)  *names;

    if (SSL_CTX_load_verify_locations(context, files->ca, NULL) != 1
        || (names = SSL_load_client_CA_file(files->ca)) == NULL)
    {
        return tls_fail(error, files->ca,
                        "there is no certificate in it, in PEM");
    }

    SSL_CTX_set_client_CA_list(context, names);

    return 0;
}


static int
tls_choose_protocol(SSL *ssl, const uint8_t **chosen, uint8_t *len,
    const uint8_t *offered, unsigned offered_bytes, void *data)
{
    uint8_t  *selected;

    if (SSL_select_next_proto(&selected, len, tls_protocols,
                              sizeof(tls_protocols), offered, offered_bytes)
        != OPENSSL_NPN_NEGOTIATED)
    {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }

    *chosen = selected;

    return SSL_TLSEXT_ERR_OK;
}


static int
tls_set_rules(SSL_CTX *context)
{
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION|SSL_OP_NO_TICKET
                                 |SSL_OP_NO_COMPRESSION
                                 |SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE
                              |SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(context,
                       SSL_VERIFY_PEER|SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_alpn_select_cb(context, tls_choose_protocol, NULL);

    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1
           && SSL_CTX_set_num_tickets(context, 0) == 1
           && SSL_CTX_set_cipher_list(context, TLS_CIPHERS) == 1
           && SSL_CTX_set_alpn_protos(context, tls_protocols,
                                      sizeof(tls_protocols)) == 0;
}


SSL_CTX *
tls_context(const tls_files_t *files, char *error)
{
    SSL_CTX  *context;

    ERR_clear_error();
    context = SSL_CTX_new(TLS_method());

    if (context == NULL || !tls_set_rules(context)) {
        snprintf(error, TLS_ERROR_BYTES, "OpenSSL cannot be set up");

    } else if (tls_take_own(context, files, error) == 0
               && tls_take_ca(context, files, error) == 0)
    {
        return context;
    }

    SSL_CTX_free(context);

    return NULL;
}


/* 1: they are not those that were read, or cannot be looked at. */
static int
tls_look(const tls_files_t *files, struct stat now[TLS_NFILES],
    const struct stat seen[TLS_NFILES])
{
    int          i, is_changed;
    const char  *paths[TLS_NFILES] = { files->cert, files->key, files->ca };

    is_changed = 0;

    for (i = 0; i < TLS_NFILES; i++) {
        if (stat(paths[i], &now[i]) != 0) {
            memset(&now[i], 0, sizeof(now[i]));
        }

        is_changed |= now[i].st_dev != seen[i].st_dev
                      || now[i].st_ino != seen[i].st_ino
                      || now[i].st_size != seen[i].st_size
                      || now[i].st_mtim.tv_sec != seen[i].st_mtim.tv_sec
                      || now[i].st_mtim.tv_nsec != seen[i].st_mtim.tv_nsec;
    }

    return is_changed;
}


void
tls_refresh(tls_t *tls)
{
    char          error[TLS_ERROR_BYTES];
    SSL_CTX      *context;
    struct stat   now[TLS_NFILES];

    if (!tls_look(&tls->files, now, tls->seen)) {
        return;
    }

    /* Looked at before they are read: a change meanwhile is a new one. */

    memcpy(tls->seen, now, sizeof(now));
    context = tls_context(&tls->files, error);

    if (context == NULL) {
        log_write(tls->log, LOG_WARN, "the certificates of before are used, "
                  "since the new ones cannot be: %s", error);
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
    (void) tls_look(files, tls->seen, tls->seen);
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
