
/*
 * A context of OpenSSL from three files.
 */

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/tls/context.h"


#define TLS_CIPHERS  "HIGH:!aNULL:!kRSA:!MD5:!RC4"      /* TLS 1.2's */

/* Protocols in the form of ALPN: each after its length. */
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


/* Without this, OpenSSL would ask for a passphrase on the terminal. */
static int
tls_no_passphrase(char *buf, int size, int is_written, void *data)
{
    return -1;
}


static int
tls_take_own(SSL_CTX *context, const tls_files_t *files, char *error)
{
    if (files->cert == NULL) {
        return 0;
    }

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

    if (files->ca == NULL) {
        SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
        return 0;
    }

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
tls_set_tickets(SSL_CTX *context, int has_tickets)
{
    static const uint8_t  of[] = "llmgw";

    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);

    if (has_tickets) {
        return SSL_CTX_set_num_tickets(context, 1) == 1
               && SSL_CTX_set_session_id_context(context, of, sizeof(of) - 1)
                  == 1;
    }

    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);

    return SSL_CTX_set_num_tickets(context, 0) == 1;
}


static int
tls_set_rules(SSL_CTX *context)
{
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION
                                 |SSL_OP_NO_COMPRESSION
                                 |SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE
                              |SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(context,
                       SSL_VERIFY_PEER|SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_alpn_select_cb(context, tls_choose_protocol, NULL);

    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1
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

    if (context == NULL || !tls_set_rules(context)
        || !tls_set_tickets(context, files->has_tickets))
    {
        snprintf(error, TLS_ERROR_BYTES, "OpenSSL cannot be set up");

    } else if (tls_take_own(context, files, error) == 0
               && tls_take_ca(context, files, error) == 0)
    {
        return context;
    }

    SSL_CTX_free(context);

    return NULL;
}


int
tls_files_look(const tls_files_t *files, struct stat now[TLS_NFILES],
    const struct stat seen[TLS_NFILES])
{
    int          i, is_changed;
    const char  *paths[TLS_NFILES] = { files->cert, files->key, files->ca };

    is_changed = 0;

    for (i = 0; i < TLS_NFILES; i++) {
        if (paths[i] == NULL || stat(paths[i], &now[i]) != 0) {
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


int
tls_files_check(const tls_files_t *files, const char *const names[TLS_NFILES],
    int needs_own, char *error)
{
    int          i, n;
    const char  *paths[TLS_NFILES] = { files->cert, files->key, files->ca };

    if (paths[0] == NULL && paths[1] == NULL
        && (paths[2] == NULL || !needs_own))
    {
        return 0;
    }

    for (i = 0, n = 0; i < TLS_NFILES; i++) {
        n += paths[i] != NULL;
    }

    if (n == TLS_NFILES) {
        return 0;
    }

    for (i = 0; paths[i] != NULL; i++) { /* void */ }

    snprintf(error, TLS_ERROR_BYTES, "%s: is missing; %s, %s and %s go "
             "together", names[i], names[0], names[1], names[2]);

    return -1;
}
