
/*
 * One member as this agent knows it, and the rules by which an update changes
 * it.
 *
 * Updates about a member are ordered by (epoch, incarnation).  The member's own
 * agent alone raises them: the epoch at each start, the incarnation at each
 * change of its facts and to refute a false suspicion.  An older update is
 * ignored, whatever it says.  At the same place in that order the facts are
 * the same, and the graver liveness wins:
 *
 *     ALIVE < SUSPECT < DEAD < LEFT          (LEFT is final for its epoch)
 *
 *              no answer by any path, or an update
 *      +-------+ ------------------------------> +---------+
 *      | ALIVE |                                 | SUSPECT |
 *      +-------+ <------------------------------ +---------+
 *        |  ^       higher incarnation: refuted       | timeout, or an update
 *        |  |                                         v
 *        |  |       higher incarnation             +------+
 *        |  +------------------------------------- | DEAD |--+
 *        |                                         +------+  |
 *        |  its own update, at the end     +------+            | 10 minutes
 *        +-----------------------------> | LEFT |------------+--> forgotten
 *                                        +------+
 *                  (DEAD, LEFT -> ALIVE also at a higher epoch: a restart)
 *
 * The service (READY, DOWN, ...) is one of the facts.  It never changes the
 * liveness, and the liveness never changes it.
 *
 * The load changes with every request and is no fact: it has an order of its
 * own, (epoch, load_seq).
 *
 * Some facts were added later (MemberMore of proto/gossip.proto), and an agent
 * that does not know them passes a record on without them.  From such a record
 * the facts that it has are taken.  Facts that it lacks stay as known, and are
 * completed by any other record of the same (epoch, incarnation) that has them.
 * Until then we report to the member that we have not seen its record, so it
 * sends all of it.  Only if the member's own record lacks these facts, there
 * are none: then its agent is an old one.  MemberMore grew in turn, by the
 * standby group and by shards; a record that was passed on without such a part
 * lacks only this part.  Which record is newer, which member is dead, and
 * whether two tables are equal is judged without these facts.
 */

#ifndef MEMBER_H
#define MEMBER_H

#include <stddef.h>
#include <stdint.h>

#include "proto/members/members.h"
#include "swim/table/broadcast_link.h"


/*
 * A greater jump of the incarnation is refused: no member changes 2^20 times
 * between two updates that reach us.  Without this, a forged incarnation near
 * 2^64 could never be superseded.
 */
#define MEMBER_MAX_INCARNATION_JUMP  (1ULL << 20)


/*
 * The first confirmer, and three independent ones that make a suspicion sure.
 */
#define MEMBER_MAX_CONFIRMERS  4


/* Facts that only agents use: they are not in the segment. */
typedef struct {
    char  update[LLMGW_MEMBERS_NAME_BYTES];     /* the rolling update that it
                                                   drives; "": none */
    int   can_restart;      /* its replica is its agent's child */
    int   refuses_new;      /* its replica reports that it drains */
    int   orchestrates;     /* its replica uses shards; of MemberMore */
} member_traits_t;

/*
 * How much of MemberMore came with an update: this edition and all before it.
 */
typedef enum {
    MEMBER_MORE_NONE = 0,
    MEMBER_MORE_FIRST,          /* without the standby group */
    MEMBER_MORE_GROUP,          /* with the group, without shards */
    MEMBER_MORE_ALL
} member_more_t;

/* The content of one update of a packet. */
typedef struct {
    llmgw_member_t       facts;
    member_traits_t      traits;
    uint32_t             active_requests;
    llmgw_engine_load_t  engine;
    uint64_t             load_seq;      /* 0: the load is not known */
    uint32_t             age_s;         /* if DEAD or LEFT */
    uint32_t             nconfirmers;   /* if SUSPECT: a member_hash() each */
    uint32_t             confirmers[MEMBER_MAX_CONFIRMERS];
    member_more_t        more;
    uint64_t             refused_epoch; /* epoch of its group that is too far
                                           ahead of our clock; 0: none */
    const char          *models;        /* the list of facts.models, within the
                                           packet */
    size_t               models_bytes;
} member_update_t;

/*
 * How the member is reached from here.  This is shown to people; nothing is
 * decided by it.
 */
typedef struct {
    uint32_t  pings_lost;       /* last pings without an answer by datagram */
    uint64_t  heard_us;         /* when its last ping came by datagram; 0:
                                   none */
    int64_t   clock_ahead_us;   /* its wall clock compared with ours */
    int       has_clock;
} member_path_t;

/* The drain in a member's earlier run, which it may not know of. */
typedef struct {
    uint64_t  until_us;     /* how long to send it; 0: it was not drained */
    uint64_t  epoch;
    uint64_t  incarnation;
    char      owner[LLMGW_MEMBERS_OWNER_BYTES];
} member_past_t;

/* For this long, an agent that starts takes such records (merge.c). */
#define MEMBER_PAST_US  3000000ULL

typedef struct {
    llmgw_member_t       facts;
    member_traits_t      traits;
    member_past_t        past;
    member_path_t        path;
    char                *models;    /* the list of facts.models */
    size_t               models_bytes;
    llmgw_member_load_t  load;      /* reported_ms: when its own figures came */
    uint64_t             load_seq;
    uint64_t             since_us;  /* when this liveness began */
    uint64_t             present_until_us;  /* when it was last ALIVE or SUSPECT
                                               here; 0: never, UINT64_MAX: it is
                                               now */
    uint64_t             suspect_from_us;
    uint64_t             suspect_until_us;
    uint64_t             table_sent_us;     /* when its JOIN was last
                                               answered */
    uint32_t             confirmers[MEMBER_MAX_CONFIRMERS];
    uint32_t             nconfirmers;
    uint32_t             srtt_us;           /* 0: not measured */
    uint32_t             rttvar_us;
    uint32_t             seen;              /* member_seen() that it has of
                                               us */
    broadcast_link_t     broadcast;
    unsigned             is_scheduled:1;
    unsigned             is_confirm_due:1;  /* to be pinged before the schedule
                                               does */
    unsigned             is_base:1;         /* for swim/isolation.c */
    unsigned             lacks_traits:1;    /* its facts are from the segment */
    unsigned             lacks_age:1;       /* likewise; since_us is a guess */
    unsigned             lacks_more:2;      /* number of editions of MemberMore
                                               that it lacks */
} member_t;

/* What member_merge() changed. */
#define MEMBER_LIVENESS  0x1
#define MEMBER_FACTS     0x2
#define MEMBER_LOAD      0x4        /* the figure, or its freshness */
#define MEMBER_ADDED     0x8        /* set by the table's owner */
#define MEMBER_REMOVED   0x10
#define MEMBER_CONFIRMED 0x20       /* one confirmer more; not reported */
#define MEMBER_REFUTED   0x40       /* the own record refuted; not reported */
#define MEMBER_TRAITS    0x80       /* completed a record of the segment */
#define MEMBER_MORE      0x100      /* completed what came without MemberMore */


/* Fills a record from the first update about it. */
void member_init(member_t *member, const member_update_t *update,
    uint64_t now_us);
void member_done(member_t *member);

/*
 * Replaces the list by a copy, and its hash in the facts; bytes 0: there is
 * none.  -1: no memory; then there is no list.
 */
int member_set_models(member_t *member, const char *models, size_t bytes);

/* Whether the update is newer than what is known, in the order above. */
int member_is_newer(const llmgw_member_t *known, const llmgw_member_t *update);

/* Whether both are at the same place in that order. */
int member_is_same(const llmgw_member_t *known, const llmgw_member_t *update);

int member_is_plausible(const llmgw_member_t *known,
    const llmgw_member_t *update);

/*
 * Applies the update.  is_first_hand: the member itself sent it.  Returns what
 * changed; 0 for a stale update.
 */
unsigned member_merge(member_t *member, const member_update_t *update,
    int is_first_hand, uint64_t now_us);

/* Applies a load that the member itself sent.  MEMBER_LOAD or 0. */
unsigned member_merge_load(member_t *member, uint32_t active_requests,
    const llmgw_engine_load_t *engine, uint64_t load_seq, uint64_t now_us);

/* Changes the liveness by this agent's own judgement. */
void member_set_liveness(member_t *member, llmgw_liveness_t liveness,
    uint64_t now_us);

/* 1: ALIVE or SUSPECT. */
int member_is_present(const member_t *member);
int member_liveness_is_present(unsigned liveness);

/*
 * The epoch of the member's group cannot be right: its group state becomes
 * INIT.
 */
void member_refuse_epoch(llmgw_member_t *facts);

/* Seconds since the member became DEAD or LEFT, else 0. */
uint32_t member_age_s(const member_t *member, uint64_t now_us);

/* A digest of (id, epoch, incarnation, liveness). */
uint64_t member_digest(const member_t *member);

/*
 * Fills a record as it was at the end of the member's last run.  0: it was not
 * drained then, or that is long ago.
 */
int member_recall(const member_t *member, member_t *past, uint64_t now_us);

/* The hash of an id, for confirmers. */
uint32_t member_hash(const char *id);

/*
 * A hash of (epoch, incarnation), by which a peer reports which facts it has.
 * Never 0.
 */
uint32_t member_seen(const llmgw_member_t *facts);

/* 1: an update at the same place lacks nothing that we know of the member. */
int member_says_as_much(const member_t *member, const member_update_t *update);

/*
 * member_seen() of the record that we have of a member; 0: we lack a part of
 * it.
 */
uint32_t member_has(const member_t *member);

/*
 * Adds a confirmer of a SUSPECT.  1: it is new; 0: it is known, or there are
 * enough.
 */
int member_confirm(member_t *member, uint32_t confirmer);

/* A ping came back: measures the round trip (RFC 6298, section 2). */
void member_measure_rtt(member_t *member, uint64_t rtt_us);

#endif /* MEMBER_H */
