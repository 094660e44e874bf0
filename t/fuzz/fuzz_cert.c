
/*
 * Bytes as the names of a certificate: two ends shake hands in memory, the
 * server with a certificate whose subjectAltName is made of them.  The client
 * accepts the certificate exactly if one of its names is the expected one;
 * otherwise its reason is a line that fits a log.
 */

#include <assert.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <string.h>

#include "common/tls/explain.h"
#include "common/tls/peer.h"


#define EXPECTED  "r1,gw*"
#define ROUNDS    8             /* of a handshake, which needs about 4 */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);


static EVP_PKEY *
key_once(void)
{
    static EVP_PKEY  *key;

    if (key == NULL) {
        key = EVP_EC_gen("P-256");
    }

    return key;
}


/* Self-signed, with those bytes as its subjectAltName; NULL if OpenSSL cannot
   make such a certificate. */
static X509 *
cert_make(const uint8_t *data, size_t len)
{
    X509               *cert;
    X509_EXTENSION     *names;
    ASN1_OCTET_STRING  *der;

    cert = X509_new();
    der = ASN1_OCTET_STRING_new();
    ASN1_OCTET_STRING_set(der, data, (int) len);
    names = X509_EXTENSION_create_by_NID(NULL, NID_subject_alt_name, 0, der);

    X509_set_version(cert, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -60);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                               (const unsigned char *) "r1", -1, -1, 0);
    X509_set_issuer_name(cert, X509_get_subject_name(cert));
    X509_set_pubkey(cert, key_once());
    X509_add_ext(cert, names, -1);
    assert(X509_sign(cert, key_once(), EVP_sha256()) > 0);

    X509_EXTENSION_free(names);
    ASN1_OCTET_STRING_free(der);

    return cert;
}


/* Whether OpenSSL's own reader finds an expected name, compared whole. */
static int
cert_names(X509 *cert)
{
    int             i, found, n;
    const char     *name;
    GENERAL_NAME   *one;
    GENERAL_NAMES  *all;

    found = 0;
    all = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);

    for (i = 0; i < sk_GENERAL_NAME_num(all); i++) {
        one = sk_GENERAL_NAME_value(all, i);

        if (one->type != GEN_DNS) {
            continue;
        }

        n = ASN1_STRING_length(one->d.dNSName);
        name = (const char *) ASN1_STRING_get0_data(one->d.dNSName);
        found |= (n == 2 && memcmp(name, "r1", 2) == 0)
                 || (n >= 2 && memcmp(name, "gw", 2) == 0
                     && memchr(name, '*', (size_t) n) == NULL
                     && memchr(name, '\0', (size_t) n) == NULL);
    }

    GENERAL_NAMES_free(all);

    return found;
}


/* 1: the client accepted the certificate. */
static int
shake_hands(X509 *cert, tls_peer_t *peer)
{
    int       i, rc;
    BIO      *near, *far;
    SSL      *client, *server;
    char      line[TLS_REASON_BYTES];
    SSL_CTX  *ctx;

    ctx = SSL_CTX_new(TLS_method());
    assert(SSL_CTX_use_certificate(ctx, cert) == 1);
    assert(SSL_CTX_use_PrivateKey(ctx, key_once()) == 1);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), cert);

    client = SSL_new(ctx);
    server = SSL_new(ctx);
    SSL_set_verify(client, SSL_VERIFY_PEER, NULL);
    assert(BIO_new_bio_pair(&near, 0, &far, 0) == 1);
    SSL_set_bio(client, near, near);
    SSL_set_bio(server, far, far);
    SSL_set_connect_state(client);
    SSL_set_accept_state(server);
    assert(tls_peer_named(client, peer) == 1);

    for (i = 0, rc = 0; i < ROUNDS && rc != 1; i++) {
        rc = SSL_do_handshake(client);
        tls_explain(client, SSL_get_error(client, rc), 0, line, sizeof(line));
        assert(strlen(line) < sizeof(line));
        (void) SSL_do_handshake(server);
    }

    SSL_free(client);
    SSL_free(server);
    SSL_CTX_free(ctx);
    ERR_clear_error();

    return rc == 1;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    X509        *cert;
    size_t       i;
    tls_peer_t   peer = { .names = EXPECTED };

    if (len > 4096) {
        return 0;
    }

    cert = cert_make(data, len);

    assert(shake_hands(cert, &peer) == cert_names(cert));

    for (i = 0; peer.reason[i] != '\0'; i++) {
        assert(peer.reason[i] >= ' ' && peer.reason[i] < 0x7f);
    }

    X509_free(cert);

    return 0;
}
