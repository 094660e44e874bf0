
/*
 * The phases of a run.
 *
 *   CONNECTING   until each connection has received SETTINGS
 *   WARMING      streams start; nothing is counted but errors
 *   MEASURING    the window: what happens within it is counted
 *   DRAINING     no more starts; running streams may end
 *   OVER         streams still running are cut off, counted as unfinished
 *
 * Each phase has a timer, so a gateway that sends nothing cannot hang a run.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/bench_inner.h"
#include "common/os/mono.h"


#define BENCH_RUN_CONNECT_MS  15000


static void
bench_run_wait(bench_t *bench, uint64_t ms)
{
    ev_timer_stop(bench->loop, &bench->phase_timer);
    ev_now_update(bench->loop);
    ev_timer_set(&bench->phase_timer, (double) ms / 1000, 0);
    ev_timer_start(bench->loop, &bench->phase_timer);
}


static void
bench_run_over(bench_t *bench)
{
    bench->phase = BENCH_OVER;
    ev_break(bench->loop, EVBREAK_ALL);
}


void
bench_run_abort(bench_t *bench, const char *format, ...)
{
    va_list  args;

    if (bench->phase == BENCH_OVER) {
        return;
    }

    va_start(args, format);
    vsnprintf(bench->error, sizeof(bench->error), format, args);
    va_end(args);

    bench_run_over(bench);
}


static void
bench_run_measure(bench_t *bench)
{
    bench->phase = BENCH_MEASURING;
    bench->began_ns = mono_ns();
    (void) getrusage(RUSAGE_SELF, &bench->usage_began);
    bench_run_wait(bench, bench->options.duration_ms);
}


static void
bench_run_drain(bench_t *bench)
{
    bench->ended_ns = mono_ns();
    (void) getrusage(RUSAGE_SELF, &bench->usage_ended);
    bench->waiting = bench_start_waiting(bench, bench->ended_ns);
    bench->phase = BENCH_DRAINING;

    if (bench->options.is_held || bench->options.drain_ms == 0
        || bench->nrunning == 0)
    {
        bench_run_over(bench);
        return;
    }

    bench_run_wait(bench, bench->options.drain_ms);
}


static void
bench_run_warm(bench_t *bench)
{
    bench->phase = BENCH_WARMING;
    bench->schedule_ns = mono_ns();

    if (bench->options.warmup_ms > 0) {
        bench_run_wait(bench, bench->options.warmup_ms);

    } else {
        bench_run_measure(bench);
    }

    pace_look(&bench->pace);
}


void
bench_run_connected(bench_t *bench)
{
    if (++bench->nup == (size_t) bench->options.connections) {
        bench_run_warm(bench);
    }
}


static void
bench_run_look(void *data)
{
    bench_t  *bench;

    bench = data;

    if (bench->nrunning > 0) {
        return;
    }

    if (bench->phase == BENCH_MEASURING && !bench->options.is_held
        && bench_start_is_done(bench))
    {
        bench_run_drain(bench);

    } else if (bench->phase == BENCH_DRAINING) {
        bench_run_over(bench);
    }
}


static void
bench_run_on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
    bench_t  *bench;

    bench = w->data;

    switch (bench->phase) {

    case BENCH_CONNECTING:
        bench_run_abort(bench, "%s speaks no HTTP/2: no SETTINGS in %d ms",
                        bench->options.gateway, BENCH_RUN_CONNECT_MS);
        break;

    case BENCH_WARMING:
        bench_run_measure(bench);
        bench_run_look(bench);
        break;

    case BENCH_MEASURING:
        bench_run_drain(bench);
        break;

    default:
        bench_run_over(bench);
    }
}


/*
 * The first Ctrl-C ends the measurement; it is reported when running streams
 * have ended.  A second one cuts these off.
 */
static void
bench_run_on_interrupt(void *data)
{
    bench_t  *bench;

    bench = data;

    if (bench->phase < BENCH_MEASURING) {
        bench_run_abort(bench, "interrupted before anything was measured");
        return;
    }

    if (bench->phase == BENCH_MEASURING) {
        bench_run_drain(bench);

    } else {
        bench_run_over(bench);
    }
}


static const pace_source_t  bench_run_source = {
    .next = bench_start_next,
    .start = bench_start,
    .looked = bench_run_look,
    .progress = bench_report_progress,
    .interrupt = bench_run_on_interrupt
};


/* Shuffles the order in which connections get streams. */
static void
bench_run_shuffle(bench_t *bench)
{
    size_t         i, j;
    bench_conn_t  *conn;

    for (i = bench->nslots - 1; i > 0; i--) {
        j = (size_t) (rnd_next(&bench->arrival.random) % (i + 1));

        conn = bench->slots[i].conn;
        bench->slots[i].conn = bench->slots[j].conn;
        bench->slots[j].conn = conn;
    }
}


/*
 * Creates slots.  Neighbouring slots are on different connections, so that
 * starts alternate between connections.
 */
static int
bench_run_slots(bench_t *bench)
{
    size_t  i, nconns;

    nconns = (size_t) bench->options.connections;
    bench->nslots = nconns * (size_t) bench->options.streams;
    bench->conns = calloc(nconns, sizeof(bench_conn_t));
    bench->slots = calloc(bench->nslots, sizeof(bench_slot_t));

    if (bench->conns == NULL || bench->slots == NULL) {
        return -1;
    }

    for (i = 0; i < nconns; i++) {
        bench->conns[i].bench = bench;
    }

    for (i = 0; i < bench->nslots; i++) {
        bench->slots[i].conn = &bench->conns[i % nconns];
    }

    if (bench->options.is_poisson) {
        bench_run_shuffle(bench);
    }

    for (i = 0; i < bench->nslots; i++) {
        bench_idle_push(&bench->idle, &bench->slots[i]);
    }

    return 0;
}


/* Makes the part that all prompts have in common; a key will precede it. */
static int
bench_run_prompt(bench_t *bench)
{
    size_t  i, len;

    static const char  words[] = " and so on";

    len = (size_t) bench->options.prompt_bytes;
    bench->prompt = malloc(len);

    if (bench->prompt == NULL) {
        return -1;
    }

    for (i = 0; i < len; i++) {
        bench->prompt[i] = words[i % (sizeof(words) - 1)];
    }

    return 0;
}


static int
bench_run_prepare(bench_t *bench)
{
    bench->loop = ev_default_loop(EVFLAG_AUTO);
    bench->random.state = (uint64_t) bench->options.seed;
    bench->arrival.random.state = ~bench->random.state;
    bench->protocol = bench->options.is_openai ? &bench_openai_protocol
                                               : &bench_conn_protocol;

    if (bench->options.is_held) {
        bench->options.max_tokens = INT32_MAX;
    }

    bench_stream_init(bench);

    ev_init(&bench->phase_timer, bench_run_on_timer);
    bench->phase_timer.data = bench;

    if (bench->loop == NULL || bench_run_slots(bench) != 0
        || bench_run_prompt(bench) != 0
        || pace_init(&bench->pace, bench->loop, &bench_run_source, bench) != 0
        || (bench->protocol->prepare != NULL
            && bench->protocol->prepare(bench) != 0))
    {
        bench_run_abort(bench, "out of memory or descriptors");
        return -1;
    }

    return 0;
}


static void
bench_run_connect(bench_t *bench)
{
    int64_t  i;

    bench_run_wait(bench, BENCH_RUN_CONNECT_MS);

    for (i = 0; i < bench->options.connections; i++) {
        if (bench->protocol->open(&bench->conns[i]) != 0) {
            bench_run_abort(bench, "out of memory or descriptors");
            return;
        }
    }
}


static void
bench_run_done(bench_t *bench)
{
    int64_t  i;

    for (i = 0; bench->conns != NULL && i < bench->options.connections; i++) {
        bench->protocol->close(&bench->conns[i]);
    }

    if (bench->protocol->done != NULL) {
        bench->protocol->done(bench);
    }

    if (bench->loop != NULL) {
        pace_done(&bench->pace);
        ev_timer_stop(bench->loop, &bench->phase_timer);
        ev_loop_destroy(bench->loop);
    }

    free(bench->conns);
    free(bench->slots);
    free(bench->prompt);
}


int
bench_run(bench_t *bench)
{
    size_t  unfinished;

    if (bench_run_prepare(bench) == 0) {
        bench_run_connect(bench);

        if (bench->phase != BENCH_OVER) {
            ev_run(bench->loop, 0);
        }
    }

    if (pace_has_progress(&bench->pace)) {
        bench_report_progress(bench);
    }

    unfinished = bench->nrunning;
    bench_run_done(bench);
    bench->nrunning = unfinished;

    return bench->error[0] == '\0' ? 0 : -1;
}
