
/*
 * Reads the decision log: a line at a time, each checked field by field.
 * docs/decisions.md has the format.
 */

#ifndef REPORT_LOG_READ_H
#define REPORT_LOG_READ_H

#include <stdio.h>

#include "core/decision/write.h"
#include "sim/fleet/policy/policy.h"
#include "sim/work/error.h"


#define REPORT_LOG_ID_BYTES    256          /* of names of requests and pools */
#define REPORT_LOG_NAME_BYTES  64           /* of replicas and policies */
#define REPORT_LOG_TEXT_BYTES  192
#define REPORT_LOG_POOLS       4096         /* of one file; each pool once per
                                               worker */
#define REPORT_LOG_LINE_BYTES  (64 << 20)   /* enough for 65,535 candidates */

typedef enum {
    REPORT_LOG_UNKNOWN = 0,             /* a choice that cannot be repeated */
    REPORT_LOG_RANKED,                  /* by a policy that ranks */
    REPORT_LOG_BY_RING
} report_log_how_t;

typedef struct {
    char                   name[REPORT_LOG_ID_BYTES];
    int64_t                worker;      /* of this worker; 0: the only one */
    report_log_how_t       how;
    fleet_policy_t         policy;      /* if how is RANKED */
    llmgw_decision_ring_t  ring;        /* if how is BY_RING */
} report_log_pool_t;

typedef struct {
    char                  id[REPORT_LOG_NAME_BYTES];
    uint32_t              position;
    uint32_t              matched;
    unsigned              has;          /* logged ones of LLMGW_NEEDS_... */
    int                   has_failed;   /* it was not available */
    double                cold;
    double                rank;

    /* what the pick reads; valid if has_pick */
    int                   has_pick;
    int                   is_open;      /* its circuit is open */
    int                   has_retry;
    int64_t               retry_ms;     /* its circuit's; 0: being probed */
    llmgw_lacks_t         lacks;        /* why, if has_failed */
    llmgw_peer_state_t    state;
    uint32_t              weight;
    uint32_t              foreign;
} report_log_candidate_t;

typedef enum {
    REPORT_LOG_ADMISSION = 0,
    REPORT_LOG_ROUTE
} report_log_kind_t;

/* facts[i] and candidates[i] describe one candidate, whose `replica` is i. */
typedef struct {
    report_log_kind_t         kind;
    size_t                    line;
    int64_t                   t_us;
    int64_t                   worker;
    char                      request[REPORT_LOG_ID_BYTES];

    int                       is_admitted;
    char                      reason[REPORT_LOG_TEXT_BYTES];

    const report_log_pool_t  *pool;     /* valid until the next line; NULL: the
                                           line that describes it was lost */
    char                      outcome[REPORT_LOG_NAME_BYTES];   /* "": a
                                           replica was chosen */
    char                      replica[REPORT_LOG_NAME_BYTES];   /* which, if
                                           it was no candidate */
    uint32_t                  nblocks;
    uint32_t                  of;       /* number of all candidates */
    uint32_t                  chosen;   /* position; LLMGW_RANK_NONE: no
                                           candidate */
    uint64_t                  turn;
    uint64_t                  random;
    uint64_t                  key;
    llmgw_pick_sums_t         sums;
    int                       has_turn;
    int                       has_random;
    int                       has_key;
    int                       has_sums;

    uint32_t                  n;        /* number of candidates in the log */
    uint32_t                  max;
    llmgw_candidate_t        *facts;
    report_log_candidate_t   *candidates;
} report_log_entry_t;

typedef struct {
    FILE                     *in;
    const char               *path;
    char                     *text;     /* of the line */
    size_t                    size;
    size_t                    line;
    int                       has_head;
    report_log_pool_t        *pools;
    size_t                    npools;
    size_t                    max_pools;

    /* Called for a piece of a line that is not JSON, and is skipped */
    void                    (*broken)(void *data, const char *path,
                                      size_t line);
    void                     *data;
} report_log_reader_t;


/* 0, or -1 and *error. */
int report_log_read_open(report_log_reader_t *reader, const char *path,
    work_error_t *error);
void report_log_read_close(report_log_reader_t *reader);

/*
 * Reads the next decision: 1; the end: 0; -1 and *error.  The caller zeroes
 * entry before the first call.
 *
 * A process that is killed, or a full disk, leaves half a line; what another
 * process writes next is then in the same line.  So a line that is not JSON is
 * searched for the beginning of another one, and the rest is skipped.
 */
int report_log_read(report_log_reader_t *reader, report_log_entry_t *entry,
    work_error_t *error);
void report_log_entry_done(report_log_entry_t *entry);

/* How that worker chooses from the pool; NULL: no line describes it. */
report_log_pool_t *report_log_pool(const report_log_reader_t *reader,
    int64_t worker, const char *name);

/*
 * Reads a policy, "weighted:NAME:WEIGHT,..." or "least-loaded".  0, or -1 and
 * an error.
 */
int report_log_policy(fleet_policy_t *policy, const char *text, char *error,
    size_t size);

#endif /* REPORT_LOG_READ_H */
