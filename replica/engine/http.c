
/*
 * One request and its answer.  While libcurl runs, a start and an end are
 * deferred (common/http/curl_loop.h):
 *
 *   http_start()   NEW ------> RUNNING -----> ended: on_end, freed
 *                   |  added    |   |
 *   http_cancel()   '-----------'---|-------> CANCELLED --> freed
 *                               ^   v
 *   http_leave()                '- LEFT ----> ended, freed
 *
 * An easy handle lives as long as its request: an idle one costs 9 kB.
 * Connections live on in the multi handle.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "replica/engine/http_inner.h"
#include "replica/engine/retry_after.h"


/*
 * libcurl reuses a connection whose idle time in whole seconds is not above
 * this: so for less than 4 s.
 */
#define HTTP_REUSE_S     3

#define HTTP_CONNECT_MS  2000L

/* Bytes that are read at once.  Each of thousands of waiting streams has a
   buffer of this size. */
#define HTTP_STREAM_BYTES  1024L
#define HTTP_WHOLE_BYTES   16384L

/* A larger body is sent in pieces, through a buffer of this size. */
#define HTTP_PIECE_BYTES   65536L

/* Limits for the end of an answer after http_leave(): as a rule it is in
   transit. */
#define HTTP_LEAVE_S      1.0
#define HTTP_LEAVE_BYTES  4096


static void http_on_left(struct ev_loop *loop, ev_timer *w, int revents);


/* --- the end of a request */

static void
http_free(http_request_t *r)
{
    *r->link = r->next;

    if (r->next != NULL) {
        r->next->link = r->link;
    }

    ev_timer_stop(r->client->curl.loop, &r->timer);
    curl_loop_remove(&r->client->curl, r->easy);
    curl_easy_cleanup(r->easy);
    free(r);
}


/* Whether the host refused the connection, or its socket's file is absent; not
   whether this process lacks a descriptor, or this host a network. */
static int
http_is_refused(const http_request_t *r)
{
    long  error;

    return curl_easy_getinfo(r->easy, CURLINFO_OS_ERRNO, &error) == CURLE_OK
           && (error == ECONNREFUSED || error == EHOSTUNREACH
               || error == ENOENT);
}


static http_end_t
http_end_of(const http_request_t *r, CURLcode code)
{
    switch (code) {

    case CURLE_OK:
        return HTTP_COMPLETE;

    case CURLE_COULDNT_CONNECT:
        return http_is_refused(r) ? HTTP_REFUSED : HTTP_UNREACHED;

    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_SSL_CONNECT_ERROR:
        return HTTP_UNREACHED;

    case CURLE_PEER_FAILED_VERIFICATION:
        return HTTP_UNTRUSTED;

    case CURLE_OPERATION_TIMEDOUT:
        return HTTP_TIMED_OUT;

    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
        return HTTP_BROKEN;

    default:
        return HTTP_UNFIT;
    }
}


static void
http_ended(http_request_t *r, CURLcode code)
{
    char  why[HTTP_WHY_BYTES];

    if (r->state == HTTP_LEFT) {
        http_free(r);
        return;
    }

    if (r->is_compressed) {
        code = CURLE_BAD_CONTENT_ENCODING;
        snprintf(why, sizeof(why), "engine compresses its answers, though it "
                 "was asked not to");
    } else {
        snprintf(why, sizeof(why), "%s", r->error != NULL && *r->error != '\0'
                 ? r->error : curl_easy_strerror(code));
    }

    r->callbacks->on_end(r, http_end_of(r, code), why);

    if (r->state != HTTP_CANCELLED) {
        http_free(r);                   /* otherwise its deferred step frees
                                           it */
    }
}


void
http_on_end(void *client, CURL *easy, CURLcode code)
{
    http_request_t  *r;

    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &r);
    http_ended(r, code);
}


static int
http_add(http_request_t *r)
{
    if (curl_loop_add(&r->client->curl, r->easy) != 0) {
        return -1;
    }

    r->state = HTTP_RUNNING;

    return 0;
}


/* Does what was deferred. */
static void
http_run_deferred(curl_deferred_t *step)
{
    http_request_t  *r;

    r = (http_request_t *) step;

    if (r->state == HTTP_CANCELLED) {
        http_free(r);

    } else if (http_add(r) != 0) {
        http_ended(r, CURLE_OUT_OF_MEMORY);
    }
}


/* --- the answer */

static int
http_names_field(const char *line, size_t len, const char *name)
{
    size_t  name_len;

    name_len = strlen(name);

    return len > name_len && line[name_len] == ':'
           && strncasecmp(line, name, name_len) == 0;
}


static int
http_is_identity(const char *line, size_t len)
{
    const char  *value;

    value = memchr(line, ':', len);
    value++;

    while (value < line + len && (*value == ' ' || *value == '\t')) {
        value++;
    }

    return (size_t) (line + len - value) >= 8
           && strncasecmp(value, "identity", 8) == 0;
}


static void
http_head(http_request_t *r)
{
    char        *type;
    long         status;
    curl_off_t   sent, length;

    curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);

    if (status < 200 || r->has_head) {
        return;                         /* a 1xx, or trailers */
    }

    r->has_head = 1;
    curl_easy_getinfo(r->easy, CURLINFO_CONTENT_TYPE, &type);
    curl_easy_getinfo(r->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    curl_easy_getinfo(r->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    r->has_length = length >= 0;
    r->callbacks->on_head(r, (unsigned) status, type,
                          (size_t) sent >= r->body_bytes);
}


/* Reads one line; an empty one ends the head.  Returning anything but len makes
   libcurl give up. */
static size_t
http_on_line(char *line, size_t one, size_t len, void *request)
{
    http_request_t  *r;

    r = request;

    if (r->state == HTTP_CANCELLED) {
        return 0;
    }

    if (http_names_field(line, len, "content-encoding")
        && !http_is_identity(line, len))
    {
        r->is_compressed = 1;
        return 0;
    }

    if (http_names_field(line, len, "retry-after")) {
        r->retry_ms = retry_after_ms(line + sizeof("retry-after"),
                                     len - sizeof("retry-after"), time(NULL));
    }

    if (len > 0 && (line[0] == '\r' || line[0] == '\n')) {
        http_head(r);
    }

    return r->state == HTTP_CANCELLED ? 0 : len;
}


static size_t
http_on_bytes(char *bytes, size_t one, size_t len, void *request)
{
    http_request_t  *r;

    r = request;

    if (r->state == HTTP_CANCELLED) {
        return 0;
    }

    if (r->state == HTTP_LEFT) {
        r->left_bytes += len;
        return r->left_bytes <= HTTP_LEAVE_BYTES ? len : 0;
    }

    if (r->is_paused) {
        r->is_held = 1;
        return CURL_WRITEFUNC_PAUSE;
    }

    r->callbacks->on_bytes(r, bytes, len);

    return r->state == HTTP_CANCELLED ? 0 : len;
}


/* --- requests */

/* Sets the options that every request has; libcurl copies the strings. */
static void
http_set_habits(http_request_t *r)
{
    CURL  *e;

    e = r->easy;
    curl_easy_setopt(e, CURLOPT_PRIVATE, r);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, HTTP_PIECE_BYTES);
    curl_easy_setopt(e, CURLOPT_MAXAGE_CONN, (long) HTTP_REUSE_S);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, HTTP_CONNECT_MS);
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, &r->fields);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, http_on_line);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, r);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, http_on_bytes);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, r->error);

    if (r->client->socket != NULL) {
        curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, r->client->socket);
    }

    if (r->client->ca_file != NULL) {
        curl_easy_setopt(e, CURLOPT_CAINFO, r->client->ca_file);
        curl_easy_setopt(e, CURLOPT_CAPATH, NULL);  /* else the system's too */
    }
}


static int
http_set_call(http_request_t *r, const http_call_t *call)
{
    char  url[2 * URL_BYTES];

    if (snprintf(url, sizeof(url), "%s%s", r->client->url, call->path)
        >= (int) sizeof(url)
        || curl_easy_setopt(r->easy, CURLOPT_URL, url) != CURLE_OK)
    {
        return -1;
    }

    curl_easy_setopt(r->easy, CURLOPT_BUFFERSIZE,
                     call->is_stream ? HTTP_STREAM_BYTES : HTTP_WHOLE_BYTES);

    if (call->timeout_ms > 0) {
        curl_easy_setopt(r->easy, CURLOPT_TIMEOUT_MS, (long) call->timeout_ms);
    }

    curl_easy_setopt(r->easy, CURLOPT_FRESH_CONNECT, (long) call->is_fresh);

    if (call->body == NULL && call->method != NULL) {
        curl_easy_setopt(r->easy, CURLOPT_CUSTOMREQUEST, call->method);

    } else if (call->body != NULL) {
        curl_easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                         (curl_off_t) call->body_bytes);
        curl_easy_setopt(r->easy, CURLOPT_POSTFIELDS, call->body);
    }

    return 0;
}


/* Sets the request's own Content-Type, in memory of that size. */
static void
http_set_type(http_request_t *r, char *line, size_t bytes, const char *type)
{
    if (bytes > 0) {
        snprintf(line, bytes, "Content-Type: %s", type);
        r->type.data = line;
        r->type.next = r->client->fields->next;
        r->fields = r->type;
    }
}


/* Without its easy handle.  NULL: out of memory. */
static http_request_t *
http_create_request(http_client_t *c, const http_call_t *call)
{
    size_t           len, type, error;
    http_request_t  *r;

    len = call->id != NULL ? strlen(call->id) + sizeof("X-Request-Id: ") : 0;
    type = call->type != NULL ? strlen(call->type) + sizeof("Content-Type: ")
                              : 0;
    error = call->is_stream ? 0 : CURL_ERROR_SIZE;
    r = calloc(1, sizeof(http_request_t) + len + type + error);

    if (r == NULL) {
        return NULL;
    }

    if (error > 0) {
        r->error = r->id + len + type;
    }

    r->deferred.run = http_run_deferred;
    r->client = c;
    r->callbacks = call->callbacks;
    r->data = call->data;
    r->body_bytes = call->body != NULL ? call->body_bytes : 0;
    r->fields = *c->fields;
    http_set_type(r, r->id + len, type, call->type);
    r->retry_ms = -1;
    ev_init(&r->timer, http_on_left);
    r->timer.data = r;

    if (len > 0) {
        snprintf(r->id, len, "X-Request-Id: %s", call->id);
        r->fields.data = r->id;
        r->fields.next = type > 0 ? &r->type : c->fields;
    }

    return r;
}


static void
http_link(http_request_t *r)
{
    http_client_t  *c;

    c = r->client;
    r->next = c->requests;
    r->link = &c->requests;
    c->requests = r;

    if (r->next != NULL) {
        r->next->link = &r->next;
    }
}


http_request_t *
http_start(http_client_t *c, const http_call_t *call)
{
    int              is_busy;
    http_request_t  *r;

    r = http_create_request(c, call);

    if (r == NULL) {
        return NULL;
    }

    r->easy = curl_easy_init();

    if (r->easy == NULL) {
        free(r);
        return NULL;
    }

    http_link(r);
    http_set_habits(r);

    is_busy = curl_loop_is_busy(&c->curl);

    if (http_set_call(r, call) != 0 || (!is_busy && http_add(r) != 0)) {
        http_free(r);
        return NULL;
    }

    if (is_busy) {
        curl_loop_defer(&c->curl, &r->deferred);
    }

    return r;
}


void
http_cancel(http_request_t *r)
{
    r->state = HTTP_CANCELLED;
    curl_loop_defer(&r->client->curl, &r->deferred);
}


static void
http_on_left(struct ev_loop *loop, ev_timer *w, int revents)
{
    http_cancel(w->data);
}


void
http_leave(http_request_t *r)
{
    if (r->is_held) {
        http_cancel(r);
        return;
    }

    r->state = HTTP_LEFT;
    r->is_paused = 0;
    ev_timer_set(&r->timer, HTTP_LEAVE_S, 0);
    ev_timer_start(r->client->curl.loop, &r->timer);
}


void
http_pause(http_request_t *r)
{
    r->is_paused = 1;
}


void
http_resume(http_request_t *r)
{
    r->is_paused = 0;

    if (r->is_held) {
        r->is_held = 0;
        curl_loop_resume(&r->client->curl, r->easy);
    }
}


void *
http_data(const http_request_t *r)
{
    return r->data;
}


int64_t
http_retry_ms(const http_request_t *r)
{
    return r->retry_ms;
}


int
http_has_length(const http_request_t *r)
{
    return r->has_length;
}
