
/* What OpenSSL's errors mean, and what somebody can do about them. */

#ifndef TLS_EXPLAIN_H
#define TLS_EXPLAIN_H

#include <openssl/ssl.h>
#include <stddef.h>


/*
 * What the failed call means and what to do about it, as one line; "": nothing
 * worth a word.  rc is its SSL_get_error(), fault the errno of the call.
 */
void tls_explain(SSL *ssl, int rc, int fault, char *buf, size_t capacity);

#endif /* TLS_EXPLAIN_H */
