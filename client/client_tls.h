
/*
 * TLS of the client: options that infer, openai and bench share.
 *
 * The certificate of the other end must name --tls-name, or, without that
 * option, the host or address of --gateway; for libcurl, the host of the URL.
 */

#ifndef CLIENT_TLS_H
#define CLIENT_TLS_H

#include <curl/curl.h>

#include "common/tls/endpoint.h"


#define CLIENT_TLS_HOST_BYTES  256

typedef struct {
    tls_files_t   files;                        /* its ca is NULL without TLS */
    const char   *name;
    char          host[CLIENT_TLS_HOST_BYTES];
    tls_endpoint_t    endpoint;
} client_tls_t;

/*
 * Rows of an option table; FIELD(tls.files.cert) and the like must be defined.
 */
#define CLIENT_TLS_FILES                                                      \
    { "tls-ca", OPTION_STRING, FIELD(tls.files.ca), NULL, "FILE",             \
      "TLS: who signs the other end's certificate", 0, 0, 0 },                \
                                                                              \
    { "tls-cert", OPTION_STRING, FIELD(tls.files.cert), NULL, "FILE",         \
      "this end's certificate, where one is asked for", 0, 0, 0 },            \
                                                                              \
    { "tls-key", OPTION_STRING, FIELD(tls.files.key), NULL, "FILE",           \
      "and its key", 0, 0, 0 }

#define CLIENT_TLS_OPTIONS                                                    \
    CLIENT_TLS_FILES,                                                         \
                                                                              \
    { "tls-name", OPTION_STRING, FIELD(tls.name), NULL, "NAME",               \
      "what the other end's has to name; else the gateway's host", 0, 0, 0 }


/* Checks the options.  0, or -1 and one line in error (TLS_ERROR_BYTES). */
int client_tls_check(const client_tls_t *tls, char *error);

/*
 * Opens tls->endpoint, for connections to the gateway.  0, or -1 and one line
 * in error.
 */
int client_tls_open(client_tls_t *tls, const char *gateway, char *error);

/* Sets libcurl's options from the files, if any. */
void client_tls_curl(const client_tls_t *tls, CURL *easy);

#endif /* CLIENT_TLS_H */
