
/*
 * A connection that is tried again for ever: the test is the service, and
 * stops listening when it wants.
 */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/os/redial.h"


#define PATIENCE_S  20.0

typedef struct {
    char             dir[32];
    char             path[48];
    struct ev_loop  *loop;
    log_t            log;
    redial_t         redial;
    int              fd;        /* listens; -1: the service is away */
    int              peer;      /* accepted; -1: none */
    int              connected, lost, messages, nonsense;
} fixture_t;


/* --- callbacks of the client */

static void
on_connected(void *data)
{
    ((fixture_t *) data)->connected++;
}


static void
on_message(void *data, const json_t *message)
{
    fixture_t  *f;

    f = data;

    if (message != NULL) {
        f->messages++;

    } else {
        f->nonsense++;
        redial_again(&f->redial, "nonsense", "retrying");
    }
}


static void
on_lost(void *data, const char *why)
{
    fixture_t  *f;

    f = data;
    assert_null(f->redial.conn);
    f->lost++;
    redial_again(&f->redial, why, "retrying");
}


/* --- the service */

static void
service_start(fixture_t *f)
{
    struct sockaddr_un  sun = { .sun_family = AF_UNIX };

    snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", f->path);
    f->fd = socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->fd, (struct sockaddr *) &sun, sizeof(sun)), 0);
    assert_int_equal(listen(f->fd, 8), 0);
}


static void
service_accept(fixture_t *f)
{
    f->peer = accept4(f->fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(f->peer >= 0);
}


static void
service_die(fixture_t *f)
{
    close(f->fd);
    close(f->peer);
    unlink(f->path);
    f->fd = f->peer = -1;
}


static void
service_say(const fixture_t *f, const char *text)
{
    assert_int_equal(send(f->peer, text, strlen(text), 0), strlen(text));
}


/* --- the scene */

static int
setup(void **state)
{
    fixture_t  *f;

    static const redial_callbacks_t  callbacks = {
        on_connected, on_message, on_lost
    };

    f = calloc(1, sizeof(fixture_t));
    snprintf(f->dir, sizeof(f->dir), "/tmp/llmgw-redial-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/s", f->dir);
    f->loop = ev_loop_new(EVFLAG_AUTO);
    f->log = (log_t) { .program = "test", .level = LOG_ERROR };
    f->fd = f->peer = -1;

    f->redial = (redial_t) {
        .loop = f->loop, .log = &f->log, .name = "service", .path = f->path,
        .callbacks = &callbacks, .data = f
    };
    redial_init(&f->redial);
    *state = f;

    return 0;
}


static int
teardown(void **state)
{
    int         rc;
    fixture_t  *f;

    f = *state;
    redial_stop(&f->redial);
    service_die(f);
    ev_loop_destroy(f->loop);
    rc = rmdir(f->dir);
    free(f);

    return rc;
}


static void
on_late(struct ev_loop *loop, ev_timer *w, int revents)
{
    fail_msg("waited for %g s", PATIENCE_S);
}


/* Runs the loop until a count has changed. */
static void
until(fixture_t *f, const int *count, int value)
{
    ev_timer  late;

    ev_timer_init(&late, on_late, PATIENCE_S, 0);
    ev_now_update(f->loop);
    ev_timer_start(f->loop, &late);

    while (*count != value) {
        ev_run(f->loop, EVRUN_ONCE);
    }

    ev_timer_stop(f->loop, &late);
}


static void
test_service_that_is_away_is_tried_until_it_is_there(void **state)
{
    fixture_t  *f;

    f = *state;
    redial_connect(&f->redial);
    assert_int_equal(f->lost, 1);
    assert_true(f->redial.pause_s == 2 * REDIAL_MIN_S);
    until(f, &f->lost, 4);
    assert_true(f->redial.pause_s == REDIAL_MAX_S);
    assert_int_equal(redial_send(&f->redial, json_object(), -1), 0);

    service_start(f);
    until(f, &f->connected, 1);
    assert_int_equal(f->lost, 4);

    /* A connection alone does not reset the pause: redial_fine() does. */

    assert_true(f->redial.pause_s == REDIAL_MAX_S);
    assert_int_equal(redial_fine(&f->redial), 1);
    assert_int_equal(redial_fine(&f->redial), 0);
    assert_true(f->redial.pause_s == REDIAL_MIN_S);
}


static void
test_connection_that_ends_is_made_again(void **state)
{
    fixture_t  *f;

    f = *state;
    service_start(f);
    redial_connect(&f->redial);
    assert_int_equal(f->connected, 1);
    service_accept(f);
    service_die(f);
    until(f, &f->lost, 1);
    service_start(f);
    until(f, &f->connected, 2);
}


static void
test_nonsense_may_end_the_connection(void **state)
{
    fixture_t  *f;

    f = *state;
    service_start(f);
    redial_connect(&f->redial);
    service_accept(f);
    service_say(f, "{}\n{}\nnonsense\n{}\n");
    until(f, &f->nonsense, 1);
    assert_int_equal(f->messages, 2);
    assert_null(f->redial.conn);
    until(f, &f->connected, 2);
    assert_int_equal(f->messages, 2);
    assert_int_equal(f->lost, 0);
}


static void
test_message_that_cannot_be_made_is_told(void **state)
{
    fixture_t  *f;

    f = *state;
    service_start(f);
    redial_connect(&f->redial);
    assert_int_equal(redial_send(&f->redial, NULL, -1), -1);
    assert_non_null(f->redial.conn);
}


static void
test_nothing_comes_after_a_stop(void **state)
{
    fixture_t  *f;

    f = *state;
    redial_connect(&f->redial);
    redial_stop(&f->redial);
    service_start(f);
    ev_run(f->loop, 0);                 /* nothing is left to wait for */
    assert_int_equal(f->connected, 0);

    redial_connect(&f->redial);
    service_accept(f);
    assert_int_equal(redial_send(&f->redial, json_object(), -1), 0);
    redial_finish(&f->redial);
    service_die(f);
    ev_run(f->loop, 0);
    assert_int_equal(f->lost, 1);
}


#define CASE(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        CASE(test_service_that_is_away_is_tried_until_it_is_there),
        CASE(test_connection_that_ends_is_made_again),
        CASE(test_nonsense_may_end_the_connection),
        CASE(test_message_that_cannot_be_made_is_told),
        CASE(test_nothing_comes_after_a_stop)
    };

    signal(SIGPIPE, SIG_IGN);

    return cmocka_run_group_tests(tests, NULL, NULL);
}
