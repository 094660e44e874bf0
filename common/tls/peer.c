
#include <netinet/in.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "common/tls/peer.h"


/*
 * Matches a pattern, in which "*" is any run of bytes.  It is enough to retry
 * from the last star.
 */
static int
tls_pattern_match(const char *pattern, size_t pattern_len, const char *name,
    size_t len)
{
    size_t  p, i, star, from;

    star = pattern_len;
    from = 0;

    for (p = 0, i = 0; i < len; ) {

        if (p < pattern_len && pattern[p] == '*') {
            star = p++;
            from = i;

        } else if (p < pattern_len && pattern[p] == name[i]) {
            p++;
            i++;

        } else if (star < pattern_len) {
            p = star + 1;
            i = ++from;

        } else {
            return 0;
        }
    }

    while (p < pattern_len && pattern[p] == '*') {
        p++;
    }

    return p == pattern_len;
}


int
tls_names_match(const char *names, const char *name, size_t len)
{
    size_t  n;

    if (len == 0 || memchr(name, '*', len) != NULL
        || memchr(name, '\0', len) != NULL)
    {
        return 0;
    }

    for ( ;; ) {
        n = strcspn(names, ",");

        if (tls_pattern_match(names, n, name, len)) {
            return 1;
        }

        if (names[n] == '\0') {
            return 0;
        }

        names += n + 1;
    }
}


/* Appends a name to the text; a peer's bytes are not trusted in a log. */
static void
tls_peer_tell(char *text, size_t capacity, const char *name, size_t len)
{
    size_t  i, at;

    at = strlen(text);

    if (len + sizeof(", \"\"") > capacity - at) {
        return;
    }

    at += (size_t) snprintf(text + at, capacity - at, "%s\"",
                            at == 0 ? "" : ", ");

    for (i = 0; i < len; i++) {
        text[at++] = name[i] > ' ' && name[i] < 0x7f ? name[i] : '?';
    }

    strcpy(text + at, "\"");
}


/* 1: one of the certificate's names is expected; 0: text has all its names. */
static int
tls_peer_is_named(X509 *cert, const char *expected, char *text,
    size_t capacity)
{
    int             i, is_named;
    size_t          len;
    const char     *name;
    GENERAL_NAME   *one;
    GENERAL_NAMES  *all;

    is_named = 0;
    text[0] = '\0';
    all = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);

    for (i = 0; i < sk_GENERAL_NAME_num(all) && !is_named; i++) {
        one = sk_GENERAL_NAME_value(all, i);

        if (one->type != GEN_DNS) {
            continue;
        }

        name = (const char *) ASN1_STRING_get0_data(one->d.dNSName);
        len = (size_t) ASN1_STRING_length(one->d.dNSName);
        is_named = tls_names_match(expected, name, len);
        tls_peer_tell(text, capacity, name, len);
    }

    GENERAL_NAMES_free(all);

    return is_named;
}


/*
 * OpenSSL calls this for each certificate of the chain, and last for the
 * peer's.
 */
static int
tls_peer_verify(int is_fine, X509_STORE_CTX *store)
{
    SSL         *ssl;
    char         has[TLS_REASON_BYTES / 2];
    tls_peer_t  *peer;

    if (!is_fine || X509_STORE_CTX_get_error_depth(store) != 0) {
        return is_fine;
    }

    ssl = X509_STORE_CTX_get_ex_data(store,
                                     SSL_get_ex_data_X509_STORE_CTX_idx());
    peer = SSL_get_app_data(ssl);

    if (tls_peer_is_named(X509_STORE_CTX_get_current_cert(store), peer->names,
                          has, sizeof(has)))
    {
        return 1;
    }

    snprintf(peer->reason, sizeof(peer->reason), "the peer's certificate has "
             "to name %s\"%.120s\" as a subjectAltName, DNS:..., and names %s",
             strpbrk(peer->names, ",*") != NULL ? "one of " : "", peer->names,
             has[0] != '\0' ? has : "none");
    X509_STORE_CTX_set_error(store, X509_V_ERR_HOSTNAME_MISMATCH);

    return 0;
}


int
tls_peer_named(SSL *ssl, tls_peer_t *peer)
{
    SSL_set_app_data(ssl, peer);
    SSL_set_verify(ssl, SSL_get_verify_mode(ssl), tls_peer_verify);

    return SSL_is_server(ssl)
           || SSL_set_tlsext_host_name(ssl, peer->names) == 1;
}


int
tls_peer_at(SSL *ssl, const struct sockaddr *address)
{
    X509_VERIFY_PARAM          *param;
    const struct sockaddr_in   *in;
    const struct sockaddr_in6  *in6;

    param = SSL_get0_param(ssl);
    in = (const struct sockaddr_in *) address;
    in6 = (const struct sockaddr_in6 *) address;

    switch (address->sa_family) {

    case AF_INET:
        return X509_VERIFY_PARAM_set1_ip(param, (void *) &in->sin_addr, 4);

    case AF_INET6:
        return X509_VERIFY_PARAM_set1_ip(param, (void *) &in6->sin6_addr, 16);

    default:
        return 0;
    }
}
