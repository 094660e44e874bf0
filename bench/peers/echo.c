/*
 * A shard that computes nothing, so that a hop takes only the time of its
 * messages.
 *
 *     echo ADDRESS [CERT KEY CA]
 *
 * Answers Open with Opened, and each Step with Started and a Result of the
 * same bytes, as a shard does.  ADDRESS is HOST:PORT or unix:PATH.
 */

#include <ev.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peers/place.h"
#include "common/grpc/conn.h"
#include "common/tls/tls.h"
#include "replica/shard/limits.h"
#include "shard.pb-c.h"


static const log_t  echo_log = { "echo", NULL, LOG_INFO };


static void
echo_send(llmgw_grpc_stream_t *stream, const Llmgateway__Shard__Reply *reply)
{
    uint8_t  *to;

    to = llmgw_grpc_send_reserve(stream,
                             llmgateway__shard__reply__get_packed_size(reply));

    if (to != NULL) {
        llmgateway__shard__reply__pack(reply, to);
    }
}


static void
echo_opened(llmgw_grpc_stream_t *stream)
{
    Llmgateway__Shard__Reply   reply;
    Llmgateway__Shard__Opened  opened;

    llmgateway__shard__reply__init(&reply);
    llmgateway__shard__opened__init(&opened);
    reply.kind_case = LLMGATEWAY__SHARD__REPLY__KIND_OPENED;
    reply.opened = &opened;
    echo_send(stream, &reply);
}


static void
echo_step(llmgw_grpc_stream_t *stream, const Llmgateway__Shard__Step *step)
{
    Llmgateway__Shard__Reply    reply;
    Llmgateway__Shard__Result   result;
    Llmgateway__Shard__Started  started;

    llmgateway__shard__reply__init(&reply);
    llmgateway__shard__started__init(&started);
    reply.kind_case = LLMGATEWAY__SHARD__REPLY__KIND_STARTED;
    reply.started = &started;
    started.session = step->session;
    started.position = step->position;
    echo_send(stream, &reply);

    llmgateway__shard__result__init(&result);
    reply.kind_case = LLMGATEWAY__SHARD__REPLY__KIND_RESULT;
    reply.result = &result;
    result.session = step->session;
    result.position = step->position;
    result.rows = step->rows;
    result.chunk = step->chunk;
    result.chunks = step->chunks;
    result.data = step->data;
    echo_send(stream, &reply);
}


static void
echo_on_message(llmgw_grpc_stream_t *stream, const uint8_t *data, size_t len,
    size_t wire_bytes)
{
    Llmgateway__Shard__Request  *request;

    llmgw_grpc_stream_consume(stream, wire_bytes);
    request = llmgateway__shard__request__unpack(NULL, len, data);

    if (request == NULL) {
        return;
    }

    if (request->kind_case == LLMGATEWAY__SHARD__REQUEST__KIND_OPEN) {
        echo_opened(stream);

    } else if (request->kind_case == LLMGATEWAY__SHARD__REQUEST__KIND_STEP) {
        echo_step(stream, request->step);
    }

    llmgateway__shard__request__free_unpacked(request, NULL);
}


int
main(int argc, char **argv)
{
    char                   error[TLS_ERROR_BYTES];
    address_t              address;
    tls_files_t            files;
    grpc_server_t         *server;
    grpc_conn_options_t    options;
    llmgw_grpc_config_t    config;

    static const llmgw_grpc_callbacks_t  callbacks = {
        .on_message = echo_on_message
    };

    if ((argc != 2 && argc != 5) || place_parse(argv[1], &address) != 0) {
        fprintf(stderr, "echo: echo ADDRESS [CERT KEY CA]\n");
        return 2;
    }

    signal(SIGPIPE, SIG_IGN);
    memset(&config, 0, sizeof(config));
    config.callbacks = &callbacks;
    config.max_message_bytes = SHARD_MESSAGE_BYTES;
    config.stream_window_bytes = SHARD_WINDOW_BYTES;
    config.connection_window_bytes = SHARD_WINDOW_BYTES;
    server = grpc_server_create(ev_default_loop(0), &address, &config, 8,
                                error);

    if (server == NULL) {
        fprintf(stderr, "echo: %s\n", error);
        return 1;
    }

    if (argc == 5) {
        files = (tls_files_t) { argv[2], argv[3], argv[4], 0 };
        memset(&options, 0, sizeof(options));
        options.channel = &tls_channel;
        options.channel_context = tls_open(&files, &echo_log, error);

        if (options.channel_context == NULL) {
            fprintf(stderr, "echo: %s\n", error);
            return 1;
        }

        grpc_server_set_options(server, &options);
    }

    printf("ready\n");
    fflush(stdout);
    ev_run(ev_default_loop(0), 0);

    return 0;
}
