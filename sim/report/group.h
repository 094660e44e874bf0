
/*
 * Groups requests by one of their names: class, tenant, model or session.
 */

#ifndef REPORT_GROUP_H
#define REPORT_GROUP_H

#include "sim/report/run.h"


/* In alphabetical order. */
typedef struct {
    const char                **names;
    size_t                      n;
    uint32_t                   *of_name;        /* by a name's id: its group */
} report_groups_t;

#define REPORT_NO_GROUP  UINT32_MAX


/*
 * Groups by the name at that offset in work_request_t.  absent: the name of the
 * group for requests without a name; NULL: they have no group.
 */
int report_groups_init(const report_run_t *run, size_t offset,
    const char *absent, report_groups_t *groups);
void report_groups_done(report_groups_t *groups);

static inline uint32_t
report_group_of(const report_groups_t *groups, const work_name_t *name)
{
    return groups->of_name[name->id];
}


/* The group of a request, by the name at that offset. */
static inline uint32_t
report_group_at(const report_groups_t *groups, const work_request_t *request,
    size_t offset)
{
    return report_group_of(groups, *(const work_name_t *const *)
                                   ((const char *) request + offset));
}


/*
 * Fills values with one time of each request of a group that has this time, in
 * microseconds; values must have room for all requests.  Returns how many.
 */
size_t report_group_times(const report_run_t *run,
    const report_groups_t *groups, size_t offset, uint32_t group,
    report_time_t time, double *values);

#endif /* REPORT_GROUP_H */
