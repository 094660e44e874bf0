
/*
 * An engine's URL.
 */

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "replica/engine/url.h"


static int
url_check(CURLU *u, char error[URL_ERROR_BYTES])
{
    int     is_http;
    char   *scheme, *part;
    size_t  i;

    static const struct {
        CURLUPart    part;
        const char  *name;
    } refused[] = {
        { CURLUPART_USER, "a user" },
        { CURLUPART_PASSWORD, "a password" },
        { CURLUPART_QUERY, "a query" },
        { CURLUPART_FRAGMENT, "a fragment" }
    };

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        if (curl_url_get(u, refused[i].part, &part, 0) == CURLUE_OK) {
            curl_free(part);
            snprintf(error, URL_ERROR_BYTES, "%s is not part of it",
                     refused[i].name);
            return -1;
        }
    }

    is_http = 0;

    if (curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK) {
        is_http = strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0;
        curl_free(scheme);
    }

    if (!is_http) {
        snprintf(error, URL_ERROR_BYTES, "not http:// or https://");
        return -1;
    }

    return 0;
}


/* Cuts "/" and "/v1" off the end. */
static void
url_cut(char *url)
{
    size_t  len;

    len = strlen(url);

    while (len > 0 && url[len - 1] == '/') {
        url[--len] = '\0';
    }

    if (len > 3 && strcmp(url + len - 3, "/v1") == 0) {
        url[len - 3] = '\0';
    }
}


/* 0, or -1: too long. */
static int
url_copy(CURLU *u, char url[URL_BYTES], char error[URL_ERROR_BYTES])
{
    int    rc;
    char  *whole;

    if (curl_url_get(u, CURLUPART_URL, &whole, 0) != CURLUE_OK) {
        snprintf(error, URL_ERROR_BYTES, "not like http://HOST:PORT");
        return -1;
    }

    rc = 0;

    if (snprintf(url, URL_BYTES, "%s", whole) >= URL_BYTES) {
        snprintf(error, URL_ERROR_BYTES, "longer than %d bytes",
                 URL_BYTES - 1);
        rc = -1;
    }

    curl_free(whole);
    url_cut(url);

    return rc;
}


int
url_read(const char *text, char url[URL_BYTES], char error[URL_ERROR_BYTES])
{
    int     rc;
    CURLU  *u;

    u = curl_url();

    if (u == NULL || curl_url_set(u, CURLUPART_URL, text, 0) != CURLUE_OK) {
        snprintf(error, URL_ERROR_BYTES, "not like http://HOST:PORT");
        curl_url_cleanup(u);
        return -1;
    }

    rc = url_check(u, error) == 0 ? url_copy(u, url, error) : -1;
    curl_url_cleanup(u);

    return rc;
}
