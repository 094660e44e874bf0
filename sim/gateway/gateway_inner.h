
/*
 * A run from the inside: what its files share.
 *
 *   run.c      sets it up, what each event does, the end
 *   front.c    a gateway: its shared memory, its ring, its view of replicas
 *   choice.c   its policy, where that reads the fleet
 *   stream.c   a request: carries out what core/serve/ decides
 *   claim.c    its claims: a place at a replica, or in the queue
 *   excluded.c the replicas that a request avoids
 *   attempt.c  one try at one replica, from its start to its end
 *   link.c     a gateway's connection to a replica, as nginx would have it
 *   news.c     a replica's actual state, and when gateways learn of it
 *   faults.c   crashes, stalls, slow replicas, drains
 *   update.c   a rolling update
 *
 * If memory runs out, g->failed is set and the run ends.
 */

#ifndef GATEWAY_INNER_H
#define GATEWAY_INNER_H

#include "common/rnd.h"
#include "core/admission/admission.h"
#include "core/serve/reach.h"
#include "core/serve/serve.h"
#include "sim/fleet/loop.h"
#include "sim/gateway/gateway.h"
#include "sim/swim/mesh.h"


#define STREAM_NONE       UINT32_MAX
#define STREAM_EXCLUDED   64            /* excluded replicas, as in nginx */
#define STREAM_PUSHED     16            /* replicas that pushed it back; further
                                           ones are not noted */
#define ATTEMPT_NONE      UINT32_MAX
#define LINK_NONE         UINT32_MAX
#define FRONT_TURN_US     50000         /* a queue's head claims so often */

typedef struct gateway_s  gateway_t;
typedef struct choice_s  choice_t;

/* One attempt at one replica.  Attempt i is attempts[i % 2] of stream i / 2. */
typedef struct {
    model_request_t  call;
    llmgw_lease_t    lease;
    uint32_t         replica;
    uint32_t         serial;            /* older events are ignored */
    uint32_t         before;            /* neighbours in its replica's list */
    uint32_t         behind;
    uint32_t         base;              /* the client's tokens at its start */
    uint32_t         link;              /* serial of its connection */
    llmgw_attempt_t  state;             /* with tokens as of the last
                                           attempt_look() */
    int64_t          heard_us;          /* when the last of these tokens left */
    int64_t          first_us;          /* when the first token left, or 0 */
    int64_t          final_us;          /* when the last token leaves, or 0 */
    uint8_t          is_there;          /* it occupies a place at the replica */
    uint8_t          is_held;           /* the replica model has its call */
} attempt_t;

typedef struct {
    llmgw_claim_t    claim;
    llmgw_serve_t    serve;
    attempt_t        attempts[2];
    uint64_t        *hashes;
    uint32_t         nhashes;
    uint32_t         front;
    uint32_t         tokens;            /* tokens that the client has */
    uint32_t         timer;             /* number of the valid timer */
    uint32_t         nexcluded;
    uint32_t         excluded[STREAM_EXCLUDED];
    uint64_t         excluded_keeps;    /* bits: which outlast a wait */
    uint64_t         pushed_ms[STREAM_PUSHED];  /* not asked before this time */
    uint32_t         pushed[STREAM_PUSHED];
    llmgw_pushed_t   told;              /* the claim's view of pushed[] */
    uint32_t         npushed;
    uint32_t         refusals;          /* refusals of full replicas */
    int64_t          first_us;          /* first token's time at the gateway */
    int64_t          last_us;
} stream_t;

/* A gateway's connection to a replica, shared by all calls there. */
typedef struct {
    uint32_t         serial;
    uint32_t         life;              /* number of the accepting process */
    uint8_t          is_ready;          /* 0: the next call connects */
    int64_t          connect_end_us;    /* when the calls that wait for it will
                                           fail; 0: none do */
    int64_t          heard_us;          /* when anything last arrived on it */
    int64_t          unread_us;         /* when the first call went to the dead
                                           machine, which reads none; 0: none
                                           did */
} link_t;

/* A gateway's view of a replica. */
typedef struct {
    uint8_t          service;           /* llmgw_service_t */
    uint8_t          liveness;          /* llmgw_liveness_t */
    uint8_t          is_draining;
    uint8_t          backs_off;         /* its peer's state is backing off */
    uint16_t         life;              /* 16 bits of its process's number */
    uint32_t         heard;             /* `change` of the report it shows */
    llmgw_reach_t    reach;
} front_view_t;

typedef struct {
    llmgw_admission_t       *shared;
    llmgw_admission_self_t   self;
    llmgw_admission_view_t   view;
    llmgw_pick_peer_t       *peers;
    llmgw_place_t           *places;
    llmgw_pick_sums_t        sums;
    front_view_t            *views;     /* of each replica */
    link_t                  *links;     /* one for each replica */
    choice_t                *choice;    /* NULL: the ring chooses */
    uint32_t                *waiting;   /* streams by entry, or STREAM_NONE */
    uint32_t                 nbacking_off;
    uint32_t                 nusable;   /* replicas that may be asked */
    uint32_t                 nheld;     /* streams held because nusable is 0 */
    uint8_t                  has_turn;  /* an EVENT_TURN is due */
    uint8_t                  has_tick;
} front_t;

/* The actual state of a replica. */
typedef struct {
    gateway_t       *gateway;
    model_replica_t *model;
    uint32_t         first;             /* first in the list of attempts that
                                           gateways have there */
    uint32_t         active;            /* number of attempts that it serves */
    uint32_t         life;              /* number of its process, from 0 */

    /*
     * Causes of its state: how many faults of each kind affect it, and the
     * update.
     */
    uint32_t         struck[GATEWAY_FAULT_KINDS];
    uint8_t          update;            /* update_state_t */

    /* Its state, which follows from these causes; see faults.c. */
    uint8_t          is_up;             /* its process runs */
    uint8_t          is_dead;           /* its machine is dead */
    uint8_t          is_draining;
    uint8_t          hangs;
    uint8_t          is_stalled;        /* its agent knows that it hangs */
    uint32_t         hang;              /* counts its hangs */
    double           slowness;
    int64_t          unfit_us;          /* since when it accepts no requests */

    /*
     * What its agent reported last; liveness DEAD: the machine died with the
     * agent
     */
    front_view_t     said;
    uint32_t         change;            /* number of that report */
    int64_t          changed_us;
    uint8_t          deaths;            /* how often its machine died */
} node_truth_t;

/* A replica's step in a rolling update. */
typedef enum {
    UPDATE_NOT = 0,
    UPDATE_DRAINS,
    UPDATE_RESTARTS
} update_state_t;

/*
 * Kinds of a loop_event_t; each with its subject, detail and more, in this
 * order.
 */
typedef enum {
    EVENT_CAME = 0,             /* attempt, serial: is at its replica */
    EVENT_FIRST,                /* attempt, serial: first token is here */
    EVENT_FINAL,                /* attempt, serial: last token is here */
    EVENT_REFUSED,              /* attempt, serial, model_end_t */
    EVENT_BROKEN,               /* attempt, serial, ending and cause */
    EVENT_TIMER,                /* stream, number of the timer */
    EVENT_LINK,                 /* front and replica, serial */
    EVENT_TURN,                 /* front */
    EVENT_TICK,                 /* front */
    EVENT_NEWS,                 /* front and replica, what */
    EVENT_LOADS,
    EVENT_FAULT,                /* number of the fault */
    EVENT_FAULT_END,            /* fault, replica, its life at the fault */
    EVENT_STALLED,              /* replica, its `hang` */
    EVENT_UPDATE,
    EVENT_UPDATE_LATE,          /* replica: its drain takes too long */
    EVENT_UPDATE_RESTARTED      /* replica */
} event_kind_t;

struct gateway_s {
    const fleet_config_t    *fleet;
    const gateway_config_t  *config;
    work_t                  *work;
    fleet_result_t          *result;
    gateway_counts_t        *counts;
    int                      failed;
    char                    *error;
    size_t                   error_bytes;

    loop_t                   loop;
    rnd_t                    rnd;

    stream_t                *streams;
    node_truth_t            *nodes;
    front_t                 *fronts;
    llmgw_ring_t            *ring;
    uint32_t                *reported;  /* by replica: load reported last */
    uint32_t                 next_update;       /* the next replica to update */
    mesh_t                  *mesh;      /* NULL: news take a fixed time */
};

/* Memory that a result needs until it is freed. */
typedef struct {
    model_config_t           model;
    stream_t                *streams;
    node_truth_t            *nodes;
    size_t                   nstreams;
    fleet_extra_t            extras[64];
} gateway_memory_t;


static inline uint64_t
gateway_ms(const gateway_t *g)
{
    return (uint64_t) g->loop.clock_us / 1000 + 1;
}


static inline stream_t *
gateway_stream(gateway_t *g, uint32_t i)
{
    return &g->streams[i];
}


static inline attempt_t *
gateway_attempt(gateway_t *g, uint32_t i)
{
    return &g->streams[i / 2].attempts[i % 2];
}


/* run.c */
void gateway_fail(gateway_t *g, const char *what);
void *gateway_alloc(gateway_t *g, size_t n, size_t size);
void gateway_later(gateway_t *g, int64_t at_us, event_kind_t kind,
    uint32_t subject, uint32_t detail, uint32_t more);
void gateway_node_changed(gateway_t *g, uint32_t replica);

/* front.c */
int front_init_all(gateway_t *g);
void front_done_all(gateway_t *g);
const llmgw_admission_view_t *front_view(gateway_t *g, front_t *front);
void front_wake(gateway_t *g, front_t *front, const llmgw_wake_t *wake);
void front_turn(gateway_t *g, uint32_t i);
void front_tick(gateway_t *g, uint32_t i);
void front_refused(gateway_t *g, front_t *front, uint32_t replica);
void front_answered(gateway_t *g, front_t *front, uint32_t replica);
void front_full(gateway_t *g, front_t *front, uint32_t replica);
void front_news(gateway_t *g, uint32_t i, uint32_t replica,
    const front_view_t *news);

/* choice.c */
int choice_init(gateway_t *g, choice_t **made);
void choice_done(choice_t *choice);
void choice_rank(gateway_t *g, front_t *front, uint32_t stream,
    const llmgw_claim_t *claim, uint64_t random);
void choice_note(front_t *front, uint32_t replica);

/* stream.c */
void stream_arrive(gateway_t *g, uint32_t i);
void stream_turn(gateway_t *g, uint32_t i);
void stream_due(gateway_t *g, uint32_t i);
void stream_begun(gateway_t *g, uint32_t attempt);
void stream_refused(gateway_t *g, uint32_t attempt, model_end_t end);
void stream_ended(gateway_t *g, uint32_t attempt, llmgw_ending_t ending,
    llmgw_cause_t cause);

/*
 * claim.c: claim_make() claims a place; LEASED: at the replica of the claim's
 * outcome.  claim_second() starts a second attempt, if core leases a place for
 * it.
 */
llmgw_admission_rc_t claim_make(gateway_t *g, uint32_t i);
void claim_second(gateway_t *g, uint32_t i);

/* excluded.c: keeps: the exclusion also holds after a wait in the queue. */
void excluded_add(stream_t *s, uint32_t replica, int keeps);
void excluded_push_back(gateway_t *g, stream_t *s, uint32_t replica);
void excluded_forget(stream_t *s, llmgw_forget_t forget);

/* Tells the stream's claim which replicas have pushed the stream back. */
void excluded_look(gateway_t *g, stream_t *s);

/* attempt.c */
extern const model_hooks_t  attempt_hooks;

void attempt_start(gateway_t *g, uint32_t attempt, uint32_t replica);
void attempt_came(gateway_t *g, uint32_t attempt);
void attempt_end(gateway_t *g, uint32_t attempt, llmgw_verdict_t verdict);
void attempt_break(gateway_t *g, uint32_t attempt, llmgw_ending_t ending,
    llmgw_cause_t cause, int64_t at_us);
void attempt_look(gateway_t *g, uint32_t attempt);
void attempt_freeze(gateway_t *g, uint32_t attempt);

/* link.c */

/*
 * Sends a call over the connection.  1: a process accepts it.  0: none does,
 * and an event will end the attempt or try again.
 */
int link_call(gateway_t *g, uint32_t attempt);

/*
 * For all gateways' connections to the replica: its process has ended; its
 * machine has died; its machine is back.
 */
void link_reset_all(gateway_t *g, uint32_t replica);
void link_die_all(gateway_t *g, uint32_t replica);
void link_revive_all(gateway_t *g, uint32_t replica);

/*
 * Takes note that a connection was refused.  1: this attempt is the first to
 * learn of it; 0: the others' report counts, or it was connected.
 */
int link_refused(gateway_t *g, uint32_t attempt);

/* The attempt has received something; the attempt timed out. */
void link_received(gateway_t *g, uint32_t attempt);
void link_timed_out(gateway_t *g, uint32_t attempt);

/*
 * EVENT_LINK: breaks the connection with that serial if it has exceeded TCP's
 * time-out.
 */
void link_due(gateway_t *g, uint32_t front, uint32_t replica, uint32_t serial);

/* news.c */
int news_init(gateway_t *g);
void news_tell(gateway_t *g, uint32_t replica);
void news_come(gateway_t *g, uint32_t front, uint32_t replica, uint32_t what);
void news_loads(gateway_t *g);
int64_t news_next_us(const gateway_t *g);

/* The replica's load in the last report that reached the gateway. */
uint32_t news_load(const gateway_t *g, uint32_t front, uint32_t replica);
void news_run(gateway_t *g);
void news_done(gateway_t *g);

/* faults.c */
void faults_init(gateway_t *g);
void faults_begin(gateway_t *g, uint32_t fault);
void faults_end(gateway_t *g, uint32_t fault, uint32_t replica, uint32_t life);
void faults_stalled(gateway_t *g, uint32_t replica, uint32_t hang);

/* Whether the replica accepts requests, whatever gateways know about it. */
int faults_is_fit(const node_truth_t *node);

/*
 * A reason was added or removed: updates the replica's state from its reasons.
 */
void faults_settle(gateway_t *g, uint32_t replica);

/* update.c */
void update_first(gateway_t *g);
void update_judge(gateway_t *g, uint32_t replica, uint32_t is_late);
void update_restarted(gateway_t *g, uint32_t replica);

#endif /* GATEWAY_INNER_H */
