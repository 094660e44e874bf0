
/*
 * A run from the inside: what its files share.
 *
 *   run.c      sets it up, what each event does, the end
 *   call.c     a request at a replica, from sending to its end
 *   view.c     what the gateway sees of the replicas, and how old that is
 *   admit.c    a request arrives and is admitted
 *   queue.c    the gateway's queue: dispatch, time to live, eviction
 *   route.c    a replica is chosen
 *   split.c    a prompt is computed elsewhere, and its KV cache transferred
 *   record.c   decisions, reported to fleet_watch_t
 *   check.c    invariants
 *
 * loop.h processes events; all files schedule theirs there.  If memory runs
 * out, f->failed is set and the run ends.
 */

#ifndef FLEET_INNER_H
#define FLEET_INNER_H

#include <string.h>

#include "sim/fleet/loop.h"
#include "sim/fleet/policy/evict.h"
#include "sim/fleet/ring.h"
#include "sim/work/arena.h"


typedef struct fleet_s  fleet_t;

typedef struct {
    fleet_t          *fleet;
    model_replica_t  *model;
    uint32_t          index;
} fleet_node_t;

/* A request of the workload, with the replica model's struct for it. */
typedef struct {
    model_request_t   call;         /* the whole, or the prompt's half */
    uint64_t         *hashes;
    uint32_t          index;
    uint32_t          entry;        /* its number in the gateway's queue */
} fleet_request_t;

/* The half of a split request that computes the answer. */
typedef struct {
    model_request_t   call;
    fleet_request_t  *request;
    uint32_t          split;        /* its row in result->splits */
} fleet_half_t;

/* Memory of a run that its result needs, and frees. */
typedef struct {
    model_config_t     models[3];   /* for replicas of both, prefill, decode */
    uint64_t           view;        /* number of the frozen view of caches */
    work_arena_t       texts;
    fleet_node_t      *nodes;
    fleet_request_t  **pages;       /* WORK_PAGE requests each */
    size_t             npages;
    fleet_half_t     **halves;      /* one for each row of result->splits */
    size_t             max_splits;
    size_t             max_halves;
    size_t             max_outcomes;
} fleet_memory_t;

/* Candidates of a decision, in the order in which policies see them. */
typedef struct {
    llmgw_candidate_t  *list;
    uint32_t            n;
} fleet_choice_t;

/* An end of a half that waits for the end of the step; see split.c. */
typedef struct {
    const char        *name;
    uint32_t           split;
    int                end;
} split_finished_t;

/* A policy and its memory. */
typedef struct {
    fleet_policy_t         policy;
    llmgw_prefix_index_t  *index;       /* if the policy has NEEDS_MATCHED */
    llmgw_cold_t          *cold;        /* if the policy has NEEDS_COLD */
    llmgw_ring_t          *ring;        /* if the policy is affinity */
    llmgw_pick_peer_t     *peers;       /* memory: one per node of the ring */
} fleet_ranker_t;

#define FLEET_REASON_OF_CHOICE  64      /* bytes */

#define FLEET_PREFILLS  1
#define FLEET_DECODES   2

/* In the order in which events of one time are handled; see fleet_rank(). */
typedef enum {
    FLEET_EVENT_ARRIVAL = 0,
    FLEET_EVENT_ADMISSION,
    FLEET_EVENT_ROUTING,
    FLEET_EVENT_PREFILL,
    FLEET_EVENT_TRANSFER_START,
    FLEET_EVENT_EVICTION,       /* detail: its replica */
    FLEET_EVENT_TRANSFER_END,
    FLEET_EVENT_TTL,
    FLEET_EVENT_TICK
} fleet_event_kind_t;

struct fleet_s {
    const fleet_config_t   *config;
    work_t                 *work;
    const fleet_watch_t    *watch;
    fleet_result_t         *result;
    fleet_memory_t         *memory;
    int                     failed;     /* -1, or FLEET_BROKEN by check.c */
    char                   *error;
    size_t                  error_bytes;

    loop_t                  loop;

    /* view.c */
    llmgw_candidate_t      *seen;       /* one for each replica */
    uint32_t               *seen_free;  /* KV blocks */
    llmgw_candidate_t      *subset;     /* memory for some of `seen` */
    uint8_t                *roles;
    int64_t                 seen_us;
    int64_t                 cache_us;

    /* admit.c */
    fleet_rule_t            rule;
    llmgw_bucket_t          bucket;
    llmgw_tenant_t         *tenants;    /* by id of a tenant's name */
    size_t                  ntenants;
    const work_name_t      *model_name; /* the only model that is served */

    /* queue.c */
    llmgw_flow_t           *flow;
    uint32_t                nqueued;
    uint32_t                nfirm;      /* entries that may not be shed */
    evict_t                *evict;
    uint64_t               *tenant_order;   /* by id of a tenant's name */
    size_t                  ntenant_order;
    const work_name_t      *default_tenant;
    int                     has_tick;

    /* route.c */
    fleet_ranker_t          rankers[3]; /* main, prefill, decode */
    double                 *ranks;
    double                 *scores;
    uint32_t               *matched;
    uint64_t               *scratch;

    /* split.c */
    split_finished_t       *finished;   /* halves that ended in this step */
    size_t                  nfinished;
    size_t                  max_finished;
    uint32_t                transfers;  /* transfers that are running */

    /* record.c */
    fleet_ranked_t         *ranked;
    fleet_decision_t        choice;     /* the one chosen last */
    char                    reason[FLEET_REASON_OF_CHOICE];
};


/* run.c */
void fleet_fail(fleet_t *f, const char *what);
void *fleet_alloc(fleet_t *f, size_t n, size_t size);
unsigned fleet_rank(fleet_event_kind_t kind);
void fleet_schedule(fleet_t *f, int64_t at_us, fleet_event_kind_t kind,
    uint32_t subject, uint32_t detail);
void fleet_replica_changed(fleet_t *f, uint32_t replica);

/* call.c */
extern const model_hooks_t  fleet_hooks;
extern const model_hooks_t  fleet_split_hooks;

fleet_request_t *fleet_request(fleet_t *f, uint32_t index);
int fleet_grow(fleet_t *f);
void fleet_hash(fleet_t *f, fleet_request_t *r);
void fleet_fill(fleet_t *f, fleet_request_t *r, model_request_t *call);
void fleet_send(fleet_t *f, fleet_request_t *r, model_request_t *call,
    uint32_t replica);
void fleet_over(fleet_t *f, fleet_request_t *r, fleet_status_t status,
    const char *detail);
void fleet_shed(fleet_t *f, const work_request_t *w);
void fleet_follow(fleet_t *f, const work_request_t *w, work_end_t end,
    uint32_t output_tokens, int64_t now_us);
void fleet_measure(fleet_outcome_t *outcome, const model_request_t *call);

const char *fleet_name(fleet_t *f, uint32_t replica);

static inline fleet_outcome_t *
fleet_outcome(fleet_t *f, uint32_t index)
{
    return &f->result->outcomes[index];
}

/* The number of full blocks of a request's prompt. */
static inline uint32_t
fleet_prompt_blocks(const fleet_t *f, const fleet_request_t *r)
{
    return work_at(f->work, r->index)->input_tokens
           / (uint32_t) f->config->model.block_tokens;
}

/* view.c */
int view_init(fleet_t *f);
void view_update(fleet_t *f, uint32_t replica);
fleet_choice_t view_read(fleet_t *f, const work_request_t *w, uint8_t role);
uint32_t view_cached(fleet_t *f, uint32_t replica, const fleet_request_t *r);

/* admit.c */
int admit_init(fleet_t *f);
void admit_arrive(fleet_t *f, uint32_t index);
void admit_decide(fleet_t *f, uint32_t index);
void admit_sent(fleet_t *f, const work_request_t *w);
void admit_ended(fleet_t *f, const work_request_t *w);
int32_t admit_priority(const fleet_t *f, const work_request_t *w);

/* queue.c */
int queue_init(fleet_t *f);
void queue_enter(fleet_t *f, uint32_t index);
void queue_try(fleet_t *f);
void queue_tick(fleet_t *f);
void queue_expire(fleet_t *f, uint32_t index);
void queue_evict(fleet_t *f, uint32_t index, uint32_t replica);
void queue_completed(fleet_t *f, size_t n);

/* route.c */
int route_init(fleet_t *f);
void route_decide(fleet_t *f, uint32_t index);
void route_send(fleet_t *f, fleet_request_t *r, uint32_t replica);
void route_reject(fleet_t *f, fleet_request_t *r);
uint32_t route_choose(fleet_t *f, fleet_ranker_t *ranker,
    const fleet_choice_t *choice, fleet_request_t *r);
int route_reads_cache(const fleet_config_t *config);

/* split.c */
void split_route(fleet_t *f, fleet_request_t *r);
void split_prefill(fleet_t *f, uint32_t split);
void split_transfer_start(fleet_t *f, uint32_t split);
void split_transfer_end(fleet_t *f, uint32_t split);
void split_ended(fleet_t *f, model_request_t *call, model_end_t end);
void split_settle(fleet_t *f);

/* record.c */
int record_init(fleet_t *f);
void record_admission(fleet_t *f, const work_request_t *w, int is_admitted,
    const char *reason);
void record_choice(fleet_t *f, const fleet_ranker_t *ranker,
    const llmgw_scoring_t *scoring, const fleet_request_t *r, uint32_t chosen);
void record_tell(fleet_t *f, fleet_decision_kind_t kind);

/* check.c */
void check_clock(fleet_t *f, int64_t at_us);
void check_replica(fleet_t *f, uint32_t replica);
void check_ranks(fleet_t *f, const llmgw_ranker_t *ranker, uint32_t n);
void check_follow(fleet_t *f, const work_request_t *last,
    const work_request_t *next, int64_t now_us);
void check_end(fleet_t *f);

#endif /* FLEET_INNER_H */
