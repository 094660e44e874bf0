
/* Shares of the rate among clients that are active together. */

#include "sim/work/spec/share.h"

#include <string.h>


static work_share_group_t *
group_of(work_shares_t *shares, const work_lifecycle_t *lifecycle)
{
    size_t  i;

    for (i = shares->n; i > 0; i--) {
        if (shares->groups[i - 1].lifecycle == lifecycle) {
            return &shares->groups[i - 1];
        }
    }

    shares->groups[shares->n].lifecycle = lifecycle;

    return &shares->groups[shares->n++];
}


void
work_shares_init(work_shares_t *shares, const work_client_t *clients,
    size_t n, double rate, work_arena_t *arena)
{
    size_t               i;
    work_share_group_t  *group;

    memset(shares, 0, sizeof(*shares));
    shares->rate = rate;
    shares->groups = work_arena_alloc(arena, n * sizeof(*group) + 1);

    for (i = 0; i < n; i++) {
        if (clients[i].rate_fraction > 0) {
            group = group_of(shares, clients[i].lifecycle);
            group->fractions += clients[i].rate_fraction;
            group->n++;
        }
    }
}


/* The first window of a lifecycle that overlaps start .. end, or NULL. */
static const work_window_t *
overlap(const work_lifecycle_t *l, int64_t start_us, int64_t end_us)
{
    size_t                i;
    const work_window_t  *w;

    w = l->windows.items;

    for (i = 0; i < l->windows.n; i++) {
        if (w[i].start_us < end_us && start_us < w[i].end_us) {
            return &w[i];
        }
    }

    return NULL;
}


static int
are_together(const work_lifecycle_t *a, const work_lifecycle_t *b)
{
    size_t                i;
    const work_window_t  *w;

    if (a == NULL || b == NULL || a == b) {
        return 1;
    }

    w = a->windows.items;

    for (i = 0; i < a->windows.n; i++) {
        if (overlap(b, w[i].start_us, w[i].end_us) != NULL) {
            return 1;
        }
    }

    return 0;
}


double
work_share_of_client(const work_shares_t *shares, const work_client_t *client)
{
    size_t  i;
    double  sum;

    sum = 0;

    for (i = 0; i < shares->n; i++) {
        if (are_together(client->lifecycle, shares->groups[i].lifecycle)) {
            sum += shares->groups[i].fractions;
        }
    }

    return sum > 0 ? shares->rate * (client->rate_fraction / sum) : 0;
}


double
work_share_of_window(const work_shares_t *shares,
    const work_client_t *client, const work_window_t *window)
{
    size_t                     i;
    double                     sum, own;
    const work_window_t       *w;
    const work_share_group_t  *g;

    own = window->has_rate ? window->trace_rate : client->rate_fraction;

    if (shares->rate == 0) {
        return own;
    }

    sum = 0;

    for (i = 0; i < shares->n; i++) {
        g = &shares->groups[i];
        w = g->lifecycle == NULL ? NULL
            : overlap(g->lifecycle, window->start_us, window->end_us);

        if (g->lifecycle == NULL || w != NULL) {
            sum += w != NULL && w->has_rate ? w->trace_rate * g->n
                                            : g->fractions;
        }
    }

    return sum > 0 ? shares->rate * (own / sum) : 0;
}


int
work_shares_vary(const work_shares_t *shares)
{
    size_t                i, j;
    const work_window_t  *w;

    for (i = 0; i < shares->n; i++) {
        if (shares->groups[i].lifecycle == NULL) {
            continue;
        }

        w = shares->groups[i].lifecycle->windows.items;

        for (j = 0; j < shares->groups[i].lifecycle->windows.n; j++) {
            if (w[j].has_rate || w[j].arrival != NULL || w[j].input != NULL
                || w[j].output != NULL)
            {
                return 1;
            }
        }
    }

    return 0;
}
