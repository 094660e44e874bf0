
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/keys/key.h"
#include "replica/engine/connect.h"
#include "replica/engine/url.h"


/* Whether the file has a certificate, of an authority that may sign the
   engine's. */
static int
connect_has_certificate(FILE *file)
{
    char  line[128];

    static const char  begin[] = "-----BEGIN CERTIFICATE-----";

    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, begin, sizeof(begin) - 1) == 0) {
            return 1;
        }
    }

    return 0;
}


static int
connect_read_ca(const char *path, char error[KEY_ERROR_BYTES])
{
    FILE        *file;
    const char  *why;

    errno = 0;
    file = fopen(path, "re");
    why = NULL;

    if (file == NULL || !connect_has_certificate(file)) {
        why = errno != 0 ? strerror(errno) : "it has no certificate in PEM";
        snprintf(error, KEY_ERROR_BYTES, "CA file \"%.120s\": %s", path, why);
    }

    if (file != NULL) {
        fclose(file);
    }

    return why == NULL ? 0 : -1;
}


static int
connect_check_ca(const char *url, const char *path,
    char error[KEY_ERROR_BYTES])
{
    if (strncmp(url, "https://", sizeof("https://") - 1) != 0) {
        snprintf(error, KEY_ERROR_BYTES, "--engine-ca-file: an engine without "
                 "https:// has no certificate");
        return -1;
    }

    return connect_read_ca(path, error);
}


http_client_t *
connect_create(engine_t *engine, const engine_options_t *options)
{
    char            key[KEY_BYTES], url[URL_BYTES], error[KEY_ERROR_BYTES];
    http_client_t  *http;

    if (url_read(options->url, url, error) != 0) {
        log_write(engine->log, LOG_ERROR, "--engine-url \"%s\": %s",
                  options->url, error);
        return NULL;
    }

    if (options->ca_file != NULL
        && connect_check_ca(url, options->ca_file, error) != 0)
    {
        log_write(engine->log, LOG_ERROR, "%s", error);
        return NULL;
    }

    if (options->key_file != NULL
        && key_read(options->key_file, key, error) != 0)
    {
        log_write(engine->log, LOG_ERROR, "%s", error);
        return NULL;
    }

    http = http_create(engine->loop, url,
                       options->key_file != NULL ? key : NULL,
                       options->ca_file);
    explicit_bzero(key, sizeof(key));

    if (http == NULL) {
        log_write(engine->log, LOG_ERROR, "out of memory");

    } else if (options->socket != NULL) {
        http_point(http, url, options->socket);
    }

    return http;
}
