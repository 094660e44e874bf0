
/*
 * How a device gets its weights, until it holds them: device.c's states from
 * ASKED to MAPPING.
 */

#include <stdio.h>
#include <string.h>

#include "replica/weights/weights_inner.h"


static uint64_t
fetch_left_ms(device_t *d)
{
    double  left_s;

    left_s = ev_timer_remaining(d->weights->loop, &d->deadline);

    return left_s > 0.001 ? (uint64_t) (left_s * 1000) : 1;
}


void
fetch_hello(device_t *d)
{
    const weights_t  *w;

    w = d->weights;
    d->state = DEVICE_ASKED;
    device_send(d, json_pack("{s:s, s:s, s:I, s:s}", "cmd", "hello", "mode",
                             w->options.is_reader || w->is_waking
                             ? "ro" : "rw_or_ro",
                             "timeout_ms", (json_int_t) fetch_left_ms(d),
                             "engine", w->options.engine), -1);
}


static int
fetch_run_fill(device_t *d)
{
    return slot_fill(&d->slot, d->file, d->weights->options.format,
                     d->weights->log, &d->weights->is_stopping, d->error);
}


static void
fetch_on_filled(device_t *d, int rc)
{
    if (d->weights->is_failed) {
        return;
    }

    if (rc != 0) {
        device_fail(d, d->error);
        return;
    }

    d->state = DEVICE_COMMITTING;
    device_await(d, DEVICE_SILENCE_MS);
    device_send(d, json_pack("{s:s, s:s, s:I}", "cmd", "put", "name",
                             d->slot.name, "bytes",
                             (json_int_t) d->slot.bytes), d->slot.fd);
    device_send(d, json_pack("{s:s}", "cmd", "commit"), -1);
}


void
fetch_on_granted(device_t *d, const json_t *message)
{
    const weights_t  *w;

    w = d->weights;

    if (strcmp(device_text(message, "mode"), "rw") == 0 && !w->is_waking
        && !w->options.is_reader)
    {
        ev_timer_stop(w->loop, &d->deadline);
        d->has_written = 1;
        log_write(w->log, LOG_INFO, "weights service \"%s\" has no weights: "
                  "loading \"%s\"", d->socket, d->file);
        device_run(d, DEVICE_FILLING, fetch_run_fill, fetch_on_filled);
        return;
    }

    d->state = DEVICE_GETTING;
    device_send(d, json_pack("{s:s}", "cmd", "get"), -1);
}


static void
fetch_log_held(device_t *d)
{
    log_write(d->weights->log, LOG_INFO, "weights \"%s\", %lu MB, %s service "
              "\"%s\" after %.0f ms", d->slot.name, d->slot.bytes >> 20,
              d->has_written ? "loaded for" : "shared by", d->socket,
              (ev_now(d->weights->loop) - d->begun_at) * 1000);
}


static void
fetch_hold(device_t *d)
{
    ev_timer_stop(d->weights->loop, &d->deadline);
    device_calm(d);
    snprintf(d->path, sizeof(d->path), "/proc/self/fd/%d", d->slot.fd);
    fetch_log_held(d);

    /* If the service was lost while the thread was mapping, that is handled
       now. */

    d->state = d->service.conn != NULL ? DEVICE_HELD : DEVICE_LOST;

    if (d->state == DEVICE_LOST) {
        redial_after(&d->service, 0);
    }

    weights_moved(d->weights);
}


static int
fetch_run_map(device_t *d)
{
    return slot_map(&d->slot, d->weights->options.is_locked,
                    &d->weights->is_stopping, d->error);
}


static void
fetch_on_mapped(device_t *d, int rc)
{
    ev_now_update(d->weights->loop);

    if (d->weights->is_failed) {
        return;
    }

    if (rc != 0) {
        device_fail(d, d->error);
        return;
    }

    fetch_hold(d);
}


/* The slot has its descriptor and the service's facts: continues with
   mapping. */
static void
fetch_take(device_t *d)
{
    if (slot_note(&d->slot, d->error) != 0) {
        device_fail(d, d->error);
        return;
    }

    if (d->weights->is_mapped || d->weights->options.is_locked) {
        device_run(d, DEVICE_MAPPING, fetch_run_map, fetch_on_mapped);
        return;
    }

    fetch_hold(d);
}


static int
fetch_read_id(const json_t *message, char id[SLOT_ID_BYTES])
{
    const char  *text;

    text = device_text(message, "id");

    if (strspn(text, "0123456789abcdef") != SLOT_ID_BYTES - 1
        || text[SLOT_ID_BYTES - 1] != '\0')
    {
        return -1;
    }

    memcpy(id, text, SLOT_ID_BYTES);

    return 0;
}


void
fetch_on_committed(device_t *d, const json_t *message)
{
    if (fetch_read_id(message, d->slot.id) != 0) {
        device_fail(d, "it did not report the id of the committed weights");
        return;
    }

    fetch_take(d);
}


/* Whether this is the requested file, at the first time, or the same bytes as
   before, later. */
static int
fetch_is_expected(device_t *d, const slot_t *fresh)
{
    const slot_t  *had;

    had = &d->slot;

    if (!d->weights->is_waking) {
        if (strcmp(fresh->name, slot_base(d->file)) == 0) {
            return 1;
        }

        snprintf(d->error, WEIGHTS_ERROR_BYTES, "it has \"%.80s\", not "
                 "\"%.80s\", which needs a service of its own", fresh->name,
                 slot_base(d->file));
        return 0;
    }

    if (strcmp(fresh->name, had->name) != 0 || fresh->bytes != had->bytes) {
        snprintf(d->error, WEIGHTS_ERROR_BYTES, "it has another layout than "
                 "before: \"%.60s\" of %lu bytes, not \"%.60s\" of %lu",
                 fresh->name, fresh->bytes, had->name, had->bytes);
        return 0;
    }

    if (strcmp(fresh->id, had->id) != 0) {
        snprintf(d->error, WEIGHTS_ERROR_BYTES, "it has other bytes than "
                 "before: id %.16s, not %.16s", fresh->id, had->id);
        return 0;
    }

    return 1;
}


void
fetch_on_slot(device_t *d, const json_t *message)
{
    slot_t  fresh;

    memset(&fresh, 0, sizeof(fresh));
    fresh.fd = line_conn_take_fd(d->service.conn);
    fresh.bytes = (uint64_t) json_integer_value(json_object_get(message,
                                                                "bytes"));
    snprintf(fresh.name, SLOT_NAME_BYTES, "%s", device_text(message, "name"));

    if (fresh.fd == -1 || fetch_read_id(message, fresh.id) != 0) {
        slot_release(&fresh);
        device_fail(d, "it gave no weights");
        return;
    }

    if (!fetch_is_expected(d, &fresh)) {
        slot_release(&fresh);
        device_fail(d, d->error);
        return;
    }

    d->slot = fresh;
    fetch_take(d);
}
