
/* Explanations of OpenSSL's errors, with what to do about them. */

#ifndef TLS_EXPLAIN_H
#define TLS_EXPLAIN_H

#include <openssl/ssl.h>
#include <stddef.h>


/*
 * Explains a failed call in one line, with what to do about it; "" if it is not
 * worth logging.  rc is its SSL_get_error(), fault the errno of the call.
 */
void tls_explain(SSL *ssl, int rc, int fault, char *buf, size_t capacity);

#endif /* TLS_EXPLAIN_H */
