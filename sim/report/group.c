
/*
 * Requests by class, tenant, model or session.
 */

#include <stdlib.h>
#include <string.h>

#include "sim/report/group.h"


static const work_name_t *
group_name(const report_run_t *run, size_t i, size_t offset)
{
    return *(const work_name_t *const *)
           ((const char *) work_at(run->work, i) + offset);
}


static int
group_cmp(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}


/* Sorts names, and keeps each only once; returns how many. */
static size_t
group_unique(const char **names, size_t n)
{
    size_t  i, kept;

    if (n == 0) {
        return 0;
    }

    qsort(names, n, sizeof(*names), group_cmp);
    kept = 1;

    for (i = 1; i < n; i++) {
        if (strcmp(names[i], names[kept - 1]) != 0) {
            names[kept++] = names[i];
        }
    }

    return kept;
}


static const char *
group_label(const work_name_t *name, const char *absent)
{
    return name->len > 0 ? name->text : absent;
}


int
report_groups_init(const report_run_t *run, size_t offset,
    const char *absent, report_groups_t *groups)
{
    size_t              i, n, all;
    const char        **at, *label;
    const work_name_t  *name;

    all = run->work->names.n;
    groups->names = malloc((all + 1) * sizeof(char *));
    groups->of_name = malloc((all + 1) * sizeof(uint32_t));

    if (groups->names == NULL || groups->of_name == NULL) {
        return -1;
    }

    for (i = 0; i < all; i++) {
        groups->of_name[i] = REPORT_NO_GROUP;
    }

    for (i = 0, n = 0; i < run->work->n; i++) {
        name = group_name(run, i, offset);
        label = group_label(name, absent);

        if (label != NULL && groups->of_name[name->id] == REPORT_NO_GROUP) {
            groups->of_name[name->id] = 0;
            groups->names[n++] = label;
        }
    }

    groups->n = group_unique(groups->names, n);

    for (i = 0; i < run->work->n; i++) {
        name = group_name(run, i, offset);
        label = group_label(name, absent);

        if (label != NULL) {
            at = bsearch(&label, groups->names, groups->n, sizeof(label),
                         group_cmp);
            groups->of_name[name->id] = (uint32_t) (at - groups->names);
        }
    }

    return 0;
}


void
report_groups_done(report_groups_t *groups)
{
    free(groups->names);
    free(groups->of_name);
}


static int
group_time(const report_run_t *run, size_t i, report_time_t time,
    double *value)
{
    const fleet_outcome_t  *o;

    o = &run->result->outcomes[i];

    if (time == REPORT_TTFT) {
        *value = (double) o->ttft_us;
        return report_has_ttft(o);
    }

    *value = time == REPORT_E2E ? (double) o->e2e_us
                                : report_itl_us(work_at(run->work, i), o);

    return report_has_e2e(o);
}


size_t
report_group_times(const report_run_t *run, const report_groups_t *groups,
    size_t offset, uint32_t group, report_time_t time, double *values)
{
    size_t  i, n;

    n = 0;

    for (i = 0; i < run->result->n; i++) {
        if (report_group_at(groups, work_at(run->work, i), offset) == group) {
            n += (size_t) group_time(run, i, time, &values[n]);
        }
    }

    return n;
}
