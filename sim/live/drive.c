
/* The driver: what is due is sent, what comes back is recorded. */

#include "sim/live/drive.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROGRESS_S  0.5


static uint64_t
clock_ns(void)
{
    struct timespec  now;

    clock_gettime(CLOCK_MONOTONIC, &now);

    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}


/* Never 0: that stands for a time that is not known. */
static int64_t
now_us(const live_driver_t *d)
{
    return (int64_t) ((clock_ns() - d->began_ns) / 1000) + 1;
}


/* Of the first that waits for its time, which there is. */
static int64_t
due_us(const live_driver_t *d)
{
    return ((const work_event_t *) heap_first(&d->due))->key.at_us;
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
look_if_over(live_driver_t *d)
{
    if (d->in_flight == 0 && d->first_waiting == NULL
        && (d->due.n == 0 || d->is_stopping))
    {
        ev_break(d->loop, EVBREAK_ALL);
    }
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


/* Counts, records, and queues what follows; the ask is gone then. */
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


static int
start(live_ask_t *ask)
{
    int             rc;
    live_driver_t  *d;

    d = ask->driver;
    ask->send_us = now_us(d);
    d->in_flight++;
    rc = d->protocol->start(ask);

    if (rc != 0) {
        d->in_flight--;
        return -1;
    }

    set_limit(ask);

    return 0;
}


/* What cannot be sent while nothing is in flight never can. */
static void
start_waiting(live_driver_t *d)
{
    live_ask_t  *ask, *next;

    while (d->first_waiting != NULL
           && d->in_flight < d->options->max_in_flight)
    {
        ask = d->first_waiting;
        next = ask->next;

        if (start(ask) != 0) {
            if (d->in_flight > 0) {
                break;
            }

            finish(ask, "error", "the request cannot be sent");
        }

        d->first_waiting = next;
    }

    look_if_over(d);
}


void
live_ask_end(live_ask_t *ask, const char *status, const char *message)
{
    live_driver_t  *d;

    d = ask->driver;
    d->in_flight--;
    ev_timer_stop(d->loop, &ask->limit);
    finish(ask, status, message);
    start_waiting(d);
}


static void
on_limit(struct ev_loop *loop, ev_timer *w, int revents)
{
    live_ask_t  *ask;

    ask = w->data;
    ask->driver->protocol->cancel(ask);
    live_ask_end(ask, "timeout", "no whole answer within the limit");
}


static void
wait_turn(live_driver_t *d, work_request_t *r)
{
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
    high = rnd_next(&d->random);
    low = rnd_next(&d->random);
    snprintf(ask->id, sizeof(ask->id), "%016llx%016llx",
             (unsigned long long) high, (unsigned long long) low);

    if (d->first_waiting == NULL) {
        d->first_waiting = ask;

    } else {
        d->last_waiting->next = ask;
    }

    d->last_waiting = ask;
}


static void
set_timer(live_driver_t *d)
{
    double  wait_s;

    ev_timer_stop(d->loop, &d->timer);

    if (d->due.n > 0 && !d->is_stopping) {
        wait_s = (double) (due_us(d) - now_us(d)) / 1e6;
        ev_now_update(d->loop);
        ev_timer_set(&d->timer, wait_s > 0 ? wait_s : 0, 0);
        ev_timer_start(d->loop, &d->timer);
    }
}


/* Sends what is due; later rounds arm the timer by the next look. */
static void
on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
    live_driver_t  *d;
    work_event_t    event;

    d = w->data;

    while (d->due.n > 0 && due_us(d) <= now_us(d)) {
        event = work_pop(&d->due);

        if (d->options->horizon_us == 0
            || event.key.at_us < d->options->horizon_us)
        {
            wait_turn(d, event.stream);
        }
    }

    start_waiting(d);
    set_timer(d);
}


/* A follow-up may be due before what the timer waits for. */
static void
on_prepare(struct ev_loop *loop, ev_prepare *w, int revents)
{
    live_driver_t  *d;

    d = w->data;
    set_timer(d);
    look_if_over(d);
}


static void
say_progress(const live_driver_t *d, const char *end)
{
    fprintf(stderr, "\r%lld served, %lld failed, %lld in flight, %zu to come"
            "%s", (long long) d->served, (long long) d->failed,
            (long long) d->in_flight, d->due.n, end);
}


static void
on_progress(struct ev_loop *loop, ev_timer *w, int revents)
{
    say_progress(w->data, "\033[K");
}


/* Once: send nothing more.  Twice: end now. */
static void
on_interrupt(struct ev_loop *loop, ev_signal *w, int revents)
{
    live_driver_t  *d;
    live_ask_t     *ask;

    d = w->data;

    if (d->is_stopping) {
        _exit(130);
    }

    d->is_stopping = 1;

    while ((ask = d->first_waiting) != NULL) {
        d->first_waiting = ask->next;
        free(ask);
    }

    look_if_over(d);
}


static void
run(live_driver_t *d)
{
    size_t      i;
    ev_prepare  prepare;

    for (i = 0; i < d->work->n; i++) {
        queue_request(d, work_at(d->work, i));
    }

    ev_timer_init(&d->timer, on_timer, 0, 0);
    d->timer.data = d;
    ev_prepare_init(&prepare, on_prepare);
    prepare.data = d;
    ev_prepare_start(d->loop, &prepare);
    ev_signal_init(&d->interrupt, on_interrupt, SIGINT);
    d->interrupt.data = d;
    ev_signal_start(d->loop, &d->interrupt);
    ev_timer_init(&d->progress, on_progress, PROGRESS_S, PROGRESS_S);
    d->progress.data = d;

    if (isatty(STDERR_FILENO)) {
        ev_timer_start(d->loop, &d->progress);
    }

    d->began_ns = clock_ns();
    ev_run(d->loop, 0);

    ev_timer_stop(d->loop, &d->timer);
    ev_prepare_stop(d->loop, &prepare);
    ev_signal_stop(d->loop, &d->interrupt);

    if (isatty(STDERR_FILENO)) {
        ev_timer_stop(d->loop, &d->progress);
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
    driver->random.state = options->seed;
    driver->loop = ev_default_loop(EVFLAG_AUTO);

    if (driver->loop == NULL) {
        return work_fail(error, options->target, 0, "no event loop");
    }

    if (protocol->open(driver, error) != 0) {
        return -1;
    }

    run(driver);
    protocol->close(driver);
    heap_done(&driver->due);

    return 0;
}
