
/*
 * How a request ends whose engine cannot be reached.  The tests need no
 * network: no resolver is asked for the names, and the listener is the test's
 * own.
 */

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "replica/engine/http.h"


/* A label of a name has at most 63 characters. */
#define LABEL  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
               "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

typedef struct {
    struct ev_loop  *loop;
    int              listener;
    int              accepted;
    ev_io            io;
    http_end_t       end;
    int              has_ended;
    char             why[HTTP_WHY_BYTES];
} scene_t;


static void
on_head(http_request_t *request, unsigned status, const char *content_type,
    int is_sent)
{
    fail_msg("an answer with status %u", status);
}


static void
on_bytes(http_request_t *request, const char *bytes, size_t len)
{
    fail_msg("%zu bytes", len);
}


static void
on_end(http_request_t *request, http_end_t end, const char *why)
{
    scene_t  *s = http_data(request);

    s->end = end;
    s->has_ended = 1;
    snprintf(s->why, sizeof(s->why), "%s", why);
    ev_break(s->loop, EVBREAK_ALL);
}


/* The listener answers, but speaks no TLS. */
static void
on_connection(struct ev_loop *loop, ev_io *w, int revents)
{
    static const char  words[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    scene_t           *s = w->data;

    s->accepted = accept(s->listener, NULL, NULL);
    assert_int_not_equal(s->accepted, -1);
    assert_int_equal(write(s->accepted, words, sizeof(words) - 1),
                     sizeof(words) - 1);
    ev_io_stop(loop, w);
}


static unsigned
scene_listen(scene_t *s)
{
    socklen_t           len;
    struct sockaddr_in  address = { .sin_family = AF_INET };

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    len = sizeof(address);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_not_equal(s->listener, -1);
    assert_int_equal(bind(s->listener, (struct sockaddr *) &address, len), 0);
    assert_int_equal(listen(s->listener, 1), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *) &address,
                                 &len), 0);

    ev_io_init(&s->io, on_connection, s->listener, EV_READ);
    s->io.data = s;
    ev_io_start(s->loop, &s->io);

    return ntohs(address.sin_port);
}


static void
scene_ask(scene_t *s, const char *url)
{
    http_call_t    call;
    http_client_t *client;

    static const http_callbacks_t  callbacks = { on_head, on_bytes, on_end };

    memset(&call, 0, sizeof(call));
    call.callbacks = &callbacks;
    call.data = s;
    call.path = "/v1/models";

    client = http_create(s->loop, url, NULL, NULL);
    assert_non_null(client);
    assert_non_null(http_start(client, &call));

    if (!s->has_ended) {
        ev_run(s->loop, 0);
    }

    http_destroy(client);
}


static void
a_name_without_an_address_is_not_reached(void **state)
{
    scene_t  s = { .loop = ev_loop_new(0) };

    scene_ask(&s, "http://" LABEL ".example:1");
    assert_int_equal(s.end, HTTP_UNREACHED);
    assert_non_null(strstr(s.why, "resolve"));

    ev_loop_destroy(s.loop);
}


static void
a_failed_handshake_is_not_reached(void **state)
{
    char     url[64];
    scene_t  s = { .loop = ev_loop_new(0) };

    snprintf(url, sizeof(url), "https://127.0.0.1:%u", scene_listen(&s));
    scene_ask(&s, url);
    assert_int_equal(s.end, HTTP_UNREACHED);
    assert_non_null(strstr(s.why, "SSL"));

    close(s.accepted);
    close(s.listener);
    ev_loop_destroy(s.loop);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_name_without_an_address_is_not_reached),
        cmocka_unit_test(a_failed_handshake_is_not_reached),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
