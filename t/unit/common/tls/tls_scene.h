
/*
 * gRPC over mutual TLS: a server and a client in one loop, and certificates
 * that the openssl command makes for each run.
 */

#ifndef TLS_SCENE_H
#define TLS_SCENE_H

#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/grpc/conn.h"
#include "common/listener.h"
#include "common/tls/tls.h"
#include "t/unit/common/loopback.h"


#define GIVE_UP_S     30
#define PORT          21300
#define LARGE_BYTES   (3 * 1024 * 1024)

typedef struct {
    struct ev_loop       *loop;
    grpc_server_t        *server;
    address_t             address;
    grpc_conn_t          *conn;
    grpc_conn_options_t   server_options;
    grpc_conn_options_t   client_options;
    uint64_t              connect_timeout_ms;
    tls_t                *server_tls;
    tls_t                *client_tls;

    size_t                bytes;        /* of the last echo */
    int                   is_equal;
    int                   ends;
    int                   closed;
    char                  reason[256];
    int                   refused;
    char                  refusal[256];
} scene_t;

static char      dir[] = "/tmp/llmgw-tls-XXXXXX";
static uint8_t  *large;
static log_t     logger = { "test", NULL, LOG_ERROR };


/* --- certificates */

/* Runs a command in the directory of the certificates. */
static inline void
shell(const char *format, ...)
{
    int      n;
    char     command[2048];
    va_list  args;

    n = snprintf(command, sizeof(command), "cd %s && { ", dir);
    va_start(args, format);
    n += vsnprintf(command + n, sizeof(command) - n, format, args);
    va_end(args);
    snprintf(command + n, sizeof(command) - n, "; } >log 2>&1");
    assert_int_equal(system(command), 0);
}


static inline void
make_ca(const char *name)
{
    shell("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
          "-nodes -subj /CN=%s -keyout %s.key -out %s.crt", name, name, name);
}


static inline void
make_cert(const char *name, const char *ca, const char *extension, int days)
{
    shell("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
          "-subj /CN=%s -keyout %s.key -out %s.csr && "
          "printf '%s\\n' > %s.ext && "
          "openssl x509 -req -in %s.csr -CA %s.crt -CAkey %s.key "
          "-set_serial 2 -days %d -extfile %s.ext -out %s.crt", name, name,
          name, extension, name, name, ca, ca, days, name, name);
}


static inline int
make_all(void **state)
{
    size_t  i;
    char    here[64];

    signal(SIGPIPE, SIG_IGN);
    assert_non_null(mkdtemp(dir));

    snprintf(here, sizeof(here), "subjectAltName=IP:%s", loopback(PORT));
    *strrchr(here, ':') = '\0';

    make_ca("ca");
    make_ca("other");
    make_cert("good", "ca", here, 2);
    make_cert("second", "ca", here, 2);
    make_cert("expired", "ca", here, -1);
    make_cert("elsewhere", "ca", "subjectAltName=IP:127.0.0.9,DNS:localhost",
              2);
    make_cert("stranger", "other", here, 2);
    strcat(here, "\\nextendedKeyUsage=serverAuth");
    make_cert("halved", "ca", here, 2);
    shell("openssl pkey -in good.key -aes128 -passout pass:secret "
          "-out locked.key && echo hello > text.crt");

    large = malloc(LARGE_BYTES);

    for (i = 0; i < LARGE_BYTES; i++) {
        large[i] = (uint8_t) (i * 2654435761u >> 24);
    }

    return 0;
}


static inline int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}


static inline int
remove_all(void **state)
{
    free(large);

    return nftw(dir, remove_one, 8, FTW_DEPTH|FTW_PHYS);
}


static inline tls_files_t
files_of(const char *name, const char *ca)
{
    int            i;
    tls_files_t    files;
    static char    paths[8][3][80];
    static size_t  next;

    next = (next + 1) % 8;
    memset(&files, 0, sizeof(files));
    snprintf(paths[next][0], 80, "%s/%s.crt", dir, name);
    snprintf(paths[next][1], 80, "%s/%s.key", dir, name);
    snprintf(paths[next][2], 80, "%s/%s.crt", dir, ca);

    for (i = 0; i < 3; i++) {
        ((const char **) &files)[i] = paths[next][i];
    }

    return files;
}


static inline tls_t *
tls_of(const char *name, const char *ca)
{
    char         error[TLS_ERROR_BYTES];
    tls_t       *tls;
    tls_files_t  files;

    files = files_of(name, ca);
    tls = tls_open(&files, &logger, error);

    if (tls == NULL) {
        fail_msg("%s", error);
    }

    return tls;
}


/* --- both ends */

static inline void
server_on_message(llmgw_grpc_stream_t *stream, const uint8_t *data,
    size_t len, size_t wire_bytes)
{
    llmgw_grpc_stream_consume(stream, wire_bytes);
    assert_int_equal(llmgw_grpc_send_message(stream, data, len),
                     LLMGW_GRPC_DONE);
    assert_int_equal(llmgw_grpc_finish(stream, LLMGW_GRPC_OK, NULL, NULL, 0),
                     LLMGW_GRPC_DONE);
}


static const llmgw_grpc_callbacks_t  server_callbacks = {
    .on_message = server_on_message
};


static inline void
client_on_message(llmgw_grpc_stream_t *stream, const uint8_t *data,
    size_t len, size_t wire_bytes)
{
    scene_t  *s;

    s = llmgw_grpc_stream_data(stream);
    s->bytes = len;
    s->is_equal = memcmp(data, large, len) == 0;
    llmgw_grpc_stream_consume(stream, wire_bytes);
}


static inline void
client_on_end(llmgw_grpc_stream_t *stream, int status, const char *message)
{
    scene_t  *s;

    s = llmgw_grpc_stream_data(stream);
    s->ends++;
    assert_int_equal(status, LLMGW_GRPC_OK);
}


static const llmgw_grpc_callbacks_t  client_callbacks = {
    .on_message = client_on_message,
    .on_end = client_on_end
};


static inline void
on_closed(grpc_conn_t *conn, const char *reason)
{
    scene_t  *s;

    s = grpc_conn_data(conn);
    s->conn = NULL;
    s->closed++;
    snprintf(s->reason, sizeof(s->reason), "%s", reason != NULL ? reason : "");
}


static inline void
on_refused(void *data, const address_t *peer, const char *reason)
{
    scene_t  *s;

    s = data;
    s->refused++;
    snprintf(s->refusal, sizeof(s->refusal), "%s", reason);
    assert_true(address_is_loopback(peer));
}


static inline void
serve(scene_t *s)
{
    char                  error[256];
    llmgw_grpc_config_t   config;

    memset(&config, 0, sizeof(config));
    config.callbacks = &server_callbacks;
    config.data = s;

    assert_int_equal(address_parse(loopback(PORT), &s->address), 0);
    s->server = grpc_server_create(s->loop, &s->address, &config, 100, error);
    assert_non_null(s->server);
    grpc_server_set_options(s->server, &s->server_options);
}


static inline void
dial(scene_t *s)
{
    llmgw_grpc_config_t  config;

    memset(&config, 0, sizeof(config));
    config.callbacks = &client_callbacks;
    config.data = s;
    s->conn = grpc_conn_connect_with(s->loop, &s->address, &s->client_options,
                                     &config, s->connect_timeout_ms,
                                     on_closed);
    assert_non_null(s->conn);
}


/* Sends the first len bytes of `large`; the server echoes them. */
static inline void
call(scene_t *s, size_t len)
{
    llmgw_grpc_call_t     c;
    llmgw_grpc_stream_t  *stream;

    memset(&c, 0, sizeof(c));
    c.path = "/test.Test/Echo";
    c.authority = "test";
    c.data = s;

    assert_int_equal(llmgw_grpc_call(grpc_conn_session(s->conn), &c, &stream),
                     LLMGW_GRPC_DONE);
    assert_int_equal(llmgw_grpc_send_message(stream, large, len),
                     LLMGW_GRPC_DONE);
    assert_int_equal(llmgw_grpc_half_close(stream), LLMGW_GRPC_DONE);
    grpc_conn_wake(s->conn);
}


static inline void
turn_until(scene_t *s, const int *fact, int value)
{
    ev_tstamp  begun;

    for (begun = ev_time(); *fact < value; ) {
        assert_true(ev_time() < begun + GIVE_UP_S);
        ev_run(s->loop, EVRUN_NOWAIT);
        usleep(100);
    }
}


static inline void
turn_until_empty(scene_t *s)
{
    ev_tstamp  begun;

    for (begun = ev_time(); grpc_server_conns(s->server) > 0; ) {
        assert_true(ev_time() < begun + GIVE_UP_S);
        ev_run(s->loop, EVRUN_NOWAIT);
        usleep(100);
    }
}


/* Sets what both ends use; with NULL for a tls_t, that end does not use TLS. */
static inline void
use(scene_t *s, tls_t *server, tls_t *client)
{
    s->server_tls = server;
    s->client_tls = client;
    s->server_options.channel = server != NULL ? &tls_channel : NULL;
    s->server_options.channel_context = server;
    s->client_options.channel = client != NULL ? &tls_channel : NULL;
    s->client_options.channel_context = client;
    s->server_options.on_refused = on_refused;
    s->server_options.refused_data = s;
}


static inline int
setup(void **state)
{
    scene_t  *s;

    s = calloc(1, sizeof(scene_t));
    s->loop = ev_loop_new(EVFLAG_AUTO);
    s->connect_timeout_ms = 20000;
    *state = s;

    return 0;
}


static inline int
teardown(void **state)
{
    scene_t  *s;

    s = *state;

    if (s->conn != NULL) {
        grpc_conn_destroy(s->conn);
    }

    if (s->server != NULL) {
        grpc_server_destroy(s->server);
    }

    tls_close(s->server_tls);
    tls_close(s->client_tls);
    ev_loop_destroy(s->loop);
    free(s);

    return 0;
}

#endif /* TLS_SCENE_H */
