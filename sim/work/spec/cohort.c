
/* Turns cohorts into clients, and a day, a spike or a ramp into windows. */

#include "sim/work/spec/cohort.h"

#include <math.h>
#include <stdio.h>
#include <string.h>


#define HOURS     24
#define HOUR_US   INT64_C(3600000000)
#define SEGMENTS  10        /* windows of a ramp down */


static work_window_t *
windows_add(work_yaml_list_t *windows, int64_t start_us, int64_t end_us)
{
    work_window_t  *w;

    w = (work_window_t *) windows->items + windows->n++;
    w->start_us = start_us;
    w->end_us = end_us > start_us ? end_us : start_us + 1;

    return w;
}


/*
 * A day with a peak: in each hour a member is active from the beginning of the
 * hour, during all of it at the peak, and during a part of it at other hours,
 * by a cosine.
 */
static void
add_diurnal(work_yaml_list_t *windows, const work_diurnal_t *d)
{
    int     h;
    double  angle, least, share;

    least = 1 / d->peak_to_trough_ratio;

    for (h = 0; h < HOURS; h++) {
        angle = 2 * M_PI * (double) (h - d->peak_hour) / HOURS;
        share = (1 + cos(angle)) / 2 * (1 - least) + least;
        share = share < 1 ? share : 1;
        windows_add(windows, h * HOUR_US,
                    h * HOUR_US + (int64_t) ((double) HOUR_US * share));
    }
}


static void
add_spike(work_yaml_list_t *windows, const work_cohort_t *c)
{
    work_window_t  *w;

    w = windows_add(windows, c->spike->start_us,
                    c->spike->start_us + c->spike->duration_us);
    w->has_rate = c->spike->has_rate;
    w->trace_rate = c->spike->trace_rate / (double) c->population;
}


/*
 * A ramp down: active until it begins, then during a falling part of each
 * tenth.
 */
static void
add_drain(work_yaml_list_t *windows, const work_drain_t *d)
{
    int      i;
    int64_t  at, length;

    length = d->ramp_us / SEGMENTS;
    length = length > 0 ? length : 1;

    if (d->start_us > 0) {
        windows_add(windows, 0, d->start_us);
    }

    for (i = 0; i < SEGMENTS; i++) {
        at = d->start_us + i * length;
        windows_add(windows, at, at + length * (SEGMENTS - i) / SEGMENTS);
    }
}


static work_lifecycle_t *
cohort_lifecycle(const work_cohort_t *c, work_arena_t *arena)
{
    work_lifecycle_t  *l;

    if (c->diurnal == NULL && c->spike == NULL && c->drain == NULL) {
        return NULL;
    }

    l = work_arena_alloc(arena, sizeof(*l));
    l->windows.items = work_arena_alloc(arena, (HOURS + 1 + 1 + SEGMENTS)
                                        * sizeof(work_window_t));

    if (c->diurnal != NULL) {
        add_diurnal(&l->windows, c->diurnal);
    }

    if (c->spike != NULL) {
        add_spike(&l->windows, c);
    }

    if (c->drain != NULL) {
        add_drain(&l->windows, c->drain);
    }

    return l;
}


static const char *
numbered(work_arena_t *arena, const char *text, int64_t number)
{
    int   len;
    char  name[512];

    len = snprintf(name, sizeof(name), "%.480s-%lld", text,
                   (long long) number);

    return work_arena_text(arena, name, (size_t) len);
}


static void
add_members(const work_cohort_t *c, work_client_t *to, work_arena_t *arena)
{
    int64_t            i;
    work_lifecycle_t  *lifecycle;

    lifecycle = cohort_lifecycle(c, arena);

    for (i = 0; i < c->population; i++) {
        to[i] = c->each;
        to[i].id = numbered(arena, c->each.id != NULL ? c->each.id : "", i);
        to[i].rate_fraction = c->each.rate_fraction / (double) c->population;
        to[i].lifecycle = lifecycle;

        if (c->prefix_sharing != NULL && c->each.prefix_group != NULL
            && strcmp(c->prefix_sharing, "per_member") == 0)
        {
            to[i].prefix_group = numbered(arena, c->each.prefix_group, i);
        }
    }
}


work_client_t *
work_spec_clients(const work_spec_t *spec, work_arena_t *arena, size_t *n)
{
    size_t          i, at;
    work_client_t  *clients;
    work_cohort_t  *cohorts;

    cohorts = spec->cohorts.items;
    *n = spec->clients.n;

    for (i = 0; i < spec->cohorts.n; i++) {
        *n += (size_t) cohorts[i].population;
    }

    clients = work_arena_alloc(arena, *n * sizeof(*clients) + 1);
    at = spec->clients.n;

    if (at > 0) {
        memcpy(clients, spec->clients.items, at * sizeof(*clients));
    }

    for (i = 0; i < spec->cohorts.n; i++) {
        add_members(&cohorts[i], clients + at, arena);
        at += (size_t) cohorts[i].population;
    }

    return clients;
}
