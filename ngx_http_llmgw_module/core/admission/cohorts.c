
/* Cohorts.  cohorts.h has the rules of writing. */

#include <string.h>

#include "core/admission/cohorts.h"


static void cohorts_add(llmgw_cohorts_t *cohorts, llmgw_cohort_kind_t kind,
    const char *name, size_t len);
static llmgw_cohort_t *cohorts_table(const llmgw_cohorts_t *cohorts,
    llmgw_cohort_kind_t kind);
static uint32_t *cohorts_share(const llmgw_cohorts_t *cohorts, uint32_t tenant,
    uint32_t row);
static void cohorts_count(uint64_t *counter, uint64_t n);


/* How many of each kind may have a name. */
static const uint32_t  cohorts_named[] = {
    [LLMGW_COHORT_CLASS] = LLMGW_COHORT_CLASSES,
    [LLMGW_COHORT_TENANT] = LLMGW_COHORT_TENANTS
};


size_t
llmgw_cohorts_bytes(uint32_t nrows)
{
    return sizeof(llmgw_cohorts_t)
           + (size_t) LLMGW_COHORTS_MAX * nrows * sizeof(uint32_t);
}


llmgw_cohorts_t *
llmgw_cohorts_init(void *memory, uint32_t nrows)
{
    llmgw_cohorts_t  *cohorts;

    cohorts = memory;
    cohorts->nrows = nrows;
    cohorts->in_flight = (uint32_t *) (cohorts + 1);

    cohorts_add(cohorts, LLMGW_COHORT_CLASS, "other", 5);
    cohorts_add(cohorts, LLMGW_COHORT_TENANT, "other", 5);

    return cohorts;
}


/*
 * Readers see a cohort whole or not at all, also if this process is killed
 * here: the next one writes over it.
 */
static void
cohorts_add(llmgw_cohorts_t *cohorts, llmgw_cohort_kind_t kind,
    const char *name, size_t len)
{
    uint32_t         i;
    llmgw_cohort_t  *cohort;

    i = cohorts->n[kind];
    cohort = &cohorts_table(cohorts, kind)[i];

    cohort->index = i;
    cohort->name_len = (uint32_t) len;
    memcpy(cohort->name, name, len);

    __atomic_store_n(&cohorts->n[kind], i + 1, __ATOMIC_RELEASE);
}


static llmgw_cohort_t *
cohorts_table(const llmgw_cohorts_t *cohorts, llmgw_cohort_kind_t kind)
{
    return (llmgw_cohort_t *) (kind == LLMGW_COHORT_CLASS ? cohorts->classes
                                                          : cohorts->tenants);
}


llmgw_cohort_t *
llmgw_cohorts_find(llmgw_cohorts_t *cohorts, llmgw_cohort_kind_t kind,
    const char *name, size_t len)
{
    uint32_t         i;
    llmgw_cohort_t  *cohort;

    for (i = 0; i < cohorts->n[kind]; i++) {
        cohort = &cohorts_table(cohorts, kind)[i];

        if (cohort->name_len == len && memcmp(cohort->name, name, len) == 0) {
            return cohort;
        }
    }

    if (i > cohorts_named[kind] || len == 0 || len > LLMGW_COHORT_NAME_BYTES) {
        return &cohorts_table(cohorts, kind)[0];
    }

    cohorts_add(cohorts, kind, name, len);

    return &cohorts_table(cohorts, kind)[i];
}


const llmgw_cohort_t *
llmgw_cohorts_at(const llmgw_cohorts_t *cohorts, llmgw_cohort_kind_t kind,
    uint32_t i)
{
    return i < __atomic_load_n(&cohorts->n[kind], __ATOMIC_ACQUIRE)
           ? &cohorts_table(cohorts, kind)[i] : NULL;
}


const char *
llmgw_cohorts_reason(uint32_t i)
{
    if (i >= LLMGW_NREASONS) {
        return "other";
    }

    return i == LLMGW_OUTCOME_SERVED ? "" : llmgw_outcome_reason(i);
}


static uint32_t *
cohorts_share(const llmgw_cohorts_t *cohorts, uint32_t tenant, uint32_t row)
{
    return &cohorts->in_flight[(size_t) tenant * cohorts->nrows + row];
}


uint32_t
llmgw_cohorts_in_flight(const llmgw_cohorts_t *cohorts,
    const llmgw_cohort_t *tenant)
{
    uint32_t  row, sum;

    sum = 0;

    for (row = 0; row < cohorts->nrows; row++) {
        sum += __atomic_load_n(cohorts_share(cohorts, tenant->index, row),
                               __ATOMIC_RELAXED);
    }

    return sum;
}


void
llmgw_cohorts_began(llmgw_cohorts_t *cohorts, const llmgw_cohort_t *tenant,
    uint32_t row)
{
    uint32_t  *share;

    share = cohorts_share(cohorts, tenant->index, row);
    __atomic_store_n(share, *share + 1, __ATOMIC_RELAXED);
}


void
llmgw_cohorts_left(llmgw_cohorts_t *cohorts, const llmgw_cohort_t *tenant,
    uint32_t row)
{
    uint32_t  *share;

    share = cohorts_share(cohorts, tenant->index, row);

    if (*share != 0) {
        __atomic_store_n(share, *share - 1, __ATOMIC_RELAXED);
    }
}


void
llmgw_cohorts_drop_row(llmgw_cohorts_t *cohorts, uint32_t row)
{
    uint32_t  i;

    for (i = 0; i < LLMGW_COHORTS_MAX; i++) {
        __atomic_store_n(cohorts_share(cohorts, i, row), 0, __ATOMIC_RELAXED);
    }
}


void
llmgw_cohort_ended(llmgw_cohort_t *cohort, llmgw_outcome_t outcome, int is_good)
{
    cohorts_count(&cohort->requests[outcome < LLMGW_NREASONS ? outcome
                                                             : LLMGW_NREASONS],
                  1);

    if (is_good) {
        cohorts_count(&cohort->goodput, 1);
    }
}


void
llmgw_cohort_first_token(llmgw_cohort_t *cohort, uint32_t bucket, uint64_t ms)
{
    cohorts_count(&cohort->first_token[bucket], 1);
    cohorts_count(&cohort->first_token_ms, ms);
}


static void
cohorts_count(uint64_t *counter, uint64_t n)
{
    (void) __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}
