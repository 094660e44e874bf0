
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "common/tls/explain.h"
#include "common/tls/peer.h"


#define TLS_NO_TLS  "the peer does not speak TLS: both ends need "             \
                    "certificates, or neither"

/* Reasons about the peer's certificate, as this end sees it. */
static const struct {
    long         code;
    const char  *text;
} tls_verdicts[] = {
    { X509_V_ERR_CERT_HAS_EXPIRED,
      "has expired: renew it, or look at this host's clock" },
    { X509_V_ERR_CERT_NOT_YET_VALID,
      "is not valid yet: look at both hosts' clocks" },
    { X509_V_ERR_IP_ADDRESS_MISMATCH,
      "does not name the address that was connected to: it needs that as a "
      "subjectAltName, IP:..." },
    { X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
      "was not signed by the CA that this end knows" },
    { X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
      "was not signed by the CA that this end knows" },
    { X509_V_ERR_CERT_SIGNATURE_FAILURE,
      "was not signed by the CA that this end knows" },
    { X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
      "was not signed by the CA that this end knows" },
    { X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
      "was not signed by the CA that this end knows, but by itself" },
    { X509_V_ERR_INVALID_PURPOSE,
      "is for servers or for clients only: it needs both, as extendedKeyUsage "
      "serverAuth, clientAuth" },
};

static const struct {
    int          reason;
    const char  *text;
} tls_faults[] = {
    { SSL_R_WRONG_VERSION_NUMBER, TLS_NO_TLS },
    { SSL_R_HTTP_REQUEST, TLS_NO_TLS },
    { SSL_R_HTTPS_PROXY_REQUEST, TLS_NO_TLS },
    { SSL_R_PACKET_LENGTH_TOO_LONG, TLS_NO_TLS },
    { SSL_R_UNSUPPORTED_PROTOCOL, "the peer has no TLS 1.2 or later" },
    { SSL_R_NO_APPLICATION_PROTOCOL,
      "the peer does not offer HTTP/2 (ALPN \"h2\")" },
    { SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE,
      "the peer shows no certificate: it needs one, and its key" },
};

/* Reasons about this end's certificate, as the peer sees it. */
static const struct {
    int          alert;
    const char  *text;
} tls_alerts[] = {
    { SSL_AD_BAD_CERTIFICATE,
      "it refuses the name in this end's certificate, and its log says which "
      "it wants" },
    { SSL_AD_UNSUPPORTED_CERTIFICATE,
      "this end's certificate is for servers or for clients only, and needs "
      "both, as extendedKeyUsage" },
    { SSL_AD_CERTIFICATE_EXPIRED,
      "this end's certificate has expired: renew it, or look at the peer's "
      "clock" },
    { SSL_AD_UNKNOWN_CA,
      "it does not know the CA that has signed this end's certificate" },
    { SSL_AD_CERTIFICATE_REQUIRED,
      "this end shows no certificate, and needs one" },
    { SSL_AD_PROTOCOL_VERSION, "it has no TLS 1.2 or later" },
    { SSL_AD_NO_APPLICATION_PROTOCOL,
      "it does not offer HTTP/2 (ALPN \"h2\") here" },
};


static const char *
tls_alert(int alert)
{
    size_t  i;

    for (i = 0; i < sizeof(tls_alerts) / sizeof(tls_alerts[0]); i++) {
        if (tls_alerts[i].alert == alert) {
            return tls_alerts[i].text;
        }
    }

    return "its log says why";
}


static const char *
tls_verdict(long code)
{
    size_t  i;

    for (i = 0; i < sizeof(tls_verdicts) / sizeof(tls_verdicts[0]); i++) {
        if (tls_verdicts[i].code == code) {
            return tls_verdicts[i].text;
        }
    }

    return NULL;
}


/* Explains a failed call by the error that it left in OpenSSL's queue. */
static void
tls_explain_fault(SSL *ssl, char *buf, size_t capacity)
{
    int            reason;
    long           verified;
    size_t         i;
    const char    *text;
    tls_peer_t    *peer;
    unsigned long  code;

    code = ERR_peek_error();
    reason = ERR_GET_REASON(code);
    verified = SSL_get_verify_result(ssl);
    peer = SSL_get_app_data(ssl);

    if (verified == X509_V_ERR_HOSTNAME_MISMATCH && peer != NULL) {
        snprintf(buf, capacity, "%s", peer->reason);
        return;
    }

    if (verified != X509_V_OK && reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        text = tls_verdict(verified);
        snprintf(buf, capacity, "the peer's certificate %s%s",
                 text != NULL ? text : "is not accepted: ",
                 text != NULL ? "" : X509_verify_cert_error_string(verified));
        return;
    }

    if (reason >= SSL_AD_REASON_OFFSET) {
        reason -= SSL_AD_REASON_OFFSET;
        snprintf(buf, capacity, "the peer refuses this end: %s (alert "
                 "\"%s\")", tls_alert(reason),
                 SSL_alert_desc_string_long(reason));
        return;
    }

    for (i = 0; i < sizeof(tls_faults) / sizeof(tls_faults[0]); i++) {
        if (tls_faults[i].reason == reason) {
            snprintf(buf, capacity, "%s", tls_faults[i].text);
            return;
        }
    }

    text = ERR_reason_error_string(code);
    snprintf(buf, capacity, "TLS: %s", text != NULL ? text : "unknown error");
}


void
tls_explain(SSL *ssl, int rc, int fault, char *buf, size_t capacity)
{
    if (rc == SSL_ERROR_SSL) {
        tls_explain_fault(ssl, buf, capacity);

    } else if (rc == SSL_ERROR_SYSCALL && fault != 0) {
        snprintf(buf, capacity, "%s", strerror(fault));

    } else if (SSL_is_server(ssl)
               && BIO_number_read(SSL_get_rbio(ssl)) == 0)
    {
        buf[0] = '\0';          /* somebody only checked the port */

    } else if (!SSL_is_init_finished(ssl)) {
        snprintf(buf, capacity, "the peer closed the connection in the TLS "
                 "handshake: its log says why, or it does not speak TLS");

    } else {
        snprintf(buf, capacity, "connection closed by the peer");
    }
}
