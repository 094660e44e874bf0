
/*
 * One weights service as an engine sees it.
 *
 *              connect, hello         granted rw           copied
 *   CONNECTING ------------> ASKED ------------> FILLING ---------> COMMITTING
 *       ^                      | granted ro        put, commit          |
 *       |                      v            slot                        |
 *       | lost, while        GETTING ----------------.      committed   |
 *       | waking                                     v                  |
 *       |                                         MAPPING <-------------'
 *       | wake                                       | mapped
 *       |         released              sleep        v
 *    ASLEEP <------------ RELEASING <------------- HELD <-------.
 *                                                    | lost     | adopted
 *                                                    v          |
 *                                                  LOST ---> ADOPTING
 *                                                    ^ connect,  | lost,
 *                                                    |  adopt    | refused
 *                                                    '-----------'
 *
 * If the service is lost while the engine starts, the engine ends; while the
 * engine wakes, it asks again until its timeout.  Weights that it holds stay
 * mapped, and are offered to the next service with their id, so that no engine
 * loads a second copy.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/weights/weights_inner.h"


#define DEVICE_RETRY_OTHER_S  10.0      /* the service has other weights */


void
device_stop(device_t *d)
{
    ev_timer_stop(d->weights->loop, &d->deadline);
    redial_stop(&d->service);
}


void
device_fail(device_t *d, const char *why)
{
    log_write(d->weights->log, LOG_ERROR, "weights service \"%s\": %s",
              d->socket, why);
    weights_failed(d->weights);
}


static void
device_again(device_t *d, const char *what)
{
    redial_again(&d->service, what, d->state == DEVICE_LOST
                 ? "keeping the weights, retrying" : "retrying");
}


void
device_await(device_t *d, uint64_t ms)
{
    ev_timer_stop(d->weights->loop, &d->deadline);
    ev_timer_set(&d->deadline, (double) ms / 1000, 0);
    ev_timer_start(d->weights->loop, &d->deadline);
}


void
device_send(device_t *d, json_t *message, int fd)
{
    if (redial_send(&d->service, message, fd) != 0) {
        device_fail(d, "no message: out of memory, or the name of the file "
                    "is not UTF-8");
    }
}


static void
device_job_run(background_job_t *job)
{
    device_t  *d = (device_t *) job;

    d->rc = atomic_load(&d->weights->is_stopping) ? -1 : d->run(d);
}


static void
device_job_done(background_job_t *job)
{
    device_t  *d = (device_t *) job;

    d->ran(d, d->rc);
}


void
device_run(device_t *d, device_state_t state, device_run_pt run,
    device_ran_pt ran)
{
    d->state = state;
    d->run = run;
    d->ran = ran;
    d->job.run = device_job_run;
    d->job.done = device_job_done;
    background_put(d->weights->thread, &d->job);
}


const char *
device_text(const json_t *message, const char *name)
{
    const char  *text;

    text = json_string_value(json_object_get(message, name));

    return text != NULL ? text : "";
}


void
device_calm(device_t *d)
{
    d->is_refused = 0;
    (void) redial_fine(&d->service);
}


/* --- keeping them */

static void
device_offer(device_t *d)
{
    d->state = DEVICE_ADOPTING;
    device_send(d, json_pack("{s:s, s:s, s:s, s:s}", "cmd", "adopt", "id",
                             d->slot.id, "name", d->slot.name, "engine",
                             d->weights->options.engine), d->slot.fd);
}


static void
device_on_adopted(device_t *d)
{
    d->state = DEVICE_HELD;
    device_calm(d);
    log_write(d->weights->log, LOG_INFO, "weights service \"%s\" has \"%s\" "
              "again", d->socket, d->slot.name);
}


/* Whether the reason is temporary: then it retries soon, since the service may
   wait only for a short time. */
static int
device_is_passing(const char *reason)
{
    return strcmp(reason, "writer") == 0 || strcmp(reason, "adopting") == 0
           || strcmp(reason, "reclaiming") == 0;
}


static void
device_on_not_adopted(device_t *d, const char *reason, const char *why)
{
    device_stop(d);
    d->state = DEVICE_LOST;

    if (device_is_passing(reason)) {
        device_again(d, why);
        return;
    }

    if (!d->is_refused) {
        d->is_refused = 1;
        log_write(d->weights->log, LOG_WARN, "weights service \"%s\" refuses "
                  "to take \"%s\" back: %.160s; the weights stay", d->socket,
                  d->slot.name, why);
    }

    redial_after(&d->service, DEVICE_RETRY_OTHER_S);
}


/* --- the connection */

/* Only weights that were offered can be refused. */
static void
device_on_refused(device_t *d, const json_t *message)
{
    char         text[WEIGHTS_ERROR_BYTES];
    const char  *why;

    why = device_text(message, "error");

    if (d->state == DEVICE_ADOPTING) {
        device_on_not_adopted(d, device_text(message, "reason"), why);

    } else if (d->state < DEVICE_HELD) {
        snprintf(text, sizeof(text), "refused: %.160s", why);
        device_fail(d, text);
    }
}


/* No role was granted in time, or the service does not answer. */
static void
device_on_timeout(device_t *d)
{
    char              why[WEIGHTS_ERROR_BYTES];
    const weights_t  *w;

    w = d->weights;

    if (d->state == DEVICE_COMMITTING) {
        device_fail(d, "hangs: no message for a minute while it hashes");
        return;
    }

    snprintf(why, sizeof(why), "no weights within %g s",
             (double) (w->is_waking ? w->options.remap_timeout_ms
                                    : w->options.timeout_ms) / 1000);
    device_fail(d, why);
}


static void
device_on_message(void *data, const json_t *message)
{
    device_t    *d;
    const char  *type;

    d = data;
    type = device_text(message, "type");

    if (strcmp(type, "hashing") == 0 && d->state == DEVICE_COMMITTING) {
        device_await(d, DEVICE_SILENCE_MS);

    } else if (strcmp(type, "refused") == 0) {
        device_on_refused(d, message);

    } else if (strcmp(type, "granted") == 0 && d->state == DEVICE_ASKED) {
        fetch_on_granted(d, message);

    } else if (strcmp(type, "timeout") == 0 && d->state == DEVICE_ASKED) {
        device_on_timeout(d);

    } else if (strcmp(type, "committed") == 0
               && d->state == DEVICE_COMMITTING)
    {
        fetch_on_committed(d, message);

    } else if (strcmp(type, "slot") == 0 && d->state == DEVICE_GETTING) {
        fetch_on_slot(d, message);

    } else if (strcmp(type, "adopted") == 0 && d->state == DEVICE_ADOPTING) {
        device_on_adopted(d);
    }

    /* Unknown messages are of a newer service. */
}


static void
device_on_lost(void *data, const char *reason)
{
    int               was_connected;
    char              why[WEIGHTS_ERROR_BYTES];
    device_t         *d;
    const weights_t  *w;

    d = data;
    w = d->weights;
    was_connected = d->state != DEVICE_CONNECTING && d->state != DEVICE_LOST;

    if (was_connected && !w->is_reported && !w->is_waking) {
        snprintf(why, sizeof(why), "lost before all weights had arrived: "
                 "%.160s", reason);
        device_fail(d, why);
        return;
    }

    if (d->state == DEVICE_MAPPING) {
        return;
    }

    d->state = d->slot.fd != -1 ? DEVICE_LOST : DEVICE_CONNECTING;
    device_again(d, reason);
}


static void
device_on_connected(void *data)
{
    device_t  *d;

    d = data;

    if (d->state == DEVICE_LOST) {
        device_offer(d);

    } else {
        fetch_hello(d);
    }
}


static void
device_on_deadline(struct ev_loop *loop, ev_timer *w, int revents)
{
    device_on_timeout(w->data);
}


/* --- for weights.c */

int
device_init(device_t *d, weights_t *weights, const char *socket, size_t len,
    const char *file)
{
    static const redial_callbacks_t  callbacks = {
        device_on_connected, device_on_message, device_on_lost
    };

    d->weights = weights;
    d->slot.fd = -1;
    ev_init(&d->deadline, device_on_deadline);
    d->deadline.data = d;
    d->socket = strndup(socket, len);
    d->file = strdup(file);

    d->service = (redial_t) {
        .loop = weights->loop, .log = weights->log, .name = "weights service",
        .path = d->socket, .callbacks = &callbacks, .data = d
    };
    redial_init(&d->service);

    return d->socket != NULL && d->file != NULL ? 0 : -1;
}


void
device_done(device_t *d)
{
    device_stop(d);
    slot_release(&d->slot);
    free(d->socket);
    free(d->file);
}


void
device_begin(device_t *d)
{
    const weights_t  *w;

    w = d->weights;
    d->state = DEVICE_CONNECTING;
    ev_now_update(w->loop);
    d->begun_at = ev_now(w->loop);
    d->has_written = 0;
    device_await(d, w->is_waking ? w->options.remap_timeout_ms
                                 : w->options.timeout_ms);
    redial_connect(&d->service);
}


static int
device_run_release(device_t *d)
{
    slot_release(&d->slot);

    return 0;
}


static void
device_on_released(device_t *d, int rc)
{
    d->state = DEVICE_ASLEEP;
    weights_moved(d->weights);
}


void
device_sleep(device_t *d)
{
    device_stop(d);
    device_run(d, DEVICE_RELEASING, device_run_release, device_on_released);
}
