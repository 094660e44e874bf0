
/*
 * Usage records, added up by some of their fields.  Records that were added
 * before do not count, nor do those before `since_ms` or from `until_ms` on.
 */

#ifndef CTL_USAGE_SUM_H
#define CTL_USAGE_SUM_H

#include "proto/usage/record.h"


/* Room for days of a year times keys and models: at most 1 kB each. */
#define CTL_USAGE_GROUPS  1000000

typedef enum {
    CTL_BY_KEY = 0,
    CTL_BY_TENANT,
    CTL_BY_CLASS,
    CTL_BY_MODEL,
    CTL_BY_GATEWAY,
    CTL_BY_DAY,                         /* day of UTC in which the request
                                           ended */
    CTL_NBY
} ctl_by_t;

typedef struct {
    ctl_by_t     by[CTL_NBY];           /* each once, in this order */
    uint32_t     nby;
    uint64_t     since_ms;
    uint64_t     until_ms;
} ctl_usage_query_t;

typedef enum {
    CTL_SUM_REQUESTS = 0,
    CTL_SUM_PROMPT,
    CTL_SUM_COMPLETION,
    CTL_SUM_CACHED,
    CTL_SUM_REASONING,
    CTL_SUM_WASTED,
    CTL_NSUMS
} ctl_sum_t;

typedef struct {
    const char  *labels[CTL_NBY];       /* as many labels as the query has */
    uint64_t     sums[CTL_NSUMS];
} ctl_usage_group_t;

typedef struct ctl_usage_sum_s  ctl_usage_sum_t;

typedef enum {
    CTL_USAGE_MORE = 0,
    CTL_USAGE_GAPS,                     /* more sources or gaps than seen.h
                                           allows */
    CTL_USAGE_GROUPS_FULL,
    CTL_USAGE_ENOMEM
} ctl_usage_rc_t;


/* NULL: no memory. */
ctl_usage_sum_t *ctl_usage_sum_create(const ctl_usage_query_t *query);
void ctl_usage_sum_destroy(ctl_usage_sum_t *sum);

/* An llmgw_usage_on_record_pt; what it returns is a ctl_usage_rc_t. */
int ctl_usage_sum_record(void *sum, const llmgw_usage_source_t *source,
    const llmgw_usage_t *usage);

/* The reason why the last record could not be added; MORE: it was added. */
ctl_usage_rc_t ctl_usage_sum_rc(const ctl_usage_sum_t *sum);

/* Calls the function with each group, in the order of their labels. */
void ctl_usage_sum_each(const ctl_usage_sum_t *sum,
    void (*on_group)(const ctl_usage_group_t *group, void *data), void *data);

/* The sums of all groups together; this group has no labels. */
const ctl_usage_group_t *ctl_usage_sum_total(const ctl_usage_sum_t *sum);

/* The number of records that were there more than once. */
uint64_t ctl_usage_sum_doubles(const ctl_usage_sum_t *sum);

/* The name of a field: "key" ...; "prompt_tokens" ... */
const char *ctl_usage_by_name(ctl_by_t by);
const char *ctl_usage_sum_name(ctl_sum_t sum);

#endif /* CTL_USAGE_SUM_H */
