
/*
 * libcurl's multi interface on a libev loop (libcurl's manual,
 * CURLMOPT_SOCKETFUNCTION and CURLMOPT_TIMERFUNCTION).
 *
 *   a socket is ready ---> curl_multi_socket_action()
 *   the timer fires   --'         |
 *                                 v
 *                   .--> steps deferred meanwhile run
 *                   |             |
 *                   '-- on_end of each transfer that has ended
 *
 * A socket has a watcher for as long as libcurl asks for one.
 */

#include <stdlib.h>

#include "common/http/curl_loop.h"


typedef struct {
    ev_io         io;
    curl_loop_t  *curl;
} curl_watch_t;


static void
curl_loop_run_deferred(curl_loop_t *curl)
{
    curl_deferred_t  *step;

    while (curl->depth == 0 && (step = curl->deferred) != NULL) {
        curl->deferred = step->next;
        step->is_deferred = 0;

        curl->depth++;
        step->run(step);
        curl->depth--;
    }
}


/*
 * After each call into libcurl: runs deferred steps, and reports transfers that
 * have ended.
 */
static void
curl_loop_settle(curl_loop_t *curl)
{
    int       left;
    CURL     *easy;
    CURLMsg  *message;
    CURLcode  rc;

    if (curl->depth > 0) {
        return;                         /* the outer call will do it */
    }

    curl_loop_run_deferred(curl);

    while ((message = curl_multi_info_read(curl->multi, &left)) != NULL) {
        easy = message->easy_handle;
        rc = message->data.result;
        (void) curl_multi_remove_handle(curl->multi, easy);

        curl->depth++;
        curl->on_end(curl->data, easy, rc);
        curl->depth--;

        curl_loop_run_deferred(curl);
    }
}


static void
curl_loop_act(curl_loop_t *curl, curl_socket_t fd, int events)
{
    int  running;

    curl->depth++;
    (void) curl_multi_socket_action(curl->multi, fd, events, &running);
    curl->depth--;

    curl_loop_settle(curl);
}


static void
curl_loop_on_io(struct ev_loop *loop, ev_io *w, int revents)
{
    curl_watch_t  *watch;

    watch = (curl_watch_t *) w;

    curl_loop_act(watch->curl, w->fd,
                  (revents & EV_READ ? CURL_CSELECT_IN : 0)
                  | (revents & EV_WRITE ? CURL_CSELECT_OUT : 0));
}


static void
curl_loop_on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
    curl_loop_act(w->data, CURL_SOCKET_TIMEOUT, 0);
}


static int
curl_loop_set_timer(CURLM *multi, long ms, void *data)
{
    curl_loop_t  *curl;

    curl = data;
    ev_timer_stop(curl->loop, &curl->timer);

    if (ms >= 0) {
        ev_now_update(curl->loop);
        ev_timer_set(&curl->timer, (double) ms / 1000, 0);
        ev_timer_start(curl->loop, &curl->timer);
    }

    return 0;
}


static int
curl_loop_set_socket(CURL *easy, curl_socket_t fd, int what, void *data,
    void *of_socket)
{
    int            events;
    curl_loop_t   *curl;
    curl_watch_t  *watch;

    curl = data;
    watch = of_socket;

    if (watch == NULL) {
        watch = calloc(1, sizeof(curl_watch_t));

        if (watch == NULL) {
            return -1;
        }

        watch->curl = curl;
        ev_init(&watch->io, curl_loop_on_io);
        (void) curl_multi_assign(curl->multi, fd, watch);
    }

    ev_io_stop(curl->loop, &watch->io);

    if (what == CURL_POLL_REMOVE) {
        (void) curl_multi_assign(curl->multi, fd, NULL);
        free(watch);
        return 0;
    }

    events = (what & CURL_POLL_IN ? EV_READ : 0)
             | (what & CURL_POLL_OUT ? EV_WRITE : 0);

    if (events != 0) {
        ev_io_set(&watch->io, fd, events);
        ev_io_start(curl->loop, &watch->io);
    }

    return 0;
}


int
curl_loop_init(curl_loop_t *curl, struct ev_loop *loop,
    curl_loop_end_pt on_end, void *data)
{
    curl->loop = loop;
    curl->on_end = on_end;
    curl->data = data;
    ev_init(&curl->timer, curl_loop_on_timer);
    curl->timer.data = curl;
    curl->multi = curl_multi_init();

    if (curl->multi == NULL) {
        return -1;
    }

    curl_multi_setopt(curl->multi, CURLMOPT_SOCKETFUNCTION,
                      curl_loop_set_socket);
    curl_multi_setopt(curl->multi, CURLMOPT_SOCKETDATA, curl);
    curl_multi_setopt(curl->multi, CURLMOPT_TIMERFUNCTION,
                      curl_loop_set_timer);
    curl_multi_setopt(curl->multi, CURLMOPT_TIMERDATA, curl);

    return 0;
}


int
curl_loop_add(curl_loop_t *curl, CURL *easy)
{
    return curl_multi_add_handle(curl->multi, easy) == CURLM_OK ? 0 : -1;
}


void
curl_loop_remove(curl_loop_t *curl, CURL *easy)
{
    (void) curl_multi_remove_handle(curl->multi, easy);
}


int
curl_loop_is_busy(const curl_loop_t *curl)
{
    return curl->depth > 0;
}


void
curl_loop_defer(curl_loop_t *curl, curl_deferred_t *step)
{
    if (!step->is_deferred) {
        step->is_deferred = 1;
        step->next = curl->deferred;
        curl->deferred = step;
    }

    curl_loop_run_deferred(curl);
}


void
curl_loop_resume(curl_loop_t *curl, CURL *easy)
{
    curl->depth++;
    (void) curl_easy_pause(easy, CURLPAUSE_CONT);
    curl->depth--;

    curl_loop_settle(curl);
}


void
curl_loop_done(curl_loop_t *curl)
{
    (void) curl_multi_cleanup(curl->multi);
    ev_timer_stop(curl->loop, &curl->timer);
}
