
/* The driver: sends requests that are due, and records their answers. */

#include "sim/live/drive.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/mono.h"
#include "common/rnd.h"


/* The current time, at least 1, since 0 stands for an unknown time. */
static int64_t
now_us(const live_driver_t *d)
{
    return (int64_t) ((mono_ns() - d->began_ns) / 1000) + 1;
}


static void
queue_request(live_driver_t *d, work_request_t *r)
{
    work_event_t  event;

    event.key.at_us = r->arrival_us;
    event.key.order = d->order++;
    event.stream = r;
    event.talk = NULL;
    work_push(&d->due, &event);
}


static void
record_chunk(live_driver_t *d, const live_ask_t *ask)
{
    if (d->itl != NULL && d->options->records_itl
        && ask->request->index >= d->options->warm_up)
    {
        work_itl_add(d->itl, ask->request->index, ask->pieces,
                     ask->last_us);
    }
}


static uint32_t
tokens_of(const live_ask_t *ask)
{
    return ask->answer_tokens >= 0 ? (uint32_t) ask->answer_tokens
                                   : ask->pieces;
}


static void
record(live_driver_t *d, const live_ask_t *ask, const char *status,
    const char *message)
{
    work_record_t  *r;

    if (d->trace == NULL || ask->request->index < d->options->warm_up) {
        return;
    }

    work_trace_add_request(d->trace, ask->request, status, ask->first_us,
                           ask->last_us);
    r = &d->trace->records[d->trace->n - 1];
    r->request_id = ask->request->index;
    r->send_us = ask->send_us;
    r->output_tokens = tokens_of(ask);
    r->num_chunks = ask->pieces;
    r->server_input_tokens = ask->prompt_tokens > 0
                             ? (uint32_t) ask->prompt_tokens : 0;
    r->streaming = !d->options->is_whole;
    r->error_message = work_arena_text(&d->trace->arena, message,
                                       strlen(message));
    r->x_request_id = work_arena_text(&d->trace->arena, ask->id,
                                      strlen(ask->id));
    r->finish_reason = work_name(&d->trace->names, ask->finish_reason,
                                 strlen(ask->finish_reason));
}


/*
 * Ends an ask: counts and records it, queues the request that follows, and
 * frees the ask.
 */
static void
finish(live_ask_t *ask, const char *status, const char *message)
{
    int              is_ok;
    live_driver_t   *d;
    work_request_t  *next;

    d = ask->driver;
    is_ok = strcmp(status, "ok") == 0;
    d->served += is_ok;
    d->failed += !is_ok;

    if (!is_ok && d->first_error[0] == '\0') {
        snprintf(d->first_error, sizeof(d->first_error), "%s", message);
    }

    record(d, ask, status, message);
    next = work_followup(d->work, ask->request,
                         is_ok ? WORK_END_COMPLETED
                         : strcmp(status, "timeout") == 0 ? WORK_END_TIMED_OUT
                         : WORK_END_DROPPED,
                         tokens_of(ask) > 0 ? tokens_of(ask) - 1 : 0,
                         now_us(d));

    if (next != NULL) {
        queue_request(d, next);
    }

    free(ask);
}


void
live_ask_text(live_ask_t *ask)
{
    ask->last_us = now_us(ask->driver);

    if (ask->first_us == 0) {
        ask->first_us = ask->last_us;
    }

    record_chunk(ask->driver, ask);
    ask->pieces++;
}


static void on_limit(struct ev_loop *loop, ev_timer *w, int revents);


static void
set_limit(live_ask_t *ask)
{
    int64_t                left_us;
    const work_request_t  *r;

    r = ask->request;
    left_us = ask->driver->options->timeout_us;

    if (r->deadline_us > 0 && r->deadline_us - ask->send_us < left_us) {
        left_us = r->deadline_us - ask->send_us;
    }

    ev_timer_init(&ask->limit, on_limit,
                  left_us > 0 ? (double) left_us / 1e6 : 0, 0);
    ask->limit.data = ask;
    ev_now_update(ask->driver->loop);
    ev_timer_start(ask->driver->loop, &ask->limit);
}


void
live_ask_end(live_ask_t *ask, const char *status, const char *message)
{
    live_driver_t  *d;

    d = ask->driver;
    d->in_flight--;
    ev_timer_stop(d->loop, &ask->limit);
    finish(ask, status, message);
    pace_look(&d->pace);
}


static void
on_limit(struct ev_loop *loop, ev_timer *w, int revents)
{
    live_ask_t  *ask;

    ask = w->data;
    ask->driver->protocol->cancel(ask);
    live_ask_end(ask, "timeout", "no whole answer within the limit");
}


static live_ask_t *
make_ask(live_driver_t *d, const work_request_t *r)
{
    rnd_t        id;
    uint64_t     high, low;
    live_ask_t  *ask;

    ask = calloc(1, sizeof(*ask));

    if (ask == NULL) {
        fprintf(stderr, "llmgw-sim: no memory left\n");
        exit(2);
    }

    ask->driver = d;
    ask->request = r;
    ask->prompt_tokens = ask->answer_tokens = -1;
    id.state = d->options->seed;
    id.state = rnd_next(&id) + r->index;
    high = rnd_next(&id);
    low = rnd_next(&id);
    snprintf(ask->id, sizeof(ask->id), "%016llx%016llx",
             (unsigned long long) high, (unsigned long long) low);

    return ask;
}


/* --- pace's callbacks */

static uint64_t
next_ns(void *data)
{
    int64_t               at_us;
    live_driver_t        *d;
    const work_event_t   *first;

    d = data;
    first = heap_first(&d->due);

    if (first == NULL || d->is_stopping) {
        return PACE_NEVER;
    }

    at_us = first->key.at_us;

    if (d->options->horizon_us > 0 && at_us >= d->options->horizon_us) {
        return PACE_NEVER;
    }

    return d->began_ns + (at_us > 1 ? (uint64_t) (at_us - 1) * 1000 : 0);
}


/*
 * Sends a request.  One that cannot be sent although none is in flight fails
 * for good.
 */
static int
start(void *data, uint64_t due_ns)
{
    live_ask_t     *ask;
    work_event_t    event;
    live_driver_t  *d;

    d = data;

    if (d->in_flight == d->options->max_in_flight) {
        return -1;
    }

    event = work_pop(&d->due);
    ask = make_ask(d, event.stream);
    ask->send_us = now_us(d);
    d->in_flight++;

    if (d->protocol->start(ask) == 0) {
        set_limit(ask);
        return 0;
    }

    d->in_flight--;

    if (d->in_flight == 0) {
        finish(ask, "error", "the request cannot be sent");
        return 0;
    }

    free(ask);
    work_push(&d->due, &event);

    return -1;
}


static void
look_if_over(void *data)
{
    live_driver_t  *d;

    d = data;

    if (d->in_flight == 0 && next_ns(d) == PACE_NEVER) {
        ev_break(d->loop, EVBREAK_ALL);
    }
}


static void
say_progress(const live_driver_t *d, const char *end)
{
    fprintf(stderr, "\r%lld served, %lld failed, %lld in flight, %zu to come"
            "%s", (long long) d->served, (long long) d->failed,
            (long long) d->in_flight, d->due.n, end);
}


static void
on_progress(void *data)
{
    say_progress(data, "\033[K");
}


/* First call: no more requests are sent.  Second call: ends the process. */
static void
on_interrupt(void *data)
{
    live_driver_t  *d;

    d = data;

    if (d->is_stopping) {
        _exit(130);
    }

    d->is_stopping = 1;
    look_if_over(d);
}


static const pace_source_t  source = {
    .next = next_ns,
    .start = start,
    .looked = look_if_over,
    .progress = on_progress,
    .interrupt = on_interrupt
};


/* --- */

static void
run(live_driver_t *d)
{
    size_t  i;

    for (i = 0; i < d->work->n; i++) {
        queue_request(d, work_at(d->work, i));
    }

    d->began_ns = mono_ns();
    pace_look(&d->pace);

    /* If no request could be sent, the run is over already. */
    if (d->in_flight > 0 || next_ns(d) != PACE_NEVER) {
        ev_run(d->loop, 0);
    }

    if (pace_has_progress(&d->pace)) {
        say_progress(d, "\033[K\n");
    }
}


int
live_drive(live_driver_t *driver, const live_options_t *options,
    const live_protocol_t *protocol, work_t *work, work_trace_t *trace,
    work_itl_t *itl, work_error_t *error)
{
    memset(driver, 0, sizeof(*driver));
    driver->due.item_bytes = sizeof(work_event_t);
    driver->options = options;
    driver->protocol = protocol;
    driver->work = work;
    driver->trace = trace;
    driver->itl = itl;
    driver->loop = ev_default_loop(EVFLAG_AUTO);

    if (driver->loop == NULL
        || pace_init(&driver->pace, driver->loop, &source, driver) != 0)
    {
        return work_fail(error, options->target, 0, "no event loop");
    }

    if (protocol->open(driver, error) != 0) {
        pace_done(&driver->pace);
        return -1;
    }

    run(driver);
    protocol->close(driver);
    pace_done(&driver->pace);
    heap_done(&driver->due);

    return 0;
}
