
/*
 * HTTP/1.1 to one engine: libcurl's multi interface on libev.
 *
 * What differs from a browser: an idle connection is used again only within 4
 * s, since engines close theirs after 5; a request on a reused connection that
 * dies before the first byte of its answer is sent again, any other never is;
 * no proxies, redirects, cookies, compression or "Expect: 100-continue".  The
 * connection of a cancelled request is closed at once: that is how an engine
 * learns that it can stop.
 *
 * Callbacks may start, pause and cancel any request, their own included.
 */

#ifndef HTTP_H
#define HTTP_H

#include <ev.h>
#include <stddef.h>
#include <stdint.h>

#include "replica/engine/url.h"


#define HTTP_WHY_BYTES  256

typedef struct http_client_s   http_client_t;
typedef struct http_request_s  http_request_t;

typedef enum {
    HTTP_COMPLETE = 0,      /* the answer is complete, as HTTP defines it */
    HTTP_REFUSED,           /* no process listens there */
    HTTP_UNREACHED,         /* its name has no address, it speaks no TLS, or
                               this host cannot connect */
    HTTP_UNTRUSTED,         /* its certificate is not accepted */
    HTTP_TIMED_OUT,         /* to connect, or after the call's timeout_ms */
    HTTP_BROKEN,            /* the connection broke, at any time */
    HTTP_UNFIT              /* the answer cannot be read; or out of memory */
} http_end_t;

typedef struct {
    /*
     * The head of the answer, not of a 1xx.  is_sent: the request is out and
     * will not be sent again, its body is not needed any more.
     */
    void  (*on_head)(http_request_t *request, unsigned status,
                     const char *content_type, int is_sent);

    void  (*on_bytes)(http_request_t *request, const char *bytes, size_t len);

    /*
     * The last callback; the request is freed when it returns.  Does not come
     * for a cancelled request.  why is for people.
     */
    void  (*on_end)(http_request_t *request, http_end_t end, const char *why);
} http_callbacks_t;

/*
 * The strings live until the request has ended, id and type until http_start().
 */
typedef struct {
    const http_callbacks_t  *callbacks;
    void                    *data;          /* the caller's own */
    const char              *path;          /* "/v1/models" */
    const char              *type;          /* of the body; NULL: JSON */
    const char              *body;          /* NULL: none */
    const char              *method;        /* of a request without a body;
                                               NULL: GET */
    size_t                   body_bytes;
    const char              *id;            /* of X-Request-Id; NULL: none */
    uint64_t                 timeout_ms;    /* of the whole; 0: none */
    int                      is_stream;     /* of small events: less memory */
    int                      is_fresh;      /* on a new connection: does the
                                               engine still take one? */
} http_call_t;


/*
 * A key is sent as "Authorization: Bearer KEY".  ca_file has the certificates
 * that may sign the engine's; NULL: the system's do.  It is read when a
 * connection is made, at most once a day, and its path lives as long as the
 * client.  NULL: out of memory.
 */
http_client_t *http_create(struct ev_loop *loop, const char *url,
    const char *key, const char *ca_file);

/*
 * Sends requests to this URL from now on.  socket: path of a unix socket to
 * connect to (the URL's host is then only a name), which lives as long as the
 * client; NULL: by TCP.
 */
void http_point(http_client_t *client, const char *url, const char *socket);

/* Cancels what is under way.  Not within a callback. */
void http_destroy(http_client_t *client);

/* NULL: out of memory. */
http_request_t *http_start(http_client_t *client, const http_call_t *call);

/* Ends the request: no callback comes any more; the connection is closed. */
void http_cancel(http_request_t *request);

/*
 * Ends the request: no callback comes any more.  The rest of the answer is read
 * for up to HTTP_LEAVE_S, so that the connection can be used again.
 */
void http_leave(http_request_t *request);

/*
 * Reads no more, so that the engine cannot send more.  Bytes that were received
 * before the call have been handed over already.
 */
void http_pause(http_request_t *request);
void http_resume(http_request_t *request);

void *http_data(const http_request_t *request);

/*
 * From on_head() on: what the answer's Retry-After says, in milliseconds and
 * bounded (retry_after.h); -1: there is none.
 */
int64_t http_retry_ms(const http_request_t *request);

/* From on_head() on: whether the answer says how long it is. */
int http_has_length(const http_request_t *request);

/*
 * A question whose whole answer is wanted: its body is kept, up to a limit,
 * until the next question.
 */
typedef struct http_whole_s  http_whole_t;

struct http_whole_s {
    /* the caller's */
    http_client_t   *client;
    size_t           bytes_max;
    void            *data;
    int              is_fresh;      /* the next question's; it is reset */

    /* As on_end() above; it may ask the next question. */
    void           (*on_end)(http_whole_t *whole, http_end_t end,
                             const char *why);

    http_request_t  *request;       /* under way; NULL: none */
    unsigned         status;        /* 0: there was no answer */
    char            *body;          /* not NUL-terminated; NULL: empty, */
    size_t           body_len;      /* or it was larger than the limit */
    int              is_cut;
};

/* 0, or -1: no memory. */
int http_whole_ask(http_whole_t *whole, const char *path,
    uint64_t timeout_ms);

/* Cancels what is under way, and forgets the answer; before the client's
   end. */
void http_whole_done(http_whole_t *whole);

#endif /* HTTP_H */
