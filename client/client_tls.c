
#include <stdio.h>
#include <string.h>

#include "client/client_tls.h"


int
client_tls_check(const client_tls_t *tls, char *error)
{
    static const char *const  names[TLS_NFILES] = {
        "--tls-cert", "--tls-key", "--tls-ca"
    };

    if (tls->name != NULL && tls->files.ca == NULL) {
        snprintf(error, TLS_ERROR_BYTES, "--tls-name: needs --tls-ca");
        return -1;
    }

    return tls_files_check(&tls->files, names, 0, error);
}


int
client_tls_open(client_tls_t *tls, const char *gateway, char *error)
{
    address_t  address;

    static const log_t  log = { "llmgw-client", NULL, LOG_WARN };

    if (tls_endpoint_open(&tls->endpoint, &tls->files, &log, error) != 0) {
        return -1;
    }

    if (tls->name != NULL) {
        tls->endpoint.conn.names = tls->name;

    } else if (address_parse(gateway, &address) != 0) {
        snprintf(tls->host, sizeof(tls->host), "%.*s",
                 (int) (strrchr(gateway, ':') - gateway), gateway);
        tls->endpoint.conn.names = tls->host;
    }

    return 0;
}


void
client_tls_curl(const client_tls_t *tls, CURL *easy)
{
    if (tls->files.ca == NULL) {
        return;
    }

    curl_easy_setopt(easy, CURLOPT_CAINFO, tls->files.ca);
    curl_easy_setopt(easy, CURLOPT_SSLCERT, tls->files.cert);
    curl_easy_setopt(easy, CURLOPT_SSLKEY, tls->files.key);
}
