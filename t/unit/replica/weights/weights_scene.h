
/*
 * An engine's weights, and the services that it gets them from: a test plays
 * these, and each sends only what the test tells it to.
 */

#ifndef WEIGHTS_SCENE_H
#define WEIGHTS_SCENE_H

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/line_conn.h"
#include "replica/weights/weights.h"


#define SERVICES     2
#define BYTES        300000
#define SEALS        (F_SEAL_WRITE|F_SEAL_SHRINK|F_SEAL_GROW|F_SEAL_SEAL)
#define PATIENCE_S   20.0
#define ID_A         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
                     "aaaaaaaaaaaaaaaa"
#define ID_B         "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb" \
                     "bbbbbbbbbbbbbbbb"

typedef struct {
    struct ev_loop  *loop;
    char             path[64];
    int              fd;            /* that listens; -1: there is none */
    ev_io            watch;
    line_conn_t     *conn;          /* the last connection */
    int              conns;
    int              lines;
    int              ends;          /* closed by the client */
    char             line[512];     /* the last line */
    char             before[512];
    int              given;         /* the file that came; -1: none */
} service_t;

typedef struct {
    char                 dir[32];
    char                 files[SERVICES][64];
    char                 sockets[160];
    struct ev_loop      *loop;
    log_t                log;
    service_t            services[SERVICES];
    weights_options_t    options;
    weights_t           *weights;
    int                  ready, asleep, awake, failed;
} fixture_t;


/* --- a service */

static inline void
service_on_line(line_conn_t *conn, char *line, size_t len)
{
    int         fd;
    service_t  *s;

    s = line_conn_data(conn);
    memcpy(s->before, s->line, sizeof(s->line));
    snprintf(s->line, sizeof(s->line), "%s", line);
    s->lines++;
    fd = line_conn_take_fd(conn);

    if (fd != -1) {
        assert_int_equal(s->given, -1);
        s->given = fd;
    }
}


static inline void
service_on_close(line_conn_t *conn, const char *reason)
{
    service_t  *s;

    s = line_conn_data(conn);
    s->conn = NULL;
    s->ends++;
}


static inline void
service_on_accept(struct ev_loop *loop, ev_io *w, int revents)
{
    int         fd;
    service_t  *s;

    static const line_conn_callbacks_t  callbacks = {
        service_on_line, service_on_close
    };

    s = w->data;
    fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK|SOCK_CLOEXEC);
    assert_true(fd >= 0);
    assert_null(s->conn);
    s->conn = line_conn_create(loop, fd, &callbacks, s);
    s->conns++;
}


static inline void
service_start(service_t *s)
{
    struct sockaddr_un  sun = { .sun_family = AF_UNIX };

    snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", s->path);
    s->fd = socket(AF_UNIX, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *) &sun, sizeof(sun)), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    ev_io_init(&s->watch, service_on_accept, s->fd, EV_READ);
    s->watch.data = s;
    ev_io_start(s->loop, &s->watch);
}


static inline void
service_drop(service_t *s)
{
    if (s->conn != NULL) {
        line_conn_destroy(s->conn);
        s->conn = NULL;
    }
}


static inline void
service_die(service_t *s)
{
    service_drop(s);

    if (s->fd != -1) {
        ev_io_stop(s->loop, &s->watch);
        close(s->fd);
        s->fd = -1;
        unlink(s->path);
    }

    if (s->given != -1) {
        close(s->given);
        s->given = -1;
    }
}


static inline void
service_say(service_t *s, const char *text)
{
    assert_int_equal(line_conn_send(s->conn, text, strlen(text)), 0);
}


/* --- the scene */

static inline void
on_ready(void *data)
{
    ((fixture_t *) data)->ready++;
}


static inline void
on_asleep(void *data)
{
    ((fixture_t *) data)->asleep++;
}


static inline void
on_awake(void *data)
{
    ((fixture_t *) data)->awake++;
}


static inline void
on_failed(void *data)
{
    ((fixture_t *) data)->failed++;
}


static inline void
write_file(const char *path, int seed)
{
    int   i;
    FILE  *f;

    f = fopen(path, "w");
    assert_non_null(f);

    for (i = 0; i < BYTES; i++) {
        fputc((i * 7 + i / 251 + seed) & 255, f);
    }

    fclose(f);
}


static inline int
setup(void **state)
{
    int         i;
    fixture_t  *f;

    f = calloc(1, sizeof(fixture_t));
    snprintf(f->dir, sizeof(f->dir), "/tmp/llmgw-weights-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->loop = ev_loop_new(EVFLAG_AUTO);
    f->log.program = "test";
    f->log.level = LOG_ERROR;

    for (i = 0; i < SERVICES; i++) {
        f->services[i].loop = f->loop;
        f->services[i].fd = -1;
        f->services[i].given = -1;
        snprintf(f->services[i].path, sizeof(f->services[i].path), "%s/%d",
                 f->dir, i);
        snprintf(f->files[i], sizeof(f->files[i]), "%s/w%d", f->dir, i);
        write_file(f->files[i], i);
    }

    f->options.engine = "e1";
    f->options.timeout_ms = 60000;
    f->options.remap_timeout_ms = 60000;
    *state = f;

    return 0;
}


static inline int
teardown(void **state)
{
    int         i;
    char        command[64];
    fixture_t  *f;

    f = *state;

    if (f->weights != NULL) {
        weights_close(f->weights);
    }

    for (i = 0; i < SERVICES; i++) {
        service_die(&f->services[i]);
    }

    ev_loop_destroy(f->loop);
    snprintf(command, sizeof(command), "rm -r %s", f->dir);
    free(f);

    return system(command);
}


static inline void
on_late(struct ev_loop *loop, ev_timer *w, int revents)
{
    fail_msg("waited for %g s", PATIENCE_S);
}


/* Runs the loop until a count has changed. */
static inline void
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


static inline void
open_weights(fixture_t *f, int services, int is_mapped)
{
    int                  i;
    const char          *files[SERVICES];
    weights_callbacks_t  callbacks = {
        on_ready, on_asleep, on_awake, on_failed
    };

    for (i = 0; i < services; i++) {
        files[i] = f->files[i];
    }

    snprintf(f->sockets, sizeof(f->sockets), "%s%s%s", f->services[0].path,
             services > 1 ? "," : "", services > 1 ? f->services[1].path : "");
    f->options.sockets = f->sockets;
    f->weights = weights_open(f->loop, &f->log, &f->options, files, is_mapped,
                              &callbacks, f);
    assert_non_null(f->weights);
}


static inline void
start(fixture_t *f, int services, int is_mapped)
{
    int  i;

    for (i = 0; i < services; i++) {
        service_start(&f->services[i]);
    }

    open_weights(f, services, is_mapped);
}


static inline void
assert_says(const char *line, const char *text)
{
    if (strstr(line, text) == NULL) {
        fail_msg("no %s in %s", text, line);
    }
}


/* A sealed memfd with the bytes of a file. */
static inline int
sealed(const char *path, int seals)
{
    int      fd, in;
    char     block[4096];
    ssize_t  n;

    in = open(path, O_RDONLY);
    fd = memfd_create("test", MFD_CLOEXEC|MFD_ALLOW_SEALING);

    while ((n = read(in, block, sizeof(block))) > 0) {
        assert_int_equal(write(fd, block, (size_t) n), n);
    }

    close(in);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);

    return fd;
}


/* Answers that the engine may read; fd is closed. */
static inline void
give(fixture_t *f, int i, const char *name, const char *id, size_t bytes,
    int fd)
{
    int         lines;
    char        text[256];
    service_t  *s;

    s = &f->services[i];
    lines = s->lines;
    service_say(s, "{\"type\":\"granted\",\"mode\":\"ro\",\"committed\":true,"
                   "\"id\":\"" ID_A "\"}");
    until(f, &s->lines, lines + 1);
    assert_says(s->line, "\"get\"");

    snprintf(text, sizeof(text), "{\"type\":\"slot\",\"id\":\"%s\","
             "\"name\":\"%s\",\"bytes\":%zu}", id, name, bytes);
    assert_int_equal(line_conn_send_fd(s->conn, text, strlen(text), fd), 0);
    close(fd);
}


/* Starts as in normal service, up to on_ready. */
static inline void
start_reader(fixture_t *f, int is_mapped)
{
    start(f, 1, is_mapped);
    until(f, &f->services[0].lines, 1);
    give(f, 0, "w0", ID_A, BYTES, sealed(f->files[0], SEALS));
    until(f, &f->ready, 1);
}


static inline void
assert_holds(fixture_t *f, int i)
{
    int      fd;
    char     file[4096], memory[4096];
    FILE    *in;
    size_t   n, total;

    fd = open(weights_path(f->weights, (size_t) i), O_RDONLY);
    in = fopen(f->files[i], "r");
    assert_true(fd >= 0 && in != NULL);

    for (total = 0; (n = fread(file, 1, sizeof(file), in)) > 0; total += n) {
        assert_int_equal(read(fd, memory, n), n);
        assert_memory_equal(memory, file, n);
    }

    assert_int_equal(total, BYTES);
    fclose(in);
    close(fd);
}


#define CASE(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif /* WEIGHTS_SCENE_H */
