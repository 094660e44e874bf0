
/*
 * Each client's share of the rate.
 *
 * Fractions are shares among the clients that are active at the same time:
 * those whose windows overlap, and those without windows.  In a workload whose
 * windows have a rate, arrivals or lengths of their own, each window gets its
 * share by the rates of the windows that overlap it.
 */

#ifndef WORK_SHARE_H
#define WORK_SHARE_H

#include "sim/work/spec/spec.h"


/* Clients with the same lifecycle, as the members of a cohort. */
typedef struct {
    const work_lifecycle_t  *lifecycle;     /* NULL: always active */
    double                   fractions;     /* sum of their rate_fraction */
    double                   n;
} work_share_group_t;

typedef struct {
    work_share_group_t  *groups;
    size_t               n;
    double               rate;              /* of all; requests a second */
} work_shares_t;

void work_shares_init(work_shares_t *shares, const work_client_t *clients,
    size_t n, double rate, work_arena_t *arena);

/* Arrivals a second of a client, or of a client in one of its windows. */
double work_share_of_client(const work_shares_t *shares,
    const work_client_t *client);
double work_share_of_window(const work_shares_t *shares,
    const work_client_t *client, const work_window_t *window);

/* Has any window a rate, arrivals or lengths of its own? */
int work_shares_vary(const work_shares_t *shares);

#endif /* WORK_SHARE_H */
