
/*
 * The decision log, read: a line at a time, each checked field by field.
 * docs/decisions.md has the format.
 */

#ifndef REPORT_LOG_READ_H
#define REPORT_LOG_READ_H

#include <stdio.h>

#include "core/policy/rank.h"
#include "sim/work/error.h"


#define REPORT_LOG_ID_BYTES    64
#define REPORT_LOG_TEXT_BYTES  192
#define REPORT_LOG_POOLS       64           /* of one file */
#define REPORT_LOG_LINE_BYTES  (64 << 20)   /* 65,535 candidates and more */

typedef struct {
    char              name[REPORT_LOG_ID_BYTES];
    int               is_ranked;        /* by one of core's rankers; 0: by the
                                           ring */
    llmgw_ranker_t    ranker;
} report_log_pool_t;

typedef struct {
    char              id[REPORT_LOG_ID_BYTES];
    uint32_t          position;
    uint32_t          matched;
    unsigned          has;              /* LLMGW_NEEDS_... that it has */
    int               has_failed;       /* was chosen first, and could not */
    double            cold;
    double            rank;
} report_log_candidate_t;

typedef enum {
    REPORT_LOG_ADMISSION = 0,
    REPORT_LOG_ROUTE
} report_log_kind_t;

/* facts[i] and candidates[i] are one candidate; replica is i. */
typedef struct {
    report_log_kind_t         kind;
    size_t                    line;
    int64_t                   t_us;
    char                      request[REPORT_LOG_ID_BYTES];

    int                       is_admitted;
    char                      reason[REPORT_LOG_TEXT_BYTES];

    const report_log_pool_t  *pool;
    uint32_t                  nblocks;
    uint32_t                  of;       /* candidates that there were */
    uint32_t                  chosen;   /* position */
    uint64_t                  turn;
    uint64_t                  random;
    int                       has_turn;
    int                       has_random;

    uint32_t                  n;        /* that are in the log */
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
    report_log_pool_t         pools[REPORT_LOG_POOLS];
    size_t                    npools;
} report_log_reader_t;


/* 0, or -1 and *error. */
int report_log_read_open(report_log_reader_t *reader, const char *path,
    work_error_t *error);
void report_log_read_close(report_log_reader_t *reader);

/* The next decision: 1; the end: 0; -1 and *error.  entry: zeroed once. */
int report_log_read(report_log_reader_t *reader, report_log_entry_t *entry,
    work_error_t *error);
void report_log_entry_done(report_log_entry_t *entry);

/*
 * A policy as "weighted:NAME:WEIGHT,..." or "least-loaded".  0, or -1 with
 * what is wrong in error.
 */
int report_log_policy(llmgw_ranker_t *ranker, const char *text, char *error,
    size_t size);

#endif /* REPORT_LOG_READ_H */
