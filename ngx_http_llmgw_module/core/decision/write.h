
/*
 * The decision log's lines: each decision with all of its inputs, so that the
 * same functions can repeat it.  docs/decisions.md has the format; nginx and
 * llmgw-sim write it, `llmgw-sim explain` reads it.
 *
 * Each function appends one line, with its newline, to memory of the caller's
 * (line.h): if out->len is above out->size afterwards, the line did not fit and
 * is cut.  Unknown members are left out; each field's comment has the value for
 * unknown.  Nothing here decides, and nothing reads a clock.
 */

#ifndef LLMGW_DECISION_WRITE_H
#define LLMGW_DECISION_WRITE_H

#include "core/decision/line.h"
#include "core/policy/pick.h"
#include "core/policy/rank.h"


#define LLMGW_DECISION_VERSION  1

/* Facts of a candidate that no report contains. */
#define LLMGW_DECISION_QUEUE  0x01
#define LLMGW_DECISION_BATCH  0x02
#define LLMGW_DECISION_KV     0x04

/* The number of a process, if several write to one file; 0: it is alone. */
typedef int64_t  llmgw_decision_worker_t;

/* The ring's input beside the pool's replicas. */
typedef struct {
    uint32_t                  vnodes;
    uint32_t                  load_factor_permille;
    uint32_t                  min_load;
} llmgw_decision_ring_t;

typedef struct {
    llmgw_decision_worker_t   worker;
    llmgw_line_text_t         pool;
    const char               *name;         /* of the policy */
    const llmgw_weighted_t   *weighted;     /* NULL: another policy */
    int                       is_effective; /* queue-depth reads all of the
                                               load */
    const llmgw_decision_ring_t  *ring;     /* NULL: no ring, or its settings
                                               are not known */
} llmgw_decision_policy_t;

typedef struct {
    llmgw_decision_worker_t   worker;
    int64_t                   t_us;
    llmgw_line_text_t         request;
    llmgw_line_text_t         pool;         /* no text: is not written */
    llmgw_line_text_t         model;        /* no text: is not written */
    llmgw_line_text_t         slo_class;
    llmgw_line_text_t         tenant;
    int64_t                   tokens;       /* < 0: unknown */
    const char               *reason;       /* NULL: admitted */
} llmgw_decision_admission_t;

/* A candidate, beside what the policy reads of it. */
typedef struct {
    llmgw_line_text_t         id;
    char                      made[24];     /* for an id that is made up */
    int64_t                   free_blocks;  /* < 0: unknown */
    int64_t                   age_ms;       /* of its facts; < 0: none */
    unsigned                  unknown;      /* LLMGW_DECISION_...: read as the
                                               mean of the others' */
    llmgw_lacks_t             lacks;        /* why it is not eligible */
    int                       was_passed;   /* ranked before the chosen one, but
                                               the pick's answer about it is not
                                               known */

    /* read by the pick, where no rank decided; has_pick: it is known */
    unsigned                  has_pick:1;
    unsigned                  is_open:1;    /* its circuit refuses */
    int64_t                   retry_ms;     /* for this long; 0: it is being
                                               probed */
    llmgw_peer_state_t        state;
    uint32_t                  weight;
    uint32_t                  foreign;      /* other gateways' in flight */
} llmgw_decision_replica_t;

/* A choice.  Arrays are indexed by position; none may be NULL if it is read. */
typedef struct {
    llmgw_decision_worker_t   worker;
    int64_t                   t_us;
    llmgw_line_text_t         request;
    llmgw_line_text_t         pool;
    llmgw_line_text_t         model;        /* no text: is not written */
    int64_t                   attempt;      /* of the request; 0: unknown */
    const llmgw_ranker_t     *ranker;       /* as it was before the choice */
    const llmgw_scoring_t    *scoring;
    const double             *ranks;        /* NULL: 1 of the chosen one, 0 of
                                               all others */
    const double             *scores;       /* of weighted: scorer x n + i */
    const double             *cold;         /* if a scorer reads it */
    const uint64_t           *random;       /* NULL: ties go to the first */
    const uint64_t           *key;          /* on the ring; NULL: none */
    const llmgw_pick_sums_t  *sums;         /* that the ring kept; NULL: none */
    const char               *outcome;      /* NULL: a replica was chosen */
    const char               *route;        /* NULL: unknown */
    const char               *reason;       /* NULL: unknown */
    llmgw_line_text_t         replica;      /* the chosen one; written if it is
                                               no candidate */
    uint32_t                  chosen;       /* or LLMGW_RANK_NONE: no candidate
                                               was chosen */
    const uint32_t           *shown;        /* positions; NULL: all in order */
    uint32_t                  nshown;

    void                    (*describe)(const void *data, uint32_t position,
                                        llmgw_decision_replica_t *replica);
    const void               *data;         /* of describe() */
} llmgw_decision_route_t;


/* The first line of each writer. */
void llmgw_decision_head(llmgw_line_t *out, const char *writer,
    llmgw_decision_worker_t worker);

void llmgw_decision_policy(llmgw_line_t *out,
    const llmgw_decision_policy_t *policy);
void llmgw_decision_admission(llmgw_line_t *out,
    const llmgw_decision_admission_t *admission);
void llmgw_decision_route(llmgw_line_t *out,
    const llmgw_decision_route_t *route);

/*
 * Further inputs of the choice beside facts, for its line: scores, memory for n
 * doubles of each scorer, and cold, of n doubles.
 */
void llmgw_decision_prepare(const llmgw_ranker_t *ranker,
    const llmgw_scoring_t *scoring, double *scores, double *cold);

/*
 * The positions of the n best candidates by rank, of more than n, and of the
 * chosen one if it is not among them; where there are no ranks, the chosen one
 * comes first.  shown: memory for n + 1; heap: for all candidates.  Returns how
 * many.
 */
uint32_t llmgw_decision_top(const llmgw_decision_route_t *route, uint32_t n,
    uint32_t *heap, uint32_t *shown);

#endif /* LLMGW_DECISION_WRITE_H */
