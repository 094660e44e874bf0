
#include <ev.h>
#include <stdio.h>
#include <string.h>

#include "common/tls/endpoint.h"


#define TLS_ENDPOINT_LINES  10


static void
tls_endpoint_on_refused(void *data, const address_t *peer, const char *reason)
{
    char             text[ADDRESS_TEXT_BYTES], others[64];
    double           now;
    tls_endpoint_t  *endpoint;

    endpoint = data;
    now = ev_time();
    endpoint->lines += now > endpoint->counted_at
                       ? now - endpoint->counted_at : 0;
    endpoint->counted_at = now;

    if (endpoint->lines > TLS_ENDPOINT_LINES) {
        endpoint->lines = TLS_ENDPOINT_LINES;
    }

    if (endpoint->lines < 1) {
        endpoint->unlogged++;
        return;
    }

    endpoint->lines--;
    others[0] = '\0';

    if (endpoint->unlogged > 0) {
        snprintf(others, sizeof(others), ", and %u before it",
                 endpoint->unlogged);
    }

    address_format(peer, text);
    log_write(endpoint->log, LOG_WARN, "a connection from %s was refused%s: %s",
              text, others, reason);
    endpoint->unlogged = 0;
}


int
tls_endpoint_open(tls_endpoint_t *endpoint, const tls_files_t *files,
    const log_t *log, char *error)
{
    memset(endpoint, 0, sizeof(tls_endpoint_t));
    endpoint->log = log;
    endpoint->conn.on_refused = tls_endpoint_on_refused;
    endpoint->conn.refused_data = endpoint;

    if (files->ca == NULL) {
        return 0;
    }

    endpoint->tls = tls_open(files, log, error);

    if (endpoint->tls == NULL) {
        return -1;
    }

    endpoint->conn.channel = &tls_channel;
    endpoint->conn.channel_context = endpoint->tls;

    return 0;
}


void
tls_endpoint_close(tls_endpoint_t *endpoint)
{
    tls_close(endpoint->tls);
    endpoint->tls = NULL;
}
