
/*
 * What the files of this folder share:
 *
 *   flow.c     flows, steps and their answers
 *   hop.c      one shard's session: sends, and hears from it
 *   plan.c     which hops replace those that were lost
 *   failure.c  what the client may be told of it
 *   audit.c    sessions that another shard computes, too, to compare
 *   turn.c     who may build, and replay, now
 *   history.c  the budget of what is kept
 *   tick.c     deadlines, and callbacks that must not come from within calls
 */

#ifndef FLOW_INNER_H
#define FLOW_INNER_H

#include "replica/shard/flow/flow.h"
#include "replica/shard/flow/rows.h"
#include "replica/shard/flow/shards.h"


/* Until a session is Opened by a shard that loads first: by then it has said
   itself that it takes too long. */
#define FLOW_LOADED_MS    (SHARD_LOAD_MAX_MS + 30000)

/* A deadline that has passed is looked at again after so long. */
#define FLOW_AGAIN_MS     20

/* A hop that is late and waited for all the same is looked at so often. */
#define FLOW_DETOUR_MS    100

/* A look that came so late itself proves nothing: this process stood still. */
#define FLOW_STOOD_MS     1000

/* A shard that was busy, as without a place, is not asked for so long by the
   flow that it refused; one that loads is, where nobody else leads over all
   layers. */
#define FLOW_BUSY_MS      5000

/* Until a turn comes to somebody, or a replay has its next result, for those
   that wait for a turn: a session that is not opened, or a step that has no
   result, is given up before. */
#define FLOW_TURN_MS      (FLOW_LOADED_MS + 30000)

/* Audits at a time, each with a session. */
#define AUDITS_MAX        16

/* A turn goes on when no row of its replay is under way for so long, and a
   place among SHARD_BUILDS_MAX when a shard takes so long to open. */
#define FLOW_HELD_MS      1000

typedef struct {
    uint32_t  position;
    uint32_t  rows;
    uint64_t  sent_ns;
    uint64_t  started_ns;       /* 0: not yet */
} hop_step_t;

typedef struct audit_s  audit_t;

typedef enum {
    HOP_LOST = 0,               /* no session; also before there ever was one */
    HOP_OPENING,
    HOP_OPEN
} hop_state_t;

typedef struct {
    flow_t          *flow;
    size_t           index;     /* among the flow's */
    fleet_hop_t      at;
    flow_shard_t    *shard;     /* NULL: there never was a session */
    link_session_t  *session;
    hop_state_t      state;
    uint32_t         rows_max;  /* of a step */

    rows_t           in;
    uint32_t         next;      /* position to be sent */
    uint32_t         done;      /* those below have their result */
    uint32_t         replay_to; /* those below were computed before */
    uint64_t         built_ns;

    hop_step_t       steps[SHARD_STEPS_MAX];    /* outstanding, oldest first */
    size_t           nsteps;
    uint64_t         since_ns;  /* when what it waits for came to be next */
    uint64_t         again_ns;  /* it is late: look once more; or 0 */
    uint64_t         built_answers;     /* the flow's, when it was built */
    audit_t         *audit;     /* of its session; NULL: none */
} hop_t;

typedef struct {
    uint64_t  key;              /* of a shard */
    uint64_t  until_ns;
    int       is_last;          /* it was late, or loads: asked all the same,
                                   where nobody else leads over all layers */
} flow_excluded_t;

/* Whom a plan may ask beside the rest. */
typedef enum {
    PLAN_SURE = 0,
    PLAN_LATE,                  /* a shard that was late, also for this flow,
                                   or loads */
    PLAN_FAILED,                /* one that failed others, too, instead of one
                                   that was late and is doubted */
    PLAN_SUSPECT,               /* as PLAN_LATE, and one whose agent is */
    PLAN_ANY                    /* all of them */
} plan_with_t;

typedef struct {
    uint32_t  position;
    uint32_t  rows;
    int       is_asked;         /* for the logits of its last row */
} flow_todo_t;

/* Logits that were asked for: of the row at this position. */
typedef struct flow_asked_s {
    struct flow_asked_s  *next;
    uint32_t              position;
    int                   is_there;
    float                 logits[];
} flow_asked_t;

struct flow_s {
    flows_t                 *flows;
    flow_t                  *prev;          /* the older one */
    flow_t                  *next;
    const flow_callbacks_t  *callbacks;
    void                    *data;
    uint64_t                 name;
    uint32_t                 expected;
    uint64_t                 opened_ns;

    hop_t                   *hops[SHARD_HOPS_MAX];  /* over all layers */
    size_t                   nhops;
    uint32_t                 end;           /* position of the next step */
    flow_todo_t              todo[FLOW_STEPS_MAX];  /* steps, oldest first */
    size_t                   ntodo;
    flow_asked_t            *asked;

    /* hops[from] .. hops[to - 1] are to be replaced by the path */
    size_t                   from;
    size_t                   to;
    fleet_path_t             path;
    flow_t                  *behind;        /* in the queue for a turn */
    uint64_t                 since_ns;      /* it waits, or has its place */
    uint64_t                 moved_ns;      /* a row was sent, or computed */

    flow_excluded_t          excluded[FLOW_EXCLUDED_MAX];
    size_t                   nexcluded;
    unsigned                 failovers;
    uint64_t                 answers;
    shard_reason_t           cause;         /* of the last loss */
    const char              *reason;        /* for on_lost() */
    char                     text[FLOW_TEXT_BYTES];
    flow_failure_t           failure;

    unsigned                 is_kept:1;     /* has a history */
    unsigned                 is_waiting:1;  /* for a turn */
    unsigned                 has_place:1;   /* of those that are built */
    unsigned                 is_built:1;    /* was, once */
    unsigned                 is_stalled:1;  /* the last loss */
    unsigned                 has_token:1;
    unsigned                 is_lost:1;
    unsigned                 is_closed:1;
    unsigned                 tell_rewind:1;
    unsigned                 tell_lost:1;
};

struct flows_s {
    const flow_world_t  *world;
    fleet_t             *fleet;
    void                *clock;
    const log_t         *log;
    flows_options_t      options;
    void               (*free_clock)(void *clock);      /* or NULL */

    flow_t              *first;             /* the oldest */
    flow_t              *last;
    flow_t              *queue;             /* waiting, in their order */
    flow_shards_t        shards;
    float               *scratch;           /* rows of one step */
    uint64_t             history_bytes;
    size_t               building;          /* flows that have a place */
    uint64_t             round;             /* of turn.c */
    uint64_t             turned_ns;         /* a turn came then, or was used */
    uint64_t             wake_ns;           /* 0: not to be woken */
    unsigned             depth;             /* calls under way */
    int                  is_turn_due;
    int                  has_closed;        /* flows, to be freed */

    /* counters, see stats.h */
    size_t               nflows;
    uint64_t             tokens;
    histogram_t          construct;     /* in us, as the next */
    histogram_t          first_token;
    uint64_t             failovers[SHARD_REASONS_COUNT];
    uint64_t             stalls;
    uint64_t             replays;
    uint64_t             replayed_rows;
    uint64_t             rewinds;
    uint64_t             evictions;
    uint64_t             rows;              /* that shards have computed */
    flow_audit_stats_t   audit_stats;
    uint64_t             audit_spent;       /* of the share of rows */
    size_t               audit_turn;        /* which hop is next */
    audit_t             *audits;
    size_t               naudits;
    char                 audit_alert[FLOW_ALERT_BYTES];     /* the last */
    uint64_t             rate_ns;
    uint64_t             rate_tokens;
    double               tokens_per_s;
};


static inline uint64_t
flows_now(const flows_t *flows)
{
    return flows->world->now_ns(flows->clock);
}


/* Until a session is Opened, once a shard has loaded. */
static inline uint64_t
hop_opened_ns(const hop_t *hop)
{
    return (hop->at.is_loaded ? hop->flow->flows->options.started_ms
                              : FLOW_LOADED_MS) * 1000000ULL;
}


/* Around whatever comes from outside; behind the outermost one turns are given
   on, and what was closed is freed. */
void flows_enter(flows_t *flows);
void flows_leave(flows_t *flows);

/* flows_tick() is to be called at this time. */
void flows_due(flows_t *flows, uint64_t at_ns);

/* After an event: finds a way if a hop is lost, and sends. */
void flow_go_on(flow_t *flow);

/* Finds the way anew, before a lost hop is replaced.  0, or -1: there is none,
   and the flow is lost. */
int flow_find(flow_t *flow);

/* Gives out results: not from within calls of those who get them. */
void flow_answer(flow_t *flow);

/* The end, as the reason says; sessions and rows are gone. */
void flow_lose(flow_t *flow, const char *reason, const char *text);

/* NULL: the logits at this position are not asked for. */
flow_asked_t *flow_asked(const flow_t *flow, uint32_t position);


/* NULL: no memory.  at NULL: a place over all layers, without a session. */
hop_t *hop_create(flow_t *flow, const fleet_hop_t *at);
void hop_destroy(hop_t *hop);

/* 0, or -1: no memory. */
int hop_open(hop_t *hop);

/* As much as it may have now. */
void hop_feed(hop_t *hop);

/* Its session is over; is_stall: by a deadline. */
void hop_lose(hop_t *hop, shard_reason_t reason, int is_stall,
    const char *text);


/* The text of flow_failure(): of a shard that was lost, and why nobody goes
   on. */
void failure_by_shard(flow_t *flow, const hop_t *hop, shard_reason_t reason);
void failure_by_path(flow_t *flow, fleet_rc_t rc);


/* The flow's sessions were just asked for: those that are due. */
void audits_begin(flow_t *flow);

/* What the hop sent, and what came of its oldest step without a result; the
   audit may end behind it. */
void audit_sent(audit_t *audit, uint32_t position, uint32_t rows,
    int is_asked, const float *values);
void audit_answered(audit_t *audit, uint32_t rows, int is_logits,
    const float *values);

/* The hop's session ends. */
void audit_leave(hop_t *hop);

/* Ends those that wait in vain; returns when to look again, or 0. */
uint64_t audits_tick(flows_t *flows, uint64_t now);

/* While there are too many rows; and all of them. */
void audits_drop(flows_t *flows);
void audits_done(flows_t *flows);


/* When what the hop waits for is late; 0: it waits for nothing. */
uint64_t tick_deadline(const hop_t *hop);


/* Fills in from, to and path.  FLEET_FOUND, or why there is no way. */
fleet_rc_t plan_find(flow_t *flow, const hop_t *lost, plan_with_t with);

/* 1: without this hop's shard the flow would find a way, and may take it. */
int plan_has_detour(const hop_t *hop, plan_with_t with);

/* Replaces the hops. */
void plan_build(flow_t *flow);

/* Rows were computed by the hops of the plan: they will be again. */
int plan_is_replay(const flow_t *flow);


/* Queues for the turns of the plan; what the flow has it gives back. */
void turn_ask(flow_t *flow);

/* All sessions of what was built are open: the next one may build. */
void turn_built(flow_t *flow);

/* The hop has no replay any more. */
void turn_end(hop_t *hop);

/* Turns and place, whatever it has. */
void turn_give_back(flow_t *flow);
void turn_end_place(flow_t *flow);

/* Out of the queue, without a turn and a place. */
void turn_leave(flow_t *flow);

/* Whoever is next, builds. */
void turn_round(flows_t *flows);


/* Rows were added: the oldest flows lose theirs while there are too many. */
void history_bound(flows_t *flows);

#endif /* FLOW_INNER_H */
