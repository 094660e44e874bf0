
/*
 * Shared by http.c (requests and their answers) and http_client.c (what all
 * requests have in common).
 */

#ifndef HTTP_INNER_H
#define HTTP_INNER_H

#include "common/http/curl_loop.h"
#include "replica/engine/http.h"


typedef enum {
    HTTP_NEW = 0,
    HTTP_RUNNING,
    HTTP_LEFT,
    HTTP_CANCELLED
} http_state_t;

struct http_client_s {
    curl_loop_t         curl;
    struct curl_slist  *fields;         /* of each request */
    char                url[URL_BYTES];
    const char         *socket;         /* NULL: by TCP */
    const char         *ca_file;        /* NULL: the system's */
    http_request_t     *requests;       /* all */
};

struct http_request_s {
    curl_deferred_t          deferred;  /* start or end; the first member */
    http_client_t           *client;
    const http_callbacks_t  *callbacks;
    void                    *data;
    CURL                    *easy;
    http_request_t          *next;      /* in the list of all */
    http_request_t         **link;      /* the pointer to this one in the
                                           list */
    struct curl_slist        fields;    /* its own; the client's follow */
    struct curl_slist        type;      /* in place of the client's first */
    int64_t                  retry_ms;      /* -1: the answer has no
                                               Retry-After */
    size_t                   body_bytes;
    size_t                   left_bytes;    /* read since http_leave() */
    ev_timer                 timer;         /* after http_leave() */
    http_state_t             state;
    int                      is_paused;
    int                      is_held;       /* libcurl holds bytes back */
    int                      is_compressed;
    int                      has_head;
    int                      has_length;    /* the answer has a length */
    char                    *error;         /* libcurl's message; NULL: a stream
                                               has none, to save memory */
    char                     id[];
};


/* The loop's on_end: a request of that client has ended. */
void http_on_end(void *client, CURL *easy, CURLcode code);

#endif /* HTTP_INNER_H */
