
/*
 * libcurl's multi interface on libev.
 *
 * libcurl says which sockets it watches and when it wants to be called
 * (http_on_watch, http_on_wish); each such event goes to
 * curl_multi_socket_action(), in which the callbacks of transfers run.  Within
 * them libcurl allows neither new transfers nor the end of others.  So the
 * two are put off until it has returned:
 *
 *   http_start()   NEW ------> RUNNING -----> ended: on_end, freed
 *                   |  added    |   |
 *   http_cancel()   '-----------'---|-------> CANCELLED --> freed
 *                               ^   v
 *   http_leave()                '- LEFT ----> ended, freed
 *
 * Outside of libcurl both steps happen at once (http_settle()).
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/engine/http_inner.h"


/*
 * libcurl keeps four connections for each transfer under way, and closes the
 * others: of a thousand streams that end in one step nearly all.  With this
 * many only the engine and HTTP_REUSE_S end idle ones.
 */
#define HTTP_CONNECTIONS  65536L


typedef struct {
    http_client_t  *client;
    ev_io           io;
} http_socket_t;


/* --- what was put off while libcurl ran, and what it has finished */

void
http_put_off(http_request_t *r)
{
    if (!r->is_later) {
        r->is_later = 1;
        r->later = r->client->later;
        r->client->later = r;
    }
}


int
http_add(http_request_t *r)
{
    if (curl_multi_add_handle(r->client->multi, r->easy) != CURLM_OK) {
        return -1;
    }

    r->state = HTTP_RUNNING;

    return 0;
}


void
http_settle_later(http_client_t *c)
{
    http_request_t  *r;

    while ((r = c->later) != NULL) {
        c->later = r->later;
        r->is_later = 0;

        if (r->state == HTTP_CANCELLED) {
            http_free(r);

        } else if (http_add(r) != 0) {
            http_ended(r, CURLE_OUT_OF_MEMORY);
        }
    }
}


void
http_settle(http_client_t *c)
{
    int              left;
    CURLMsg         *message;
    http_request_t  *r;

    http_settle_later(c);

    while ((message = curl_multi_info_read(c->multi, &left)) != NULL) {
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &r);
        http_ended(r, message->data.result);
        http_settle_later(c);
    }
}


static void
http_action(http_client_t *c, curl_socket_t fd, int events)
{
    int  running;

    c->depth++;
    (void) curl_multi_socket_action(c->multi, fd, events, &running);
    c->depth--;

    http_settle(c);
}


/* --- libev's events */

static void
http_on_socket(struct ev_loop *loop, ev_io *w, int revents)
{
    http_socket_t  *s;

    s = w->data;
    http_action(s->client, w->fd, (revents & EV_READ ? CURL_CSELECT_IN : 0)
                                  | (revents & EV_WRITE ? CURL_CSELECT_OUT
                                                        : 0));
}


static void
http_on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
    http_action(w->data, CURL_SOCKET_TIMEOUT, 0);
}


/* --- libcurl's wishes */

static int
http_watch(http_client_t *c, http_socket_t *s, curl_socket_t fd, int what)
{
    int  events;

    events = (what & CURL_POLL_IN ? EV_READ : 0)
             | (what & CURL_POLL_OUT ? EV_WRITE : 0);

    if (s == NULL) {
        s = malloc(sizeof(http_socket_t));

        if (s == NULL) {
            return -1;
        }

        s->client = c;
        ev_init(&s->io, http_on_socket);
        s->io.data = s;
        (void) curl_multi_assign(c->multi, fd, s);

    } else {
        ev_io_stop(c->loop, &s->io);
    }

    ev_io_set(&s->io, fd, events);
    ev_io_start(c->loop, &s->io);

    return 0;
}


static int
http_on_watch(CURL *easy, curl_socket_t fd, int what, void *client,
    void *socket)
{
    http_client_t  *c;
    http_socket_t  *s;

    c = client;
    s = socket;

    if (what != CURL_POLL_REMOVE) {
        return http_watch(c, s, fd, what);
    }

    if (s != NULL) {
        ev_io_stop(c->loop, &s->io);
        free(s);
    }

    return 0;
}


static int
http_on_wish(CURLM *multi, long timeout_ms, void *client)
{
    http_client_t  *c;

    c = client;
    ev_timer_stop(c->loop, &c->timer);

    if (timeout_ms >= 0) {
        ev_timer_set(&c->timer, (double) timeout_ms / 1000, 0);
        ev_timer_start(c->loop, &c->timer);
    }

    return 0;
}


/* --- the client */

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

    c->loop = loop;
    c->ca_file = ca_file;
    http_point(c, url, NULL);
    ev_init(&c->timer, http_on_timer);
    c->timer.data = c;
    c->multi = curl_multi_init();

    if (c->multi == NULL || http_set_fields(c, key) != 0) {
        http_destroy(c);
        return NULL;
    }

    curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, http_on_watch);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, http_on_wish);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, (long) CURLPIPE_NOTHING);
    curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, HTTP_CONNECTIONS);

    return c;
}


void
http_destroy(http_client_t *c)
{
    while (c->requests != NULL) {
        http_cancel(c->requests);
    }

    curl_multi_cleanup(c->multi);
    ev_timer_stop(c->loop, &c->timer);
    curl_slist_free_all(c->fields);
    free(c);
    curl_global_cleanup();
}
