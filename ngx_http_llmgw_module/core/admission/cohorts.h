
/*
 * Cohorts: the requests of one class, or of one tenant, as all processes of a
 * gateway count them, in plain memory that they share.
 *
 * A cohort is found by its name, or added.  The first of each kind is "other":
 * for names that are not configured, and for names that arrived when the table
 * was full.  Names stay as long as the memory does, so a new configuration
 * continues to count, and there are never more than LLMGW_COHORTS_MAX of a
 * kind, whatever clients send.
 *
 * Counters are added to without a lock.  Requests in flight are counted in one
 * word for each tenant and process, and nowhere else: a tenant has as many as
 * its words add up to, and a dead process's requests are dropped with its
 * words.  Only the process itself writes them, so a request may end without the
 * lock; a process that wants to see the sum and add to it in one step holds the
 * lock.
 *
 * The token bucket lies here, too, and changes under the lock.  Two of its
 * words change: a process that is killed between them leaves a bucket that
 * fills once more for the same time, up to its capacity, and works.
 */

#ifndef LLMGW_COHORTS_H
#define LLMGW_COHORTS_H

#include <stddef.h>
#include <stdint.h>

#include "core/admission/bucket.h"
#include "core/admission/classes.h"
#include "core/outcome.h"


/* The most of each kind, beside "other". */
#define LLMGW_COHORT_CLASSES      LLMGW_CLASSES_MAX
#define LLMGW_COHORT_TENANTS      64
#define LLMGW_COHORTS_MAX         (1 + LLMGW_COHORT_TENANTS)

#define LLMGW_COHORT_NAME_BYTES   LLMGW_CLASS_NAME_BYTES
#define LLMGW_COHORT_NTIMES       23     /* buckets of the first token */

/*
 * Counters by outcome: one for each that has a reason; the last counts all
 * others.
 */
#define LLMGW_COHORT_NREASONS     (LLMGW_NREASONS + 1)

typedef enum {
    LLMGW_COHORT_CLASS = 0,
    LLMGW_COHORT_TENANT,
    LLMGW_COHORT_NKINDS
} llmgw_cohort_kind_t;

typedef struct {
    uint32_t  index;            /* among those of its kind */
    uint32_t  name_len;
    char      name[LLMGW_COHORT_NAME_BYTES];
    uint64_t  requests[LLMGW_COHORT_NREASONS];
    uint64_t  first_token[LLMGW_COHORT_NTIMES];
    uint64_t  first_token_ms;   /* sum of the times */
    uint64_t  goodput;          /* served, within the targets of the class */
} llmgw_cohort_t;

typedef struct {
    uint32_t        n[LLMGW_COHORT_NKINDS];
    uint32_t        nrows;
    uint32_t       *in_flight;  /* [tenant][row] */
    llmgw_bucket_t  bucket;     /* capacity 0: not configured */
    llmgw_cohort_t  classes[1 + LLMGW_COHORT_CLASSES];
    llmgw_cohort_t  tenants[1 + LLMGW_COHORT_TENANTS];
} llmgw_cohorts_t;


/*
 * The number of bytes for cohorts; makes them in such memory, which is zeroed.
 */
size_t llmgw_cohorts_bytes(uint32_t nrows);
llmgw_cohorts_t *llmgw_cohorts_init(void *memory, uint32_t nrows);

/*
 * The cohort of that name, found or added; "other" if it cannot be added, and
 * if the name is empty or too long.  The caller holds the lock.
 */
llmgw_cohort_t *llmgw_cohorts_find(llmgw_cohorts_t *cohorts,
    llmgw_cohort_kind_t kind, const char *name, size_t len);

/*
 * For status pages, without the lock: the i-th cohort of a kind; 0 is "other".
 * NULL: there are no more.  A cohort that is there stays.
 */
const llmgw_cohort_t *llmgw_cohorts_at(const llmgw_cohorts_t *cohorts,
    llmgw_cohort_kind_t kind, uint32_t i);

/*
 * The reason that requests[i] counts: "" for served requests, "other" for those
 * that ended otherwise without a reason of ours, as by their deadline or by a
 * replica's refusal.
 */
const char *llmgw_cohorts_reason(uint32_t i);

/* The tenant's requests that have entered and not left, of all processes. */
uint32_t llmgw_cohorts_in_flight(const llmgw_cohorts_t *cohorts,
    const llmgw_cohort_t *tenant);

/* A request of the tenant has entered or left. row: of the calling process. */
void llmgw_cohorts_began(llmgw_cohorts_t *cohorts, const llmgw_cohort_t *tenant,
    uint32_t row);
void llmgw_cohorts_left(llmgw_cohorts_t *cohorts, const llmgw_cohort_t *tenant,
    uint32_t row);

/*
 * To be called when the process of that row has ended or is known to be dead.
 */
void llmgw_cohorts_drop_row(llmgw_cohorts_t *cohorts, uint32_t row);

/* A request has ended. */
void llmgw_cohort_ended(llmgw_cohort_t *cohort, llmgw_outcome_t outcome,
    int is_good);

/* Its first token took `ms`, which is in that bucket. */
void llmgw_cohort_first_token(llmgw_cohort_t *cohort, uint32_t bucket,
    uint64_t ms);

#endif /* LLMGW_COHORTS_H */
