/*
 * What one hop costs: a row to a slice, and its result back.
 *
 *     hop SLICE STEPS                             in this process
 *     hop SLICE STEPS ADDRESS [CERT KEY CA]       at a shard, over gRPC
 *     hop WIDTH STEPS ADDRESS [CERT KEY CA]       at a peer that computes
 *                                                 nothing (echo.c)
 *
 * Sends steps of one random row, each after the result of the one before, and
 * prints JSON: what the slice is, and in us the 5th, 50th and 95th percentile
 * of the round trip.  "started_us" is the median of the time until Started
 * comes back, which a shard sends when it begins to compute: a hop without its
 * computation.  In this process the plugin's own thread computes, and
 * "compute_us" is the median of the computation alone.
 */

#include <assert.h>
#include <ev.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/peers/place.h"
#include "common/grpc/conn.h"
#include "common/tls/tls.h"
#include "replica/engine/llama/loader.h"
#include "replica/shard/limits.h"
#include "shard.pb-c.h"


#define WARM_STEPS  30
#define STEPS_MAX   3900            /* that fit into a context of 4096 */
#define CONNECT_MS  5000

typedef struct {
    struct ev_loop        *loop;
    loader_t               loader;
    core_facts_t           facts;
    uint32_t               steps;
    uint32_t               position;
    float                 *row;
    double                 sent_at;
    double                *took;        /* us of each step that is counted */
    double                *computed;
    double                *started;

    core_t                *core;        /* in this process */
    shard_step_t           step;
    int                    place;
    float                 *out;
    ev_async               notified;

    grpc_conn_t           *conn;        /* at a shard */
    llmgw_grpc_stream_t   *stream;
    uint32_t               chunks;      /* parts of the result received */
} hop_t;

static const log_t  hop_log = { "hop", NULL, LOG_INFO };


static void
hop_fail(const char *what)
{
    fprintf(stderr, "hop: %s\n", what);
    exit(1);
}


static double
hop_now_us(void)
{
    struct timespec  now;

    clock_gettime(CLOCK_MONOTONIC, &now);

    return (double) now.tv_sec * 1e6 + (double) now.tv_nsec / 1e3;
}


/* --- used by both ways */

static void  hop_submit(hop_t *hop);
static void  hop_send(hop_t *hop);


static void
hop_next(hop_t *hop)
{
    uint32_t  i;

    if (hop->position == WARM_STEPS + hop->steps) {
        ev_break(hop->loop, EVBREAK_ALL);
        return;
    }

    for (i = 0; i < hop->facts.width; i++) {
        hop->row[i] = (float) rand() / (float) RAND_MAX * 2 - 1;
    }

    if (hop->conn != NULL) {
        hop_send(hop);

    } else {
        hop_submit(hop);
    }
}


static void
hop_started(hop_t *hop)
{
    if (hop->position >= WARM_STEPS) {
        hop->started[hop->position - WARM_STEPS] = hop_now_us()
                                                   - hop->sent_at;
    }
}


static void
hop_done(hop_t *hop, double computed_us)
{
    if (hop->position >= WARM_STEPS) {
        hop->took[hop->position - WARM_STEPS] = hop_now_us() - hop->sent_at;
        hop->computed[hop->position - WARM_STEPS] = computed_us;
    }

    hop->position++;
    hop_next(hop);
}


static int
hop_compare(const void *a, const void *b)
{
    const double  *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}


static void
hop_print(hop_t *hop)
{
    qsort(hop->took, hop->steps, sizeof(double), hop_compare);
    qsort(hop->computed, hop->steps, sizeof(double), hop_compare);
    qsort(hop->started, hop->steps, sizeof(double), hop_compare);

    printf("{\"width\": %u, \"layers\": \"%u-%u\", \"steps\": %u, "
           "\"p5_us\": %.1f, \"p50_us\": %.1f, \"p95_us\": %.1f, "
           "\"compute_us\": %.1f, \"started_us\": %.1f}\n",
           hop->facts.width,
           hop->facts.first_layer, hop->facts.last_layer, hop->steps,
           hop->took[hop->steps / 20], hop->took[hop->steps / 2],
           hop->took[hop->steps * 19 / 20], hop->computed[hop->steps / 2],
           hop->started[hop->steps / 2]);
}


/* --- the slice in this process */

static void
hop_notify(void *data)
{
    hop_t  *hop = data;

    ev_async_send(hop->loop, &hop->notified);
}


/* After this, hop->facts describes the slice. */
static void
hop_open_slice(hop_t *hop, const char *slice, int is_standby)
{
    char            error[CORE_ERROR_BYTES];
    core_options_t  options;

    memset(&options, 0, sizeof(options));
    options.file = slice;
    options.sequences = 1;
    options.threads = 1;
    options.context = WARM_STEPS + hop->steps;
    options.is_standby = is_standby;
    options.notify = hop_notify;
    options.data = hop;

    hop->core = hop->loader.shards->open(&options, error);

    if (hop->core == NULL) {
        hop_fail(error);
    }
}


static core_state_t
hop_wait_for(hop_t *hop, core_state_t wanted)
{
    core_state_t  state;

    for ( ;; ) {
        state = hop->loader.shards->state(hop->core, &hop->facts);

        if (state == CORE_BROKEN) {
            hop_fail(hop->facts.error);
        }

        if (state >= wanted) {
            return state;
        }

        ev_run(hop->loop, EVRUN_ONCE);
    }
}


static void
hop_submit(hop_t *hop)
{
    memset(&hop->step, 0, sizeof(hop->step));
    hop->step.place = (uint32_t) hop->place;
    hop->step.position = hop->position;
    hop->step.rows = 1;
    hop->step.in = hop->row;
    hop->step.out = hop->out;
    hop->sent_at = hop_now_us();
    hop->loader.shards->submit(hop->core, &hop->step);
}


static void
hop_on_notified(struct ev_loop *loop, ev_async *notified, int events)
{
    hop_t          *hop = notified->data;
    shard_event_t   event;

    while (hop->place >= 0
           && hop->loader.shards->take(hop->core, &event) == 0)
    {
        if (event.kind == SHARD_EVENT_STARTED) {
            hop_started(hop);
            continue;
        }

        if (event.step->status != SHARD_STEP_DONE) {
            hop_fail("a step was not computed");
        }

        hop_done(hop, (double) event.step->took_ns / 1e3);
    }
}


static void
hop_run_here(hop_t *hop, const char *slice)
{
    hop_open_slice(hop, slice, 0);
    hop_wait_for(hop, CORE_READY);
    hop->out = calloc(hop->facts.width, sizeof(float));
    hop->row = calloc(hop->facts.width, sizeof(float));
    hop->place = hop->loader.shards->begin(hop->core, hop->facts.last_layer);

    if (hop->place < 0 || hop->out == NULL || hop->row == NULL) {
        hop_fail("no place");
    }

    hop_next(hop);
    ev_run(hop->loop, 0);
}


/* --- the slice at a shard */

static void
hop_write(hop_t *hop, const Llmgateway__Shard__Request *request)
{
    size_t    len;
    uint8_t  *to;

    len = llmgateway__shard__request__get_packed_size(request);
    to = llmgw_grpc_send_reserve(hop->stream, len);

    if (to == NULL) {
        hop_fail("the stream is gone");
    }

    llmgateway__shard__request__pack(request, to);
    grpc_conn_wake(hop->conn);
}


static void
hop_send(hop_t *hop)
{
    Llmgateway__Shard__Step     step;
    Llmgateway__Shard__Request  request;

    llmgateway__shard__step__init(&step);
    llmgateway__shard__request__init(&request);
    request.kind_case = LLMGATEWAY__SHARD__REQUEST__KIND_STEP;
    request.step = &step;
    step.session = 1;
    step.position = hop->position;
    step.rows = 1;
    step.chunks = 1;
    step.data.data = (uint8_t *) hop->row;
    step.data.len = hop->facts.width * sizeof(float);

    hop->chunks = 0;
    hop->sent_at = hop_now_us();
    hop_write(hop, &request);
}


static void
hop_on_message(llmgw_grpc_stream_t *stream, const uint8_t *data, size_t len,
    size_t wire_bytes)
{
    hop_t                     *hop;
    Llmgateway__Shard__Reply  *reply;

    hop = llmgw_grpc_stream_data(stream);
    llmgw_grpc_stream_consume(stream, wire_bytes);
    reply = llmgateway__shard__reply__unpack(NULL, len, data);

    if (reply == NULL) {
        hop_fail("an unknown message");
    }

    switch (reply->kind_case) {

    case LLMGATEWAY__SHARD__REPLY__KIND_OPENED:
        hop_next(hop);
        break;

    case LLMGATEWAY__SHARD__REPLY__KIND_STARTED:
        hop_started(hop);
        break;

    case LLMGATEWAY__SHARD__REPLY__KIND_RESULT:
        if (++hop->chunks == reply->result->chunks) {
            hop_done(hop, 0);
        }

        break;

    case LLMGATEWAY__SHARD__REPLY__KIND_REFUSED:
        hop_fail(reply->refused->text);
        break;

    default:
        break;
    }

    llmgateway__shard__reply__free_unpacked(reply, NULL);
}


static void
hop_on_end(llmgw_grpc_stream_t *stream, int status, const char *message)
{
    hop_fail(message);
}


static void
hop_on_closed(grpc_conn_t *conn, const char *reason)
{
    hop_fail(reason != NULL ? reason : "the connection was closed");
}


static void
hop_begin_session(hop_t *hop)
{
    llmgw_grpc_call_t           call;
    Llmgateway__Shard__Open     open;
    Llmgateway__Shard__Request  request;

    memset(&call, 0, sizeof(call));
    call.path = SHARD_FORWARD;
    call.authority = "shard";
    call.data = hop;

    if (llmgw_grpc_call(grpc_conn_session(hop->conn), &call, &hop->stream)
        != LLMGW_GRPC_DONE)
    {
        hop_fail("no stream");
    }

    llmgateway__shard__open__init(&open);
    llmgateway__shard__request__init(&request);
    request.kind_case = LLMGATEWAY__SHARD__REQUEST__KIND_OPEN;
    request.open = &open;
    open.session = 1;
    open.model = hop->facts.model;
    open.weights_id.data = hop->facts.weights_id;
    open.weights_id.len = SHARD_WEIGHTS_BYTES;
    open.first_layer = hop->facts.first_layer;
    open.last_layer = hop->facts.last_layer;
    open.numerics_id = hop->facts.numerics;
    open.caller = (char *) "hop";
    open.rows = WARM_STEPS + hop->steps;
    hop_write(hop, &request);
}


static void
hop_run_there(hop_t *hop, const char *text, const tls_files_t *files)
{
    char                   error[TLS_ERROR_BYTES];
    address_t              address;
    grpc_conn_options_t    options;
    llmgw_grpc_config_t    config;

    static const llmgw_grpc_callbacks_t  callbacks = {
        .on_message = hop_on_message,
        .on_end = hop_on_end
    };

    if (place_parse(text, &address) != 0) {
        hop_fail("ADDRESS is HOST:PORT or unix:PATH");
    }

    memset(&options, 0, sizeof(options));

    if (files->cert != NULL) {
        options.channel = &tls_channel;
        options.channel_context = tls_open(files, &hop_log, error);

        if (options.channel_context == NULL) {
            hop_fail(error);
        }
    }

    memset(&config, 0, sizeof(config));
    config.callbacks = &callbacks;
    config.data = hop;
    config.max_message_bytes = SHARD_MESSAGE_BYTES;
    config.stream_window_bytes = SHARD_WINDOW_BYTES;
    config.connection_window_bytes = SHARD_WINDOW_BYTES;

    hop->row = calloc(hop->facts.width, sizeof(float));
    hop->conn = grpc_conn_connect_with(hop->loop, &address, &options, &config,
                                       CONNECT_MS, hop_on_closed);

    if (hop->conn == NULL || hop->row == NULL) {
        hop_fail("no connection");
    }

    hop_begin_session(hop);
    ev_run(hop->loop, 0);
}


int
main(int argc, char **argv)
{
    hop_t        hop;
    tls_files_t  files;

    if (argc != 3 && argc != 4 && argc != 7) {
        hop_fail("hop SLICE STEPS [ADDRESS [CERT KEY CA]]");
    }

    signal(SIGPIPE, SIG_IGN);
    memset(&hop, 0, sizeof(hop));
    hop.loop = ev_default_loop(0);
    hop.place = -1;
    hop.steps = (uint32_t) strtoul(argv[2], NULL, 10);

    if (hop.steps == 0 || hop.steps > STEPS_MAX
        || loader_open(&hop.loader, &hop_log) != 0)
    {
        hop_fail("STEPS are 1 to 3900, and there is libllama");
    }

    hop.took = calloc(hop.steps, sizeof(double));
    hop.computed = calloc(hop.steps, sizeof(double));
    hop.started = calloc(hop.steps, sizeof(double));
    hop.notified.data = &hop;
    ev_async_init(&hop.notified, hop_on_notified);
    ev_async_start(hop.loop, &hop.notified);

    if (argc == 3) {
        hop_run_here(&hop, argv[1]);

    } else {
        memset(&files, 0, sizeof(files));

        if (argc == 7) {
            files.cert = argv[4];
            files.key = argv[5];
            files.ca = argv[6];
        }

        hop.facts.width = (uint32_t) strtoul(argv[1], NULL, 10);

        if (hop.facts.width == 0) {
            hop_open_slice(&hop, argv[1], 1);
            hop_wait_for(&hop, CORE_ASLEEP);
        }

        hop_run_there(&hop, argv[3], &files);
    }

    hop_print(&hop);

    return 0;
}
