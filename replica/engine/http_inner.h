
/*
 * What http.c, requests and their answers, and http_multi.c, libcurl's multi
 * handle on libev, share.
 */

#ifndef HTTP_INNER_H
#define HTTP_INNER_H

#include <curl/curl.h>

#include "replica/engine/http.h"


typedef enum {
    HTTP_NEW = 0,
    HTTP_RUNNING,
    HTTP_LEFT,
    HTTP_CANCELLED
} http_state_t;

struct http_client_s {
    struct ev_loop     *loop;
    CURLM              *multi;
    ev_timer            timer;
    struct curl_slist  *fields;         /* of each request */
    char                url[URL_BYTES];
    const char         *socket;         /* NULL: by TCP */
    const char         *ca_file;        /* NULL: the system's */
    http_request_t     *requests;       /* all */
    http_request_t     *later;          /* to be added, or to be freed */
    int                 depth;          /* of calls into libcurl */
};

struct http_request_s {
    http_client_t           *client;
    const http_callbacks_t  *callbacks;
    void                    *data;
    CURL                    *easy;
    http_request_t          *next;      /* of all */
    http_request_t         **link;      /* what points to this one */
    http_request_t          *later;
    struct curl_slist        fields;    /* its own; the client's follow */
    struct curl_slist        type;      /* in place of the client's first */
    int64_t                  retry_ms;      /* -1: the answer does not say */
    size_t                   body_bytes;
    size_t                   left_bytes;    /* read since it was left */
    ev_timer                 timer;         /* when it was left */
    http_state_t             state;
    int                      is_later;      /* in the client's list */
    int                      is_paused;
    int                      is_held;       /* libcurl holds bytes back */
    int                      is_compressed;
    int                      has_head;
    int                      has_length;    /* the answer says it */
    char                    *error;         /* in libcurl's words; NULL: those
                                               would cost a stream memory */
    char                     id[];
};


void http_free(http_request_t *request);

/* libcurl has finished it: on_end, and freed. */
void http_ended(http_request_t *request, CURLcode code);

/* 0, or -1: out of memory. */
int http_add(http_request_t *request);

/* To be added, or freed, when libcurl has returned. */
void http_put_off(http_request_t *request);
void http_settle_later(http_client_t *client);

/* Behind every call into libcurl: what was put off, and what has ended. */
void http_settle(http_client_t *client);

#endif /* HTTP_INNER_H */
