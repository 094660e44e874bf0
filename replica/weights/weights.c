
/*
 * All devices of an engine: each proceeds by itself, and the owner is notified
 * when the last one is done.  If one fails all end, since an engine cannot
 * serve with a part of its weights.
 */

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "replica/weights/weights_inner.h"


#define WEIGHTS_SOCKET_BYTES  108       /* of sun_path, with its NUL */


size_t
weights_count(const char *list)
{
    size_t  n;

    for (n = 1; (list = strchr(list, ',')) != NULL; n++) {
        list++;
    }

    return n;
}


static int
weights_check_sockets(const char *sockets, char error[WEIGHTS_ERROR_BYTES])
{
    size_t  len;

    if (weights_count(sockets) > WEIGHTS_DEVICES_MAX) {
        snprintf(error, WEIGHTS_ERROR_BYTES, "--weights: more than %d "
                 "sockets", WEIGHTS_DEVICES_MAX);
        return -1;
    }

    for ( ;; ) {
        len = strcspn(sockets, ",");

        if (len == 0 || len >= WEIGHTS_SOCKET_BYTES) {
            snprintf(error, WEIGHTS_ERROR_BYTES, "--weights: \"%.*s\" is not "
                     "a socket's path of 1 to %d bytes",
                     (int) (len < 80 ? len : 80), sockets,
                     WEIGHTS_SOCKET_BYTES - 1);
            return -1;
        }

        if (sockets[len] == '\0') {
            return 0;
        }

        sockets += len + 1;
    }
}


/* Reads an option that is one of two words. */
static int
weights_read_word(const char *option, const char *word, const char *no,
    const char *yes, int *is_yes, char error[WEIGHTS_ERROR_BYTES])
{
    *is_yes = strcmp(word, yes) == 0;

    if (*is_yes || strcmp(word, no) == 0) {
        return 0;
    }

    snprintf(error, WEIGHTS_ERROR_BYTES, "%s: \"%.80s\" is not %s or %s",
             option, word, no, yes);

    return -1;
}


int
weights_options_check(weights_options_t *o, uint64_t waking_timeout_ms,
    char error[WEIGHTS_ERROR_BYTES])
{
    const char  *alone;

    if (weights_read_word("--weights-role", o->role, "rw_or_ro", "ro",
                          &o->is_reader, error) != 0
        || weights_read_word("--sleep", o->sleep, "mapped", "unmapped",
                             &o->is_unmapped, error) != 0)
    {
        return -1;
    }

    if (o->is_unmapped && waking_timeout_ms == 0) {
        snprintf(error, WEIGHTS_ERROR_BYTES, "--sleep: needs --standby");
        return -1;
    }

    if (o->is_unmapped && o->remap_timeout_ms >= waking_timeout_ms) {
        snprintf(error, WEIGHTS_ERROR_BYTES, "--remap-timeout: %g s is not "
                 "below --waking-timeout, %g s",
                 (double) o->remap_timeout_ms / 1000,
                 (double) waking_timeout_ms / 1000);
        return -1;
    }

    if (o->sockets != NULL) {
        return weights_check_sockets(o->sockets, error);
    }

    alone = o->is_reader ? "--weights-role"
            : o->is_unmapped ? "--sleep unmapped"
            : o->is_locked ? "--mlock" : NULL;

    if (alone != NULL) {
        snprintf(error, WEIGHTS_ERROR_BYTES, "%s: needs --weights", alone);
        return -1;
    }

    return 0;
}


static int
weights_init(weights_t *w, const char *const *files)
{
    size_t       i, len;
    const char  *socket;

    socket = w->options.sockets;
    w->ndevices = weights_count(socket);
    w->devices = calloc(w->ndevices, sizeof(device_t));

    if (w->devices == NULL) {
        w->ndevices = 0;
        return -1;
    }

    for (i = 0; i < w->ndevices; i++) {
        len = strcspn(socket, ",");

        if (device_init(&w->devices[i], w, socket, len, files[i]) != 0) {
            w->ndevices = i + 1;
            return -1;
        }

        socket += len + 1;
    }

    return 0;
}


static void
weights_begin(weights_t *w)
{
    size_t  i;

    w->is_reported = 0;

    for (i = 0; i < w->ndevices && !w->is_failed; i++) {
        device_begin(&w->devices[i]);
    }
}


weights_t *
weights_open(struct ev_loop *loop, const log_t *log,
    const weights_options_t *options, const char *const *files,
    int is_mapped, const weights_callbacks_t *callbacks, void *data)
{
    weights_t  *w;

    w = calloc(1, sizeof(weights_t));

    if (w == NULL) {
        log_write(log, LOG_ERROR, "out of memory");
        return NULL;
    }

    w->loop = loop;
    w->log = log;
    w->options = *options;
    w->is_mapped = is_mapped;
    w->callbacks = *callbacks;
    w->data = data;

    w->thread = background_create(loop);

    if (weights_init(w, files) != 0 || w->thread == NULL) {
        log_write(log, LOG_ERROR, "no memory for the weights' thread");
        weights_close(w);
        return NULL;
    }

    weights_begin(w);

    return w;
}


/*
 * Whether all devices are in a state from `first` to `last`: weights that are
 * held may be offered to another service meanwhile.
 */
static int
weights_are(const weights_t *w, device_state_t first, device_state_t last)
{
    size_t  i;

    for (i = 0; i < w->ndevices; i++) {
        if (w->devices[i].state < first || w->devices[i].state > last) {
            return 0;
        }
    }

    return 1;
}


void
weights_moved(weights_t *w)
{
    if (w->is_failed || w->is_reported) {
        return;
    }

    if (weights_are(w, DEVICE_HELD, DEVICE_ADOPTING)) {
        w->is_reported = 1;

        if (w->is_waking) {
            w->callbacks.on_awake(w->data);

        } else {
            w->callbacks.on_ready(w->data);
        }

    } else if (weights_are(w, DEVICE_ASLEEP, DEVICE_ASLEEP)) {
        w->is_reported = 1;
        w->callbacks.on_asleep(w->data);
    }
}


void
weights_failed(weights_t *w)
{
    size_t  i;

    if (w->is_failed) {
        return;
    }

    w->is_failed = 1;

    for (i = 0; i < w->ndevices; i++) {
        device_stop(&w->devices[i]);
    }

    w->callbacks.on_failed(w->data);
}


void
weights_sleep(weights_t *w)
{
    size_t  i;

    if (!w->options.is_unmapped) {
        w->callbacks.on_asleep(w->data);
        return;
    }

    w->is_reported = 0;

    for (i = 0; i < w->ndevices; i++) {
        device_sleep(&w->devices[i]);
    }
}


void
weights_wake(weights_t *w)
{
    size_t     i;
    device_t  *d;

    w->is_waking = 1;

    if (w->options.is_unmapped) {
        weights_begin(w);
        return;
    }

    for (i = 0; i < w->ndevices; i++) {
        d = &w->devices[i];

        if (slot_check(&d->slot, d->error) != 0) {
            log_write(w->log, LOG_ERROR, "weights: %s", d->error);
            weights_failed(w);
            return;
        }
    }

    w->callbacks.on_awake(w->data);
}


size_t
weights_devices(const weights_t *w)
{
    return w->ndevices;
}


const char *
weights_path(const weights_t *w, size_t i)
{
    return w->devices[i].path;
}


/* Waits for the thread: a job that runs uses its device.  It ends early, other
   jobs are not begun, and what follows in the loop does nothing. */
void
weights_close(weights_t *w)
{
    size_t  i;

    w->is_failed = 1;
    atomic_store(&w->is_stopping, 1);

    if (w->thread != NULL) {
        background_destroy(w->thread, BACKGROUND_FOREVER);
    }

    for (i = 0; i < w->ndevices; i++) {
        device_done(&w->devices[i]);
    }

    free(w->devices);
    free(w);
}
