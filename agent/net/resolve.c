
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/background.h"
#include "net/resolve.h"


#define RESOLVE_URGENT_S  1.0
#define RESOLVE_PERIOD_S  10.0

/* Size of the reason that address_resolve_all() needs. */
#define RESOLVE_REASON_BYTES  128

typedef struct {
    size_t     n;
    address_t  list[RESOLVE_MAX_SEEDS];
} resolve_found_t;

/* A job that resolves all names once. */
typedef struct {
    background_job_t   job;         /* first: a job begins with its header */
    resolve_t         *resolve;     /* not used in the thread */
    size_t             nnames;
    int                family;
    resolve_found_t    found;
    char               names[];     /* separated by commas */
} resolve_job_t;

struct resolve_s {
    struct ev_loop        *loop;
    ev_timer               timer;
    background_t          *thread;  /* NULL: all names are numeric */
    int                    is_running;
    int                    is_numeric;
    int                    family;      /* AF_UNSPEC: any */
    char                  *names;
    size_t                 nnames;
    resolve_done_pt        on_done;
    resolve_is_urgent_pt   is_urgent;
    void                  *data;
};


/*
 * How many addresses of this name may be taken; at least one is left for each
 * name that follows.
 */
static size_t
resolve_room(const resolve_job_t *job, size_t name)
{
    size_t  room;

    room = RESOLVE_MAX_SEEDS - job->found.n - (job->nnames - 1 - name);

    return room < RESOLVE_NAME_SEEDS ? room : RESOLVE_NAME_SEEDS;
}


/* Resolves the names, in the thread. */
static void
resolve_run(background_job_t *job)
{
    int               n;
    char              reason[RESOLVE_REASON_BYTES];
    char             *rest;
    size_t            i;
    const char       *name;
    resolve_job_t    *names = (resolve_job_t *) job;
    resolve_found_t  *found;

    found = &names->found;
    rest = names->names;

    for (i = 0; (name = strsep(&rest, ",")) != NULL; i++) {
        n = address_resolve_all(name, names->family, &found->list[found->n],
                                resolve_room(names, i), reason);
        found->n += n > 0 ? (size_t) n : 0;
    }
}


static void
resolve_done(background_job_t *job)
{
    resolve_t      *resolve;
    resolve_job_t  *names = (resolve_job_t *) job;

    resolve = names->resolve;
    resolve->is_running = 0;
    resolve->on_done(resolve->data, names->found.list, names->found.n);
    free(names);
}


/* If there is no memory, the next tick tries again. */
static void
resolve_start(resolve_t *resolve)
{
    size_t          bytes;
    resolve_job_t  *names;

    if (resolve->is_running) {
        return;
    }

    bytes = strlen(resolve->names) + 1;
    names = calloc(1, sizeof(resolve_job_t) + bytes);
    if (names == NULL) {
        return;
    }

    names->job.run = resolve_run;
    names->job.done = resolve_done;
    names->resolve = resolve;
    names->nnames = resolve->nnames;
    names->family = resolve->family;
    memcpy(names->names, resolve->names, bytes);

    resolve->is_running = 1;
    background_put(resolve->thread, &names->job);
}


static void
resolve_numeric(resolve_t *resolve)
{
    char             *rest;
    const char       *name;
    resolve_found_t   found;

    found.n = 0;
    rest = resolve->names;

    while ((name = strsep(&rest, ",")) != NULL) {
        address_parse(name, &found.list[found.n++]);
    }

    resolve->on_done(resolve->data, found.list, found.n);
}


static void
resolve_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    resolve_t  *resolve = timer->data;

    if (resolve->is_numeric) {
        resolve_numeric(resolve);
        return;         /* it is not called again */
    }

    resolve_start(resolve);

    timer->repeat = resolve->is_urgent(resolve->data) ? RESOLVE_URGENT_S
                                                      : RESOLVE_PERIOD_S;
    ev_timer_again(loop, timer);
}


/* Checks the seeds.  -1 and the reason. */
static int
resolve_check(resolve_t *resolve, const char *name, char *error)
{
    address_t  address;

    if (!address_is_valid(name)) {
        snprintf(error, RESOLVE_ERROR_BYTES, "\"%s\" is not HOST:PORT", name);
        return -1;
    }

    if (resolve->nnames == RESOLVE_MAX_SEEDS) {
        snprintf(error, RESOLVE_ERROR_BYTES, "more than %d seeds",
                 RESOLVE_MAX_SEEDS);
        return -1;
    }

    resolve->nnames++;
    resolve->is_numeric &= address_parse(name, &address) == 0;

    return 0;
}


static int
resolve_check_list(resolve_t *resolve, const char *list, char *error)
{
    int          rc;
    char        *copy, *rest;
    const char  *name;

    copy = strdup(list);
    resolve->names = strdup(list);
    rc = copy != NULL && resolve->names != NULL ? 0 : -1;

    if (rc != 0) {
        snprintf(error, RESOLVE_ERROR_BYTES, "out of memory");
    }

    rest = copy;

    while (rc == 0 && (name = strsep(&rest, ",")) != NULL) {
        rc = resolve_check(resolve, name, error);
    }

    free(copy);

    return rc;
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

    /* an IPv6 socket may serve both families */
    resolve->family = family == AF_INET ? AF_INET : AF_UNSPEC;
    ev_timer_init(&resolve->timer, resolve_tick, 0., 0.);
    resolve->timer.data = resolve;

    if (resolve_check_list(resolve, list, error) != 0) {
        resolve_destroy(resolve);
        return NULL;
    }

    if (!resolve->is_numeric) {
        resolve->thread = background_create(loop);

        if (resolve->thread == NULL) {
            snprintf(error, RESOLVE_ERROR_BYTES, "no thread to resolve with");
            resolve_destroy(resolve);
            return NULL;
        }
    }

    ev_timer_start(loop, &resolve->timer);

    return resolve;
}


void
resolve_destroy(resolve_t *resolve)
{
    ev_timer_stop(resolve->loop, &resolve->timer);

    if (resolve->thread != NULL) {
        background_destroy(resolve->thread, 0);
    }

    free(resolve->names);
    free(resolve);
}
