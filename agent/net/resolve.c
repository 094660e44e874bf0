
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/resolve.h"


#define RESOLVE_URGENT_S  1.0
#define RESOLVE_PERIOD_S  10.0

/* address_resolve() wants this much for its reason. */
#define RESOLVE_REASON_BYTES  128

/*
 * What the loop and the thread share.  The last of the two to let go of it
 * frees it, so that an agent can end while a name server keeps the thread
 * waiting.
 */
typedef struct {
    pthread_mutex_t   mutex;
    struct ev_loop   *loop;         /* NULL: its result is not wanted */
    ev_async          async;
    int               holders;
    int               is_running;
    char             *names[RESOLVE_MAX_SEEDS];
    size_t            nnames;
    int               family;       /* AF_UNSPEC: any */
    address_t         addresses[RESOLVE_MAX_SEEDS];
    size_t            naddresses;
} resolve_job_t;

struct resolve_s {
    struct ev_loop        *loop;
    ev_timer               timer;
    resolve_job_t         *job;
    resolve_done_pt        on_done;
    resolve_is_urgent_pt   is_urgent;
    void                  *data;
    int                    is_numeric;
};


/* With the mutex held; unlocks it. */
static void
resolve_job_release(resolve_job_t *job)
{
    int     is_last;
    size_t  i;

    is_last = --job->holders == 0;
    pthread_mutex_unlock(&job->mutex);

    if (!is_last) {
        return;
    }

    for (i = 0; i < job->nnames; i++) {
        free(job->names[i]);
    }

    pthread_mutex_destroy(&job->mutex);
    free(job);
}


/* So many of this name; one at least is left for each that follows. */
static size_t
resolve_room(const resolve_job_t *job, size_t name, size_t n)
{
    size_t  room;

    room = RESOLVE_MAX_SEEDS - n - (job->nnames - 1 - name);

    return room < RESOLVE_NAME_SEEDS ? room : RESOLVE_NAME_SEEDS;
}


/* The names are not written after the start, so they need no lock. */
static void *
resolve_thread(void *data)
{
    int             found;
    char            reason[RESOLVE_REASON_BYTES];
    size_t          i, n;
    address_t       addresses[RESOLVE_MAX_SEEDS];
    resolve_job_t  *job = data;

    n = 0;

    for (i = 0; i < job->nnames; i++) {
        found = address_resolve_all(job->names[i], job->family, &addresses[n],
                                    resolve_room(job, i, n), reason);
        n += found > 0 ? (size_t) found : 0;
    }

    pthread_mutex_lock(&job->mutex);

    memcpy(job->addresses, addresses, n * sizeof(address_t));
    job->naddresses = n;
    job->is_running = 0;

    if (job->loop != NULL) {
        ev_async_send(job->loop, &job->async);
    }

    resolve_job_release(job);

    return NULL;
}


static void
resolve_arrived(struct ev_loop *loop, ev_async *async, int events)
{
    size_t          n;
    address_t       addresses[RESOLVE_MAX_SEEDS];
    resolve_t      *resolve = async->data;
    resolve_job_t  *job;

    job = resolve->job;

    pthread_mutex_lock(&job->mutex);
    n = job->naddresses;
    memcpy(addresses, job->addresses, n * sizeof(address_t));
    pthread_mutex_unlock(&job->mutex);

    resolve->on_done(resolve->data, addresses, n);
}


static void
resolve_start_thread(resolve_job_t *job)
{
    int             rc;
    pthread_t       thread;
    pthread_attr_t  attr;

    pthread_mutex_lock(&job->mutex);

    if (job->is_running) {
        pthread_mutex_unlock(&job->mutex);
        return;
    }

    job->is_running = 1;
    job->holders++;
    pthread_mutex_unlock(&job->mutex);

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    rc = pthread_create(&thread, &attr, resolve_thread, job);
    pthread_attr_destroy(&attr);

    if (rc != 0) {
        pthread_mutex_lock(&job->mutex);
        job->is_running = 0;
        resolve_job_release(job);
    }
}


static void
resolve_numeric(resolve_t *resolve)
{
    size_t          i;
    resolve_job_t  *job;

    job = resolve->job;

    for (i = 0; i < job->nnames; i++) {
        address_parse(job->names[i], &job->addresses[i]);
    }

    resolve->on_done(resolve->data, job->addresses, job->nnames);
}


static void
resolve_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    resolve_t  *resolve = timer->data;

    if (resolve->is_numeric) {
        resolve_numeric(resolve);
        return;         /* and never again */
    }

    resolve_start_thread(resolve->job);

    timer->repeat = resolve->is_urgent(resolve->data) ? RESOLVE_URGENT_S
                                                      : RESOLVE_PERIOD_S;
    ev_timer_again(loop, timer);
}


static int
resolve_add_name(resolve_t *resolve, const char *name, char *error)
{
    address_t       address;
    resolve_job_t  *job;

    job = resolve->job;

    if (!address_is_valid(name)) {
        snprintf(error, RESOLVE_ERROR_BYTES, "\"%s\" is not HOST:PORT", name);
        return -1;
    }

    if (job->nnames == RESOLVE_MAX_SEEDS) {
        snprintf(error, RESOLVE_ERROR_BYTES, "more than %d seeds",
                 RESOLVE_MAX_SEEDS);
        return -1;
    }

    job->names[job->nnames] = strdup(name);
    if (job->names[job->nnames] == NULL) {
        snprintf(error, RESOLVE_ERROR_BYTES, "out of memory");
        return -1;
    }

    job->nnames++;
    resolve->is_numeric &= address_parse(name, &address) == 0;

    return 0;
}


static int
resolve_add_list(resolve_t *resolve, const char *list, char *error)
{
    int    rc;
    char  *copy, *name, *rest;

    copy = strdup(list);
    if (copy == NULL) {
        snprintf(error, RESOLVE_ERROR_BYTES, "out of memory");
        return -1;
    }

    rc = 0;
    rest = copy;

    while (rc == 0 && (name = strsep(&rest, ",")) != NULL) {
        rc = resolve_add_name(resolve, name, error);
    }

    free(copy);

    return rc;
}


static resolve_job_t *
resolve_job_create(struct ev_loop *loop)
{
    resolve_job_t  *job;

    job = calloc(1, sizeof(resolve_job_t));
    if (job == NULL) {
        return NULL;
    }

    pthread_mutex_init(&job->mutex, NULL);
    job->loop = loop;
    job->holders = 1;
    ev_async_init(&job->async, resolve_arrived);
    ev_async_start(loop, &job->async);

    return job;
}


resolve_t *
resolve_create(struct ev_loop *loop, const char *list,
    int family, resolve_done_pt on_done, resolve_is_urgent_pt is_urgent,
    void *data, char *error)
{
    resolve_t  *resolve;

    resolve = calloc(1, sizeof(resolve_t));
    if (resolve == NULL) {
        snprintf(error, RESOLVE_ERROR_BYTES, "out of memory");
        return NULL;
    }

    resolve->loop = loop;
    resolve->on_done = on_done;
    resolve->is_urgent = is_urgent;
    resolve->data = data;
    resolve->is_numeric = 1;
    resolve->job = resolve_job_create(loop);

    if (resolve->job == NULL) {
        snprintf(error, RESOLVE_ERROR_BYTES, "out of memory");
        free(resolve);
        return NULL;
    }

    resolve->job->async.data = resolve;

    /* An IPv6 socket may be one for both. */
    resolve->job->family = family == AF_INET ? AF_INET : AF_UNSPEC;
    ev_timer_init(&resolve->timer, resolve_tick, 0., 0.);
    resolve->timer.data = resolve;
    ev_timer_start(loop, &resolve->timer);

    if (resolve_add_list(resolve, list, error) != 0) {
        resolve_destroy(resolve);
        return NULL;
    }

    return resolve;
}


void
resolve_destroy(resolve_t *resolve)
{
    ev_timer_stop(resolve->loop, &resolve->timer);
    ev_async_stop(resolve->loop, &resolve->job->async);

    pthread_mutex_lock(&resolve->job->mutex);
    resolve->job->loop = NULL;
    resolve_job_release(resolve->job);

    free(resolve);
}
