
/* Groups.  groups.h says who may write what, and when. */

#include <string.h>

#include "core/admission/cohorts.h"


static void groups_add(llmgw_groups_t *groups, llmgw_group_kind_t kind,
    const char *name, size_t len);
static llmgw_group_t *groups_table(const llmgw_groups_t *groups,
    llmgw_group_kind_t kind);
static uint32_t *groups_share(const llmgw_groups_t *groups, uint32_t tenant,
    uint32_t row);
static void groups_count(uint64_t *counter, uint64_t n);


/* How many have names of their own. */
static const uint32_t  groups_named[] = {
    [LLMGW_GROUP_CLASS] = LLMGW_GROUP_CLASSES,
    [LLMGW_GROUP_TENANT] = LLMGW_GROUP_TENANTS
};


size_t
llmgw_groups_bytes(uint32_t nrows)
{
    return sizeof(llmgw_groups_t)
           + (size_t) LLMGW_GROUPS_MAX * nrows * sizeof(uint32_t);
}


llmgw_groups_t *
llmgw_groups_init(void *memory, uint32_t nrows)
{
    llmgw_groups_t  *groups;

    groups = memory;
    groups->nrows = nrows;
    groups->in_flight = (uint32_t *) (groups + 1);

    groups_add(groups, LLMGW_GROUP_CLASS, "other", 5);
    groups_add(groups, LLMGW_GROUP_TENANT, "other", 5);

    return groups;
}


/*
 * Readers see a group whole or not at all, also if this process is killed
 * here: the next one writes over it.
 */
static void
groups_add(llmgw_groups_t *groups, llmgw_group_kind_t kind, const char *name,
    size_t len)
{
    uint32_t        i;
    llmgw_group_t  *group;

    i = groups->n[kind];
    group = &groups_table(groups, kind)[i];

    group->index = i;
    group->name_len = (uint32_t) len;
    memcpy(group->name, name, len);

    __atomic_store_n(&groups->n[kind], i + 1, __ATOMIC_RELEASE);
}


static llmgw_group_t *
groups_table(const llmgw_groups_t *groups, llmgw_group_kind_t kind)
{
    return (llmgw_group_t *) (kind == LLMGW_GROUP_CLASS ? groups->classes
                                                        : groups->tenants);
}


llmgw_group_t *
llmgw_groups_find(llmgw_groups_t *groups, llmgw_group_kind_t kind,
    const char *name, size_t len)
{
    uint32_t        i;
    llmgw_group_t  *group;

    for (i = 0; i < groups->n[kind]; i++) {
        group = &groups_table(groups, kind)[i];

        if (group->name_len == len && memcmp(group->name, name, len) == 0) {
            return group;
        }
    }

    if (i > groups_named[kind] || len == 0 || len > LLMGW_GROUP_NAME_BYTES) {
        return &groups_table(groups, kind)[0];
    }

    groups_add(groups, kind, name, len);

    return &groups_table(groups, kind)[i];
}


const llmgw_group_t *
llmgw_groups_at(const llmgw_groups_t *groups, llmgw_group_kind_t kind,
    uint32_t i)
{
    return i < __atomic_load_n(&groups->n[kind], __ATOMIC_ACQUIRE)
           ? &groups_table(groups, kind)[i] : NULL;
}


const char *
llmgw_groups_reason(uint32_t i)
{
    if (i >= LLMGW_NREASONS) {
        return "other";
    }

    return i == LLMGW_OUTCOME_SERVED ? "" : llmgw_outcome_reason(i);
}


static uint32_t *
groups_share(const llmgw_groups_t *groups, uint32_t tenant, uint32_t row)
{
    return &groups->in_flight[(size_t) tenant * groups->nrows + row];
}


uint32_t
llmgw_groups_in_flight(const llmgw_groups_t *groups,
    const llmgw_group_t *tenant)
{
    uint32_t  row, sum;

    sum = 0;

    for (row = 0; row < groups->nrows; row++) {
        sum += __atomic_load_n(groups_share(groups, tenant->index, row),
                               __ATOMIC_RELAXED);
    }

    return sum;
}


void
llmgw_groups_began(llmgw_groups_t *groups, const llmgw_group_t *tenant,
    uint32_t row)
{
    uint32_t  *share;

    share = groups_share(groups, tenant->index, row);
    __atomic_store_n(share, *share + 1, __ATOMIC_RELAXED);
}


void
llmgw_groups_left(llmgw_groups_t *groups, const llmgw_group_t *tenant,
    uint32_t row)
{
    uint32_t  *share;

    share = groups_share(groups, tenant->index, row);

    if (*share != 0) {
        __atomic_store_n(share, *share - 1, __ATOMIC_RELAXED);
    }
}


void
llmgw_groups_drop_row(llmgw_groups_t *groups, uint32_t row)
{
    uint32_t  i;

    for (i = 0; i < LLMGW_GROUPS_MAX; i++) {
        __atomic_store_n(groups_share(groups, i, row), 0, __ATOMIC_RELAXED);
    }
}


void
llmgw_group_ended(llmgw_group_t *group, llmgw_outcome_t outcome, int is_good)
{
    groups_count(&group->requests[outcome < LLMGW_NREASONS ? outcome
                                                           : LLMGW_NREASONS],
                 1);

    if (is_good) {
        groups_count(&group->goodput, 1);
    }
}


void
llmgw_group_first_token(llmgw_group_t *group, uint32_t bucket, uint64_t ms)
{
    groups_count(&group->first_token[bucket], 1);
    groups_count(&group->first_token_ms, ms);
}


static void
groups_count(uint64_t *counter, uint64_t n)
{
    (void) __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}
