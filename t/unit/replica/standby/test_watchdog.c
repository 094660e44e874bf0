
/*
 * The watchdog's thread beside a main loop, and a lock service that runs in
 * this loop.  make test runs it under the thread sanitizer as well.
 */

#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/line_conn.h"
#include "common/unix_listener.h"
#include "replica/standby/watchdog.h"


#define LIMIT_S   20.0
#define INSTANCE  "00000000000000ab"

typedef struct {
    struct ev_loop   *loop;
    log_t             log;
    char              dir[64];
    char              socket[80];
    watchdog_t         *watchdog;

    /* the service */
    unix_listener_t   listener;
    line_conn_t      *conn;
    char              said[1024];       /* the last line that is no ping */
    int               claims, takes, workers, fds, pongs, releases;
    int               seeks;            /* pings with another's number */
    json_int_t        seq;              /* of the last ping */

    /* what the main loop was notified of */
    int               granted, regranted, registered, succeeded;
    uint64_t          epoch, lock;
} fixture_t;


/* --- the service */

static void
service_say(fixture_t *f, const char *text)
{
    (void) line_conn_send(f->conn, text, strlen(text));
}


static void
service_on_line(line_conn_t *conn, char *line, size_t len)
{
    int          fd;
    json_t      *json;
    fixture_t   *f;
    json_int_t   seq;
    const char  *cmd;

    f = line_conn_data(conn);
    json = json_loadb(line, len, 0, NULL);
    cmd = json_string_value(json_object_get(json, "cmd"));
    assert_non_null(cmd);

    f->claims += strcmp(cmd, "acquire") == 0;
    f->takes += strcmp(cmd, "take") == 0;
    f->workers += strcmp(cmd, "worker") == 0;
    f->pongs += strcmp(cmd, "pong") == 0;
    f->releases += strcmp(cmd, "release") == 0;

    if (strcmp(cmd, "ping") != 0) {
        snprintf(f->said, sizeof(f->said), "%s", line);

    } else {
        seq = json_integer_value(json_object_get(json, "seq"));
        f->seeks += seq == f->seq;
        f->seq = seq;
    }

    fd = line_conn_take_fd(conn);

    if (fd != -1) {
        f->fds++;
        close(fd);
    }

    json_decref(json);
}


static void
service_on_close(line_conn_t *conn, const char *reason)
{
    ((fixture_t *) line_conn_data(conn))->conn = NULL;
}


static void
service_on_accept(void *data, int fd, const address_t *peer)
{
    fixture_t                           *f;
    static const line_conn_callbacks_t   callbacks = {
        service_on_line, service_on_close
    };

    f = data;
    f->conn = line_conn_create(f->loop, fd, &callbacks, f);
    assert_non_null(f->conn);
}


/* --- the engine */

static void
on_granted(void *data, uint64_t epoch, uint64_t lock)
{
    fixture_t  *f;

    f = data;
    f->granted++;
    f->epoch = epoch;
    f->lock = lock;
}


static void
on_regranted(void *data, uint64_t lock)
{
    fixture_t  *f;

    f = data;
    f->regranted++;
    f->lock = lock;
}


static void
on_registered(void *data, int workers)
{
    ((fixture_t *) data)->registered = workers;
}


static void
on_successor(void *data)
{
    ((fixture_t *) data)->succeeded++;
}


static const watchdog_callbacks_t  callbacks = {
    on_granted, on_regranted, on_registered, on_successor
};


static void
post(fixture_t *f, uint64_t waking_timeout_ms)
{
    char              error[WATCHDOG_ERROR_BYTES];
    watchdog_options_t  options = {
        .group = "g", .engine = "e", .lock = f->socket,
        .waking_timeout_ms = waking_timeout_ms
    };

    f->watchdog = watchdog_create(f->loop, &f->log, &options, &callbacks, f,
                              error);
    assert_non_null(f->watchdog);
}


static void
on_pulse(struct ev_loop *loop, ev_timer *w, int revents)
{
    /* The loop turns. */
}


static void
turn_until(fixture_t *f, const int *fact, int value)
{
    double    limit;
    ev_timer  pulse;

    ev_timer_init(&pulse, on_pulse, 0.01, 0.01);
    ev_timer_start(f->loop, &pulse);
    limit = ev_time() + LIMIT_S;

    while (*fact != value && ev_time() < limit) {
        ev_run(f->loop, EVRUN_ONCE);
    }

    ev_timer_stop(f->loop, &pulse);
    assert_int_equal(*fact, value);
}


static void
wake_up(fixture_t *f)
{
    int            is_lock_away;
    life_vitals_t  vitals = { 0 };

    watchdog_asleep(f->watchdog);
    turn_until(f, &f->claims, 1);
    assert_int_equal(watchdog_turned(f->watchdog, &vitals, &is_lock_away),
                     LLMGW_GROUP_INIT);
    service_say(f, "{\"type\":\"queued\",\"position\":1}");
    service_say(f, "{\"type\":\"ping\",\"seq\":1}");
    turn_until(f, &f->pongs, 1);
    assert_int_equal(watchdog_turned(f->watchdog, &vitals, &is_lock_away),
                     LLMGW_GROUP_STANDBY);
    service_say(f, "{\"type\":\"offer\",\"epoch\":7}");
    turn_until(f, &f->takes, 1);
    service_say(f, "{\"type\":\"granted\",\"epoch\":7,\"lock\":\"" INSTANCE
                "\"}");
    turn_until(f, &f->granted, 1);
}


/* --- fixture */

static int
setup(void **state)
{
    char        error[UNIX_LISTENER_ERROR_BYTES];
    fixture_t  *f;

    f = calloc(1, sizeof(fixture_t));
    f->loop = ev_loop_new(EVFLAG_AUTO);
    f->log.program = "test";
    f->log.level = LOG_ERROR;
    strcpy(f->dir, "/tmp/llmgw-watchdog-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->socket, sizeof(f->socket), "%s/l", f->dir);
    assert_int_equal(unix_listener_init(&f->listener, f->loop, f->socket,
                                        service_on_accept, f, error), 0);
    *state = f;

    return 0;
}


static int
teardown(void **state)
{
    char        path[96];
    fixture_t  *f;

    f = *state;

    if (f->conn != NULL) {
        line_conn_destroy(f->conn);
    }

    unix_listener_done(&f->listener);
    snprintf(path, sizeof(path), "%s/g.lock", f->dir);
    (void) unlink(path);
    assert_int_equal(rmdir(f->dir), 0);
    ev_loop_destroy(f->loop);
    free(f);

    return 0;
}


/* --- tests */

static void
a_grant_reaches_the_main_loop_with_the_lock_held(void **state)
{
    int            fd;
    char           path[96];
    fixture_t     *f;
    struct flock   lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    f = *state;
    post(f, 60000);
    assert_int_equal(watchdog_lock_fd(f->watchdog), -1);
    wake_up(f);
    assert_int_equal(f->epoch, 7);
    assert_int_equal(f->lock, 0xab);

    snprintf(path, sizeof(path), "%s/g.lock", f->dir);
    fd = open(path, O_RDWR|O_CLOEXEC);
    assert_int_not_equal(fd, -1);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), -1);
    close(fd);

    assert_int_equal(watchdog_woken(f->watchdog), 0);
    assert_int_equal(watchdog_woken(f->watchdog), -1);

    watchdog_destroy(f->watchdog, 1);
    turn_until(f, &f->releases, 1);
}


static void
a_pong_has_what_the_main_loop_said_last(void **state)
{
    int             is_lock_away;
    fixture_t      *f;
    life_vitals_t   vitals = { .is_ready = 1, .streams = 3, .progress = 41 };

    f = *state;
    post(f, 60000);
    wake_up(f);
    watchdog_turned(f->watchdog, &vitals, &is_lock_away);
    service_say(f, "{\"type\":\"ping\",\"seq\":5}");
    turn_until(f, &f->pongs, 2);
    assert_string_equal(f->said, "{\"cmd\":\"pong\",\"seq\":5,"
        "\"state\":\"waking\",\"progress\":41,\"streams\":3}");

    assert_int_equal(watchdog_woken(f->watchdog), 0);
    service_say(f, "{\"type\":\"ping\",\"seq\":6}");
    turn_until(f, &f->pongs, 3);
    assert_non_null(strstr(f->said, "\"active\""));

    watchdog_destroy(f->watchdog, 0);
}


static void
workers_are_registered_once_and_told_again_to_a_new_service(void **state)
{
    fixture_t  *f;

    f = *state;
    post(f, 60000);
    wake_up(f);
    watchdog_worker(f->watchdog, 101, dup(0));
    watchdog_worker(f->watchdog, 102, dup(0));
    turn_until(f, &f->workers, 2);
    turn_until(f, &f->fds, 2);
    service_say(f, "{\"type\":\"worker\",\"pid\":101}");
    service_say(f, "{\"type\":\"worker\",\"pid\":103}");
    turn_until(f, &f->registered, 1);

    line_conn_destroy(f->conn);
    turn_until(f, &f->claims, 2);
    assert_non_null(strstr(f->said, "\"epoch\":7,"));
    service_say(f, "{\"type\":\"granted\",\"epoch\":7,\"regrant\":true,"
                "\"lock\":\"cd\"}");
    turn_until(f, &f->fds, 4);
    assert_int_equal(f->lock, 0xcd);
    service_say(f, "{\"type\":\"worker\",\"pid\":101}");
    service_say(f, "{\"type\":\"worker\",\"pid\":102}");
    turn_until(f, &f->registered, 2);
    assert_int_equal(f->granted, 1);
    assert_int_equal(f->regranted, 1);

    watchdog_destroy(f->watchdog, 0);
    assert_int_equal(f->releases, 0);
}


/*
 * Reports of the service from before, and reports without a standby, do not
 * count.
 */
static void
a_successor_is_told_after_it_was_sought(void **state)
{
    fixture_t  *f;

    f = *state;
    f->seq = -1;
    post(f, 60000);
    wake_up(f);
    assert_int_equal(watchdog_woken(f->watchdog), 0);
    service_say(f, "{\"type\":\"pong\",\"seq\":0,\"standbys\":1}");
    service_say(f, "{\"type\":\"ping\",\"seq\":2}");
    turn_until(f, &f->pongs, 2);
    assert_int_equal(f->seeks, 0);

    watchdog_seek(f->watchdog);
    turn_until(f, &f->seeks, 1);
    service_say(f, "{\"type\":\"pong\",\"seq\":0,\"standbys\":0}");
    service_say(f, "{\"type\":\"pong\",\"seq\":0}");
    turn_until(f, &f->seeks, 3);
    assert_int_equal(f->succeeded, 0);
    service_say(f, "{\"type\":\"pong\",\"seq\":0,\"standbys\":2}");
    turn_until(f, &f->succeeded, 1);

    watchdog_destroy(f->watchdog, 1);
}


/* A line that makes no sense ends the connection, and changes nothing else. */
static void
nonsense_is_not_believed(void **state)
{
    fixture_t  *f;

    f = *state;
    post(f, 60000);
    watchdog_asleep(f->watchdog);
    turn_until(f, &f->claims, 1);
    service_say(f, "nonsense");
    turn_until(f, &f->claims, 2);
    service_say(f, "{\"type\":\"granted\",\"epoch\":7}");
    turn_until(f, &f->claims, 3);
    service_say(f, "{\"type\":7}");
    turn_until(f, &f->claims, 4);
    assert_int_equal(f->granted, 0);

    watchdog_destroy(f->watchdog, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(
            a_grant_reaches_the_main_loop_with_the_lock_held, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_pong_has_what_the_main_loop_said_last, setup, teardown),
        cmocka_unit_test_setup_teardown(
            workers_are_registered_once_and_told_again_to_a_new_service,
            setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_successor_is_told_after_it_was_sought, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsense_is_not_believed, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
