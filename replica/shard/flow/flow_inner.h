
/*
 * What the files of this folder share:
 *
 *   flow.c     flows, steps and their answers
 *   hop.c      one shard's session: sends steps, and takes its results
 *   plan.c     which hops replace those that were lost
 *   failure.c  what a client is told when shards fail
 *   audit.c    sessions that another shard computes, too, to compare
 *   turn.c     which flow may build or replay now
 *   history.c  the budget of histories
 *   tick.c     deadlines, and callbacks that must not come from within calls
 */

#ifndef FLOW_INNER_H
#define FLOW_INNER_H

#include "replica/shard/flow/flow.h"
#include "replica/shard/flow/rows.h"
#include "replica/shard/flow/shards.h"


/* Limit until a session is Opened by a shard that loads first: a working shard
   has refused before that by its own limit. */
#define FLOW_LOADED_MS    (SHARD_LOAD_MAX_MS + 30000)

/* A deadline that has passed is checked again after this time. */
#define FLOW_AGAIN_MS     20

/* A hop that is late and still waited for is checked at this interval. */
#define FLOW_DETOUR_MS    100

/* A check that is itself late by this much proves nothing: this process stood
   still. */
#define FLOW_STOOD_MS     1000

/*
 * A flow does not ask a shard again for this time after the shard refused it as
 * busy, for example without a free place.  A shard that is loading is asked if
 * no other path computes all layers.
 */
#define FLOW_BUSY_MS      5000

/*
 * Limit for flows that wait for a turn: within it some flow gets a turn, or a
 * replay has its next result.  Sessions that are not opened and steps without a
 * result are given up earlier.
 */
#define FLOW_TURN_MS      (FLOW_LOADED_MS + 30000)

/* Audits that run at a time, each with a session. */
#define AUDITS_MAX        16

/*
 * A turn passes to the next flow when its replay has had no row in transit for
 * this time; a place among SHARD_BUILDS_MAX does when a shard takes this long
 * to open.
 */
#define FLOW_HELD_MS      1000

typedef struct {
    uint32_t  position;
    uint32_t  rows;
    uint64_t  sent_ns;
    uint64_t  started_ns;       /* 0: not yet */
} hop_step_t;

typedef struct audit_s  audit_t;

typedef enum {
    HOP_LOST = 0,               /* no session, or none yet */
    HOP_OPENING,
    HOP_OPEN
} hop_state_t;

typedef struct {
    flow_t          *flow;
    size_t           index;     /* in the flow's hops */
    fleet_hop_t      at;
    flow_shard_t    *shard;     /* NULL: no session yet */
    link_session_t  *session;
    hop_state_t      state;
    uint32_t         rows_max;  /* of a step */

    rows_t           in;
    uint32_t         next;      /* position of the next row to be sent */
    uint32_t         done;      /* rows below it have their result */
    uint32_t         replay_to; /* rows below it were computed before */
    uint64_t         built_ns;

    hop_step_t       steps[SHARD_STEPS_MAX];    /* outstanding, oldest first */
    size_t           nsteps;
    uint64_t         since_ns;  /* since when it waits for the next thing */
    uint64_t         again_ns;  /* it is late: when to check once more; or 0 */
    uint64_t         built_answers;     /* the flow's answers when it was
                                           built */
    audit_t         *audit;     /* of its session; NULL: none */
} hop_t;

typedef struct {
    uint64_t  key;              /* of a shard */
    uint64_t  until_ns;
    int       is_last;          /* it was late, or loads: asked if no other path
                                   computes all layers */
} flow_excluded_t;

/* Which shards a plan may use in addition to the usual ones. */
typedef enum {
    PLAN_SURE = 0,
    PLAN_LATE,                  /* a shard that was late, also for this flow,
                                   or loads */
    PLAN_FAILED,                /* one that failed other flows, too, instead of
                                   one that was late and is doubted */
    PLAN_SUSPECT,               /* as PLAN_LATE, and one whose agent is
                                   SUSPECT */
    PLAN_ANY                    /* all of them */
} plan_with_t;

typedef struct {
    uint32_t  position;
    uint32_t  rows;
    int       is_asked;         /* the logits of its last row are wanted */
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
    uint64_t                 since_ns;      /* since when it waits, or has its
                                               place */
    uint64_t                 moved_ns;      /* when a row was last sent or
                                               computed */

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
    unsigned                 has_place:1;   /* it is one of the flows that are
                                               being built */
    unsigned                 is_built:1;    /* it has been built once */
    unsigned                 is_stalled:1;  /* the last loss was a deadline's */
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
    uint64_t             turned_ns;         /* when a turn was last given or
                                               used */
    uint64_t             wake_ns;           /* 0: not to be woken */
    unsigned             depth;             /* nested flows_enter() */
    int                  is_turn_due;
    int                  has_closed;        /* closed flows have to be freed */

    /* counters, see stats.h */
    size_t               nflows;
    uint64_t             tokens;
    histogram_t          construct;     /* in us, like the next one */
    histogram_t          first_token;
    uint64_t             failovers[SHARD_REASONS_COUNT];
    uint64_t             stalls;
    uint64_t             replays;
    uint64_t             replayed_rows;
    uint64_t             rewinds;
    uint64_t             evictions;
    uint64_t             rows;              /* that shards have computed */
    flow_audit_stats_t   audit_stats;
    uint64_t             audit_spent;       /* rows of the share that were
                                               used */
    size_t               audit_turn;        /* the hop that is audited next */
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


/* Limit until a session is Opened, for a loaded shard or for one that loads
   first. */
static inline uint64_t
hop_opened_ns(const hop_t *hop)
{
    return (hop->at.is_loaded ? hop->flow->flows->options.started_ms
                              : FLOW_LOADED_MS) * 1000000ULL;
}


/* Called around each event from outside.  The outermost flows_leave() gives
   turns to the next flows, and frees closed ones. */
void flows_enter(flows_t *flows);
void flows_leave(flows_t *flows);

/* flows_tick() is to be called at this time. */
void flows_due(flows_t *flows, uint64_t at_ns);

/* To be called after an event: finds a new path if a hop is lost, and sends. */
void flow_go_on(flow_t *flow);

/* Finds the path again, before a lost hop is replaced.  0, or -1: there is
   none, and the flow is lost. */
int flow_find(flow_t *flow);

/* Calls on_result() for results; not to be called from within the caller's own
   calls. */
void flow_answer(flow_t *flow);

/* The flow is lost for this reason: ends its sessions, and frees its rows. */
void flow_lose(flow_t *flow, const char *reason, const char *text);

/* The entry of the logits at this position; NULL: they are not asked for. */
flow_asked_t *flow_asked(const flow_t *flow, uint32_t position);


/* at: the shard and its layers; NULL: all layers, without a session yet.  NULL:
   out of memory. */
hop_t *hop_create(flow_t *flow, const fleet_hop_t *at);
void hop_destroy(hop_t *hop);

/* Opens a session for the hop.  0, or -1: out of memory. */
int hop_open(hop_t *hop);

/* Sends as many rows as the hop may have now. */
void hop_feed(hop_t *hop);

/* The hop's session is over; is_stall: by a deadline. */
void hop_lose(hop_t *hop, shard_reason_t reason, int is_stall,
    const char *text);


/* Write the text of flow_failure(): how a shard failed, and why no other shard
   continues. */
void failure_by_shard(flow_t *flow, const hop_t *hop, shard_reason_t reason);
void failure_by_path(flow_t *flow, fleet_rc_t rc);


/* Begins the audits that are due; the flow's sessions have just been
   requested. */
void audits_begin(flow_t *flow);

/* What the hop sent, and the result of its oldest step; the audit may end
   afterwards. */
void audit_sent(audit_t *audit, uint32_t position, uint32_t rows,
    int is_asked, const float *values);
void audit_answered(audit_t *audit, uint32_t rows, int is_logits,
    const float *values);

/* The hop's session ends. */
void audit_leave(hop_t *hop);

/* Ends audits that have waited too long; returns when to check again, or 0. */
uint64_t audits_tick(flows_t *flows, uint64_t now);

/* Drop audits while they keep too many rows; and all of them. */
void audits_drop(flows_t *flows);
void audits_done(flows_t *flows);


/* When the event that the hop waits for will be late; 0: it waits for
   nothing. */
uint64_t tick_deadline(const hop_t *hop);


/* Sets from, to and path.  FLEET_FOUND, or why there is no path. */
fleet_rc_t plan_find(flow_t *flow, const hop_t *lost, plan_with_t with);

/* 1: the flow has another path without this hop's shard, and may take it. */
int plan_has_detour(const hop_t *hop, plan_with_t with);

/* Replaces the hops by the path. */
void plan_build(flow_t *flow);

/* Whether rows were computed before by the hops that the plan replaces. */
int plan_is_replay(const flow_t *flow);


/* Queues the flow for the turns of the plan; it gives back those that it
   has. */
void turn_ask(flow_t *flow);

/* All sessions that the flow has built are open: the next flow may build. */
void turn_built(flow_t *flow);

/* The hop's replay has ended: gives its turn back. */
void turn_end(hop_t *hop);

/* Gives back the flow's turns and its place, if it has any. */
void turn_give_back(flow_t *flow);
void turn_end_place(flow_t *flow);

/* Removes the flow from the queue, and gives back its turns and its place. */
void turn_leave(flow_t *flow);

/* Lets the next flows build, as far as turns and places are free. */
void turn_round(flows_t *flows);


/* To be called when rows were added: the oldest flows lose their histories
   while there are too many rows. */
void history_bound(flows_t *flows);

#endif /* FLOW_INNER_H */
