
/* Adds up usage records.  usage_sum.h has the rules. */

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/files/usage_sum.h"
#include "proto/date.h"
#include "proto/usage/seen.h"


/* Length of a day as a label: "2026-11-28". */
#define DAY_CHARS  10

struct ctl_usage_sum_s {
    ctl_usage_query_t   query;
    llmgw_seen_t       *seen;
    void               *tree;           /* groups by their labels */
    uint32_t            ngroups;
    ctl_usage_rc_t      rc;
    uint64_t            doubles;
    ctl_usage_group_t   total;
};

/* A group; its labels follow in memory. */
typedef struct {
    ctl_usage_group_t   group;
    uint32_t            nby;
    char                text[];
} sum_group_t;

typedef struct {
    void  (*on_group)(const ctl_usage_group_t *group, void *data);
    void   *data;
} sum_walk_t;


const char *
ctl_usage_by_name(ctl_by_t by)
{
    static const char *const  names[CTL_NBY] = {
        "key", "tenant", "class", "model", "gateway", "day"
    };

    return names[by];
}


const char *
ctl_usage_sum_name(ctl_sum_t sum)
{
    static const char *const  names[CTL_NSUMS] = {
        "requests", "prompt_tokens", "completion_tokens", "cached_tokens",
        "reasoning_tokens", "wasted_tokens"
    };

    return names[sum];
}


ctl_usage_sum_t *
ctl_usage_sum_create(const ctl_usage_query_t *query)
{
    ctl_usage_sum_t  *sum;

    sum = calloc(1, sizeof(*sum));

    if (sum == NULL) {
        return NULL;
    }

    sum->query = *query;
    sum->seen = llmgw_seen_create();

    if (sum->seen == NULL) {
        free(sum);
        return NULL;
    }

    return sum;
}


void
ctl_usage_sum_destroy(ctl_usage_sum_t *sum)
{
    if (sum != NULL) {
        llmgw_seen_destroy(sum->seen);
        tdestroy(sum->tree, free);
        free(sum);
    }
}


static int
sum_compare(const void *a, const void *b)
{
    int                 order;
    uint32_t            i;
    const sum_group_t  *left = a, *right = b;

    for (i = 0, order = 0; i < left->nby && order == 0; i++) {
        order = strcmp(left->group.labels[i], right->group.labels[i]);
    }

    return order;
}


static const char *
sum_label(ctl_by_t by, const llmgw_usage_source_t *source,
    const llmgw_usage_t *usage, char day[LLMGW_DATE_BYTES])
{
    switch (by) {
    case CTL_BY_KEY:
        return usage->key;
    case CTL_BY_TENANT:
        return usage->tenant;
    case CTL_BY_CLASS:
        return usage->slo_class;
    case CTL_BY_MODEL:
        return usage->model;
    case CTL_BY_GATEWAY:
        return source->gateway;
    default:
        llmgw_date_write(day, usage->ended_ms);
        day[DAY_CHARS] = '\0';
        return day;
    }
}


/* A copy of a group, with copies of its labels. */
static sum_group_t *
sum_group_copy(const sum_group_t *key)
{
    char         *p;
    size_t        bytes;
    uint32_t      i;
    sum_group_t  *copy;

    bytes = sizeof(*copy);

    for (i = 0; i < key->nby; i++) {
        bytes += strlen(key->group.labels[i]) + 1;
    }

    copy = calloc(1, bytes);

    if (copy != NULL) {
        copy->nby = key->nby;

        for (i = 0, p = copy->text; i < key->nby; i++) {
            copy->group.labels[i] = p;
            p = stpcpy(p, key->group.labels[i]) + 1;
        }
    }

    return copy;
}


/*
 * The group with those labels, which is added if need be; NULL: sum->rc says
 * why.
 */
static sum_group_t *
sum_group(ctl_usage_sum_t *sum, const llmgw_usage_source_t *source,
    const llmgw_usage_t *usage)
{
    char          day[LLMGW_DATE_BYTES];
    void         *found;
    uint32_t      i;
    sum_group_t   key = { .nby = sum->query.nby }, *copy;

    for (i = 0; i < key.nby; i++) {
        key.group.labels[i] = sum_label(sum->query.by[i], source, usage, day);
    }

    found = tfind(&key, &sum->tree, sum_compare);

    if (found != NULL) {
        return *(sum_group_t **) found;
    }

    if (sum->ngroups == CTL_USAGE_GROUPS) {
        sum->rc = CTL_USAGE_GROUPS_FULL;
        return NULL;
    }

    copy = sum_group_copy(&key);

    if (copy == NULL || tsearch(copy, &sum->tree, sum_compare) == NULL) {
        free(copy);
        sum->rc = CTL_USAGE_ENOMEM;
        return NULL;
    }

    sum->ngroups++;

    return copy;
}


static void
sum_add(ctl_usage_group_t *group, const llmgw_usage_t *usage)
{
    group->sums[CTL_SUM_REQUESTS]++;
    group->sums[CTL_SUM_PROMPT] += usage->prompt;
    group->sums[CTL_SUM_COMPLETION] += usage->completion;
    group->sums[CTL_SUM_CACHED] += usage->cached;
    group->sums[CTL_SUM_REASONING] += usage->reasoning;
    group->sums[CTL_SUM_WASTED] += usage->wasted;
}


int
ctl_usage_sum_record(void *data, const llmgw_usage_source_t *source,
    const llmgw_usage_t *usage)
{
    sum_group_t      *group;
    ctl_usage_sum_t  *sum = data;

    if (usage->ended_ms < sum->query.since_ms
        || usage->ended_ms >= sum->query.until_ms)
    {
        return CTL_USAGE_MORE;
    }

    switch (llmgw_seen_add(sum->seen, source, usage->n)) {
    case LLMGW_SEEN_NEW:
        break;
    case LLMGW_SEEN_DOUBLE:
        sum->doubles++;
        return CTL_USAGE_MORE;
    default:
        sum->rc = CTL_USAGE_GAPS;
        return sum->rc;
    }

    group = sum_group(sum, source, usage);

    if (group == NULL) {
        return sum->rc;
    }

    sum_add(&group->group, usage);
    sum_add(&sum->total, usage);

    return CTL_USAGE_MORE;
}


ctl_usage_rc_t
ctl_usage_sum_rc(const ctl_usage_sum_t *sum)
{
    return sum->rc;
}


const ctl_usage_group_t *
ctl_usage_sum_total(const ctl_usage_sum_t *sum)
{
    return &sum->total;
}


uint64_t
ctl_usage_sum_doubles(const ctl_usage_sum_t *sum)
{
    return sum->doubles;
}


static void
sum_visit(const void *node, VISIT which, void *data)
{
    const sum_walk_t   *walk = data;
    const sum_group_t  *group = *(sum_group_t *const *) node;

    if (which == postorder || which == leaf) {
        walk->on_group(&group->group, walk->data);
    }
}


void
ctl_usage_sum_each(const ctl_usage_sum_t *sum,
    void (*on_group)(const ctl_usage_group_t *group, void *data), void *data)
{
    sum_walk_t  walk = { on_group, data };

    twalk_r(sum->tree, sum_visit, &walk);
}
