
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/mono.h"
#include "replica/standby/lock_client.h"
#include "replica/standby/probes.h"
#include "replica/standby/watchdog.h"


#define WATCHDOG_ALARM_S  2       /* after the waking timeout */

_Static_assert(WATCHDOG_WORKERS_MAX <= LOCK_CLIENT_WORKERS_MAX,
               "the lock client has too few places");


struct watchdog_s {
    watchdog_options_t            options;
    const log_t                *log;
    const watchdog_callbacks_t   *callbacks;
    void                       *data;
    struct ev_loop             *main_loop;
    struct ev_loop             *loop;           /* the thread's */
    ev_async                    to_main;
    ev_async                    to_thread;
    ev_timer                    overdue;
    pthread_t                   thread;
    lock_client_t               client;         /* the thread's */
    probes_t                    probes;         /* likewise */

    pthread_mutex_t             mutex;          /* of all that follows */
    life_t                      life;
    int                         is_asked;       /* for the thread */
    int                         is_seeking;
    int                         is_ending;
    int                         is_release;
    int                         nworkers;
    struct {
        pid_t                   pid;
        int                     fd;
    } workers[WATCHDOG_WORKERS_MAX];
    int                         is_granted;     /* for the main loop */
    int                         is_regranted;
    int                         has_successor;
    int                         nregistered;
};


/* Logs a transition, with the monotonic time, so that logs of several engines
   of one host can be merged.  To be called under the mutex. */
static void
watchdog_log_life(const watchdog_t *s)
{
    uint64_t  now_us;

    now_us = mono_us();
    log_write(s->log, LOG_INFO, "standby: %s, epoch %llu, at %llu.%06llu s",
              life_name(&s->life), (unsigned long long) s->life.epoch,
              (unsigned long long) (now_us / 1000000),
              (unsigned long long) (now_us % 1000000));
}


/* --- from the thread */

static void
watchdog_fatal(void *data, const char *text)
{
    watchdog_t  *s;

    s = data;
    pthread_mutex_lock(&s->mutex);

    if (life_end(&s->life) == 0) {
        log_write(s->log, LOG_ERROR, "standby: %s", text);
        watchdog_log_life(s);
    }

    _exit(1);
}


static void
watchdog_on_overdue(struct ev_loop *loop, ev_timer *w, int revents)
{
    int        is_overdue;
    char       text[64];
    watchdog_t  *s;

    s = w->data;
    pthread_mutex_lock(&s->mutex);
    is_overdue = s->life.state == LLMGW_GROUP_WAKING;
    pthread_mutex_unlock(&s->mutex);

    if (is_overdue) {
        snprintf(text, sizeof(text), "not awake after %llu ms, giving up",
                 (unsigned long long) s->options.waking_timeout_ms);
        watchdog_fatal(s, text);
    }
}


/* Sets the kernel's alarm, in whole seconds, and later than the thread's own
   timeout of the wake. */
static void
watchdog_set_alarm(const watchdog_t *s)
{
    (void) signal(SIGALRM, SIG_DFL);
    (void) alarm((unsigned) (s->options.waking_timeout_ms / 1000
                             + WATCHDOG_ALARM_S));
}


static void
watchdog_granted(void *data, uint64_t epoch, uint64_t lock)
{
    watchdog_t  *s;

    s = data;
    watchdog_set_alarm(s);
    pthread_mutex_lock(&s->mutex);

    if (life_granted(&s->life, epoch, lock, mono_ms()) == 0) {
        s->is_granted = 1;
        watchdog_log_life(s);
    }

    pthread_mutex_unlock(&s->mutex);

    ev_now_update(s->loop);
    ev_timer_set(&s->overdue, (double) s->options.waking_timeout_ms / 1000,
                 0);
    ev_timer_start(s->loop, &s->overdue);
    ev_async_send(s->main_loop, &s->to_main);
}


static void
watchdog_regranted(void *data, uint64_t lock)
{
    watchdog_t  *s;

    s = data;
    pthread_mutex_lock(&s->mutex);
    life_regranted(&s->life, lock);
    s->is_regranted = 1;
    pthread_mutex_unlock(&s->mutex);
    ev_async_send(s->main_loop, &s->to_main);
}


static void
watchdog_queued(void *data, int is_queued)
{
    watchdog_t  *s;

    s = data;
    pthread_mutex_lock(&s->mutex);
    life_queued(&s->life, is_queued, mono_ms());
    pthread_mutex_unlock(&s->mutex);
    ev_async_send(s->main_loop, &s->to_main);       /* makes the main loop
                                                       iterate */
}


static void
watchdog_registered(void *data, pid_t pid)
{
    watchdog_t  *s;

    s = data;
    pthread_mutex_lock(&s->mutex);
    s->nregistered++;
    pthread_mutex_unlock(&s->mutex);
    ev_async_send(s->main_loop, &s->to_main);
}


static void
watchdog_succeeded(void *data)
{
    watchdog_t  *s;

    s = data;
    pthread_mutex_lock(&s->mutex);
    s->has_successor = 1;
    pthread_mutex_unlock(&s->mutex);
    ev_async_send(s->main_loop, &s->to_main);
}


static void
watchdog_look(void *data, llmgw_group_state_t *state, life_vitals_t *vitals)
{
    watchdog_t  *s;

    s = data;
    pthread_mutex_lock(&s->mutex);
    *state = s->life.state;
    *vitals = s->life.vitals;
    pthread_mutex_unlock(&s->mutex);
}


static int
watchdog_probed(void *data, life_question_t question, const char **state)
{
    int        answer;
    watchdog_t  *s;

    s = data;
    pthread_mutex_lock(&s->mutex);
    answer = life_answer(&s->life, question, mono_ms());
    *state = life_name(&s->life);
    pthread_mutex_unlock(&s->mutex);

    return answer;
}


/* Handles requests of the main loop: workers first, then the rest. */
static void
watchdog_on_wanted(struct ev_loop *loop, ev_async *w, int revents)
{
    int        i, is_asked, is_seeking, is_ending, is_release;
    watchdog_t  *s;

    s = w->data;
    pthread_mutex_lock(&s->mutex);

    for (i = 0; i < s->nworkers; i++) {
        lock_client_worker(&s->client, s->workers[i].pid, s->workers[i].fd);
    }

    s->nworkers = 0;
    is_asked = s->is_asked;
    s->is_asked = 0;
    is_seeking = s->is_seeking;
    s->is_seeking = 0;
    is_ending = s->is_ending;
    is_release = s->is_release;
    pthread_mutex_unlock(&s->mutex);

    if (is_asked && !is_ending) {
        lock_client_ask(&s->client);
    }

    if (is_seeking && !is_ending) {
        lock_client_seek(&s->client);
    }

    if (is_ending) {
        lock_client_close(&s->client, is_release);
        ev_break(loop, EVBREAK_ALL);
    }
}


static void *
watchdog_run(void *data)
{
    ev_run(((watchdog_t *) data)->loop, 0);

    return NULL;
}


/* --- in the main loop */

static void
watchdog_on_news(struct ev_loop *loop, ev_async *w, int revents)
{
    int        is_granted, is_regranted, has_successor, nregistered;
    watchdog_t  *s;
    uint64_t   epoch, lock;

    s = w->data;
    pthread_mutex_lock(&s->mutex);
    is_granted = s->is_granted;
    is_regranted = s->is_regranted;
    has_successor = s->has_successor;
    nregistered = s->nregistered;
    epoch = s->life.epoch;
    lock = s->life.lock;
    s->is_granted = 0;
    s->is_regranted = 0;
    s->has_successor = 0;
    pthread_mutex_unlock(&s->mutex);

    if (is_granted) {
        s->callbacks->on_granted(s->data, epoch, lock);
    }

    if (is_regranted) {
        s->callbacks->on_regranted(s->data, lock);
    }

    if (nregistered > 0) {
        s->callbacks->on_registered(s->data, nregistered);
    }

    if (has_successor) {
        s->callbacks->on_successor(s->data);
    }
}


void
watchdog_asleep(watchdog_t *s)
{
    pthread_mutex_lock(&s->mutex);

    if (life_asleep(&s->life) == 0) {
        s->is_asked = 1;
        watchdog_log_life(s);
    }

    pthread_mutex_unlock(&s->mutex);
    ev_async_send(s->loop, &s->to_thread);
}


int
watchdog_woken(watchdog_t *s)
{
    int  rc;

    pthread_mutex_lock(&s->mutex);
    rc = life_woken(&s->life, mono_ms());

    if (rc == 0) {
        (void) alarm(0);
        watchdog_log_life(s);
    }

    pthread_mutex_unlock(&s->mutex);

    return rc;
}


llmgw_group_state_t
watchdog_turned(watchdog_t *s, const life_vitals_t *vitals, int *is_lock_away)
{
    uint64_t             now_ms;
    llmgw_group_state_t  shown;

    now_ms = mono_ms();
    pthread_mutex_lock(&s->mutex);
    life_turned(&s->life, vitals, now_ms);
    shown = life_shown(&s->life, now_ms);
    *is_lock_away = life_is_lock_away(&s->life);
    pthread_mutex_unlock(&s->mutex);

    return shown;
}


void
watchdog_seek(watchdog_t *s)
{
    pthread_mutex_lock(&s->mutex);
    s->is_seeking = 1;
    pthread_mutex_unlock(&s->mutex);
    ev_async_send(s->loop, &s->to_thread);
}


void
watchdog_worker(watchdog_t *s, pid_t pid, int pidfd)
{
    pthread_mutex_lock(&s->mutex);
    s->workers[s->nworkers].pid = pid;
    s->workers[s->nworkers].fd = pidfd;
    s->nworkers++;
    pthread_mutex_unlock(&s->mutex);
    ev_async_send(s->loop, &s->to_thread);
}


int
watchdog_lock_fd(const watchdog_t *s)
{
    return s->client.file.fd;
}


/* --- its own life */

static int
watchdog_start(watchdog_t *s, char *error)
{
    int       rc;
    sigset_t  all, before;

    /* Signals are handled by the main loop. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&s->thread, NULL, watchdog_run, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);

    if (rc != 0) {
        snprintf(error, WATCHDOG_ERROR_BYTES, "no thread: %s", strerror(rc));
        return -1;
    }

    return 0;
}


static int
watchdog_open(watchdog_t *s, char *error)
{
    static const lock_client_callbacks_t  callbacks = {
        .on_granted = watchdog_granted,
        .on_regranted = watchdog_regranted,
        .on_queue = watchdog_queued,
        .on_registered = watchdog_registered,
        .on_successor = watchdog_succeeded,
        .on_fatal = watchdog_fatal,
        .look = watchdog_look
    };

    s->client.loop = s->loop;
    s->client.log = s->log;
    s->client.path = s->options.lock;
    s->client.group = s->options.group;
    s->client.engine = s->options.engine;
    s->client.waking_timeout_ms = s->options.waking_timeout_ms;
    s->client.callbacks = &callbacks;
    s->client.data = s;

    if (lock_client_init(&s->client, error) != 0) {
        return -1;
    }

    if (s->options.probe_listen != NULL
        && probes_init(&s->probes, s->loop, s->options.probe_listen,
                       watchdog_probed, s, error) != 0)
    {
        return -1;
    }

    if (watchdog_start(s, error) != 0) {
        probes_done(&s->probes);
        return -1;
    }

    return 0;
}


static void
watchdog_free(watchdog_t *s)
{
    ev_async_stop(s->main_loop, &s->to_main);
    ev_async_stop(s->loop, &s->to_thread);
    ev_timer_stop(s->loop, &s->overdue);
    ev_loop_destroy(s->loop);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}


watchdog_t *
watchdog_create(struct ev_loop *main_loop, const log_t *log,
    const watchdog_options_t *options, const watchdog_callbacks_t *callbacks,
    void *data, char *error)
{
    watchdog_t  *s;

    s = calloc(1, sizeof(watchdog_t));

    if (s == NULL || (s->loop = ev_loop_new(EVFLAG_AUTO)) == NULL) {
        snprintf(error, WATCHDOG_ERROR_BYTES, "out of memory");
        free(s);
        return NULL;
    }

    s->options = *options;
    s->log = log;
    s->callbacks = callbacks;
    s->data = data;
    s->main_loop = main_loop;
    s->probes.listener.fd = -1;
    pthread_mutex_init(&s->mutex, NULL);
    life_init(&s->life, options->waking_timeout_ms);

    ev_async_init(&s->to_main, watchdog_on_news);
    ev_async_init(&s->to_thread, watchdog_on_wanted);
    ev_init(&s->overdue, watchdog_on_overdue);
    s->to_main.data = s;
    s->to_thread.data = s;
    s->overdue.data = s;
    ev_async_start(main_loop, &s->to_main);
    ev_async_start(s->loop, &s->to_thread);

    watchdog_log_life(s);

    if (watchdog_open(s, error) != 0) {
        watchdog_free(s);
        return NULL;
    }

    return s;
}


void
watchdog_destroy(watchdog_t *s, int is_release)
{
    pthread_mutex_lock(&s->mutex);
    s->is_ending = 1;
    s->is_release = is_release;

    if (life_end(&s->life) == 0) {
        watchdog_log_life(s);
    }

    pthread_mutex_unlock(&s->mutex);
    ev_async_send(s->loop, &s->to_thread);
    pthread_join(s->thread, NULL);

    if (s->options.probe_listen != NULL) {
        probes_done(&s->probes);
    }

    watchdog_free(s);
}
