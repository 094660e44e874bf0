
/*
 * What the requests to one engine have in common: where it is, their fields,
 * and the connections, which libcurl keeps in its multi handle.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/engine/http_inner.h"


/*
 * By default libcurl keeps four connections for each running transfer, and
 * closes the others: if a thousand streams end in one step, nearly all.  With
 * this limit, only the engine and HTTP_REUSE_S end idle ones.
 */
#define HTTP_CONNECTIONS  65536L


static int
http_add_field(http_client_t *c, const char *field)
{
    struct curl_slist  *fields;

    fields = curl_slist_append(c->fields, field);

    if (fields == NULL) {
        return -1;
    }

    c->fields = fields;

    return 0;
}


static int
http_set_fields(http_client_t *c, const char *key)
{
    int    rc;
    char  *field;

    /* the first is that of which a request may have its own */

    if (http_add_field(c, "Content-Type: application/json") != 0
        || http_add_field(c, "Expect:") != 0
        || http_add_field(c, "Accept-Encoding: identity") != 0)
    {
        return -1;
    }

    if (key == NULL) {
        return 0;
    }

    if (asprintf(&field, "Authorization: Bearer %s", key) < 0) {
        return -1;
    }

    rc = http_add_field(c, field);
    explicit_bzero(field, strlen(field));
    free(field);

    return rc;
}


void
http_point(http_client_t *c, const char *url, const char *socket)
{
    snprintf(c->url, sizeof(c->url), "%s", url);
    c->socket = socket;
}


http_client_t *
http_create(struct ev_loop *loop, const char *url, const char *key,
    const char *ca_file)
{
    http_client_t  *c;

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return NULL;
    }

    c = calloc(1, sizeof(http_client_t));

    if (c == NULL) {
        return NULL;
    }

    c->ca_file = ca_file;
    http_point(c, url, NULL);

    if (curl_loop_init(&c->curl, loop, http_on_end, c) != 0
        || http_set_fields(c, key) != 0)
    {
        http_destroy(c);
        return NULL;
    }

    curl_multi_setopt(c->curl.multi, CURLMOPT_PIPELINING,
                      (long) CURLPIPE_NOTHING);
    curl_multi_setopt(c->curl.multi, CURLMOPT_MAXCONNECTS, HTTP_CONNECTIONS);

    return c;
}


void
http_destroy(http_client_t *c)
{
    while (c->requests != NULL) {
        http_cancel(c->requests);
    }

    curl_loop_done(&c->curl);
    curl_slist_free_all(c->fields);
    free(c);
    curl_global_cleanup();
}
