
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
 * that does not know them passes a record on without them.  Such a record is
 * taken for what it says.  What it lacks stays as it was known, and is
 * completed by any other record of the same (epoch, incarnation) that has it.
 * Until then we tell the member that we have not seen its record, so it sends
 * all of it.  Only the member itself can say that there is no more: then its
 * agent is an old one.  MemberMore grew in turn, by the standby group and by
 * shards, and what was passed on without such a part lacks this part alone.
 * Which record is newer, which member is dead, and whether two tables are equal
 * is judged without these facts.
 */

#ifndef MEMBER_H
#define MEMBER_H

#include <stddef.h>
#include <stdint.h>

#include "proto/members/members.h"
#include "swim/table/broadcast_link.h"


/*
 * A greater jump is refused: no member changes 2^20 times between two updates
 * that reach us.  A forged incarnation near 2^64 could never be superseded.
 */
#define MEMBER_MAX_INCARNATION_JUMP  (1ULL << 20)


/* The first one, and the three independent ones that make it sure. */
#define MEMBER_MAX_CONFIRMERS  4


/* Facts that agents alone care for: they are not in the segment. */
typedef struct {
    char  update[LLMGW_MEMBERS_NAME_BYTES];     /* the rolling update that it
                                                   drives; "": none */
    int   can_restart;      /* its replica is its child */
    int   refuses_new;      /* its replica says that it drains */
    int   orchestrates;     /* its replica uses shards; of MemberMore */
} member_traits_t;

/* How much of MemberMore came with an update: its edition, and all before. */
typedef enum {
    MEMBER_MORE_NONE = 0,
    MEMBER_MORE_FIRST,          /* without the standby group */
    MEMBER_MORE_GROUP,          /* with it, without what is said of shards */
    MEMBER_MORE_ALL
} member_more_t;

/* What one update of a packet says. */
typedef struct {
    llmgw_member_t       facts;
    member_traits_t      traits;
    uint32_t             active_requests;
    llmgw_engine_load_t  engine;
    uint64_t             load_seq;      /* 0: it knows no load */
    uint32_t             age_s;         /* of a DEAD or LEFT */
    uint32_t             nconfirmers;   /* of a SUSPECT: member_hash() each */
    uint32_t             confirmers[MEMBER_MAX_CONFIRMERS];
    member_more_t        more;
    uint64_t             refused_epoch; /* of its group, which is too far ahead
                                           of our clock; 0: none */
    const char          *models;        /* the list that facts.models is of;
                                           the packet's own */
    size_t               models_bytes;
} member_update_t;

/* How its agent is reached from here: for people, nothing is decided by it. */
typedef struct {
    uint32_t  pings_lost;       /* the last ones, that no datagram answered */
    uint64_t  heard_us;         /* its last ping by a datagram; 0: none */
    int64_t   clock_ahead_us;   /* its wall clock before ours */
    int       has_clock;
} member_path_t;

/* Its drain in its earlier run, which it may not know of. */
typedef struct {
    uint64_t  until_us;     /* it is published until then; 0: not drained */
    uint64_t  epoch;
    uint64_t  incarnation;
    char      owner[LLMGW_MEMBERS_OWNER_BYTES];
} member_past_t;

/* An agent that starts takes such records as long (merge.c). */
#define MEMBER_PAST_US  3000000ULL

typedef struct {
    llmgw_member_t       facts;
    member_traits_t      traits;
    member_past_t        past;
    member_path_t        path;
    char                *models;    /* the list that facts.models is of */
    size_t               models_bytes;
    llmgw_member_load_t  load;      /* reported_ms: when its own came */
    uint64_t             load_seq;
    uint64_t             since_us;  /* of this liveness */
    uint64_t             present_until_us;  /* last time that it was ALIVE
                                               or SUSPECT here; 0: never,
                                               UINT64_MAX: it is */
    uint64_t             suspect_from_us;
    uint64_t             suspect_until_us;
    uint64_t             table_sent_us;     /* last answer to its JOIN */
    uint32_t             confirmers[MEMBER_MAX_CONFIRMERS];
    uint32_t             nconfirmers;
    uint32_t             srtt_us;           /* 0: not measured */
    uint32_t             rttvar_us;
    uint32_t             seen;              /* what it has of ourselves */
    broadcast_link_t     broadcast;
    unsigned             is_scheduled:1;
    unsigned             is_confirm_due:1;  /* it is to be pinged soon */
    unsigned             is_base:1;         /* of swim/isolation.c */
    unsigned             lacks_traits:1;    /* its facts are of the segment */
    unsigned             lacks_age:1;       /* the same; since_us is a guess */
    unsigned             lacks_more:2;      /* they came without: so many
                                               editions of it */
} member_t;

/* What member_merge() changed. */
#define MEMBER_LIVENESS  0x1
#define MEMBER_FACTS     0x2
#define MEMBER_LOAD      0x4        /* figure or its freshness */
#define MEMBER_ADDED     0x8        /* set by the table's owner */
#define MEMBER_REMOVED   0x10
#define MEMBER_CONFIRMED 0x20       /* by one more; the owner does not care */
#define MEMBER_REFUTED   0x40       /* the own record, by itself; likewise */
#define MEMBER_TRAITS    0x80       /* what the segment had not; no update */
#define MEMBER_MORE      0x100      /* what had come without it */


/* Fills a record from the first update about it. */
void member_init(member_t *member, const member_update_t *update,
    uint64_t now_us);
void member_done(member_t *member);

/*
 * Replaces the list, which is copied, and its hash in the facts; bytes 0: none.
 * -1: no memory; then there is none.
 */
int member_set_models(member_t *member, const char *models, size_t bytes);

/* Is the update newer than what is known, in the order above? */
int member_is_newer(const llmgw_member_t *known, const llmgw_member_t *update);

/* Are they at the same place of it? */
int member_is_same(const llmgw_member_t *known, const llmgw_member_t *update);

int member_is_plausible(const llmgw_member_t *known,
    const llmgw_member_t *update);

/*
 * Applies the update.  is_first_hand: the member itself sent it.  Returns
 * what changed, 0 for a stale update.
 */
unsigned member_merge(member_t *member, const member_update_t *update,
    int is_first_hand, uint64_t now_us);

/* The load alone, from the member itself; MEMBER_LOAD or 0. */
unsigned member_merge_load(member_t *member, uint32_t active_requests,
    const llmgw_engine_load_t *engine, uint64_t load_seq, uint64_t now_us);

/* A change of liveness by this agent's own judgement. */
void member_set_liveness(member_t *member, llmgw_liveness_t liveness,
    uint64_t now_us);

/* ALIVE or SUSPECT. */
int member_is_present(const member_t *member);
int member_liveness_is_present(unsigned liveness);

/* The epoch of its group is not to be believed: it is taken for INIT. */
void member_refuse_epoch(llmgw_member_t *facts);

/* Seconds since it became DEAD or LEFT, else 0. */
uint32_t member_age_s(const member_t *member, uint64_t now_us);

/* Of (id, epoch, incarnation, liveness). */
uint64_t member_digest(const member_t *member);

/*
 * Fills a record as it was at the end of its last run.  0: it was not drained
 * then, or that is long ago.
 */
int member_recall(const member_t *member, member_t *past, uint64_t now_us);

/* Of an id, for confirmers. */
uint32_t member_hash(const char *id);

/* Of (epoch, incarnation): whether a peer has the present facts.  Never 0. */
uint32_t member_seen(const llmgw_member_t *facts);

/* Does an update of the same place lack nothing that we know of the member? */
int member_says_as_much(const member_t *member, const member_update_t *update);

/* The same as member_seen() of what we have of a member; 0: not all of it. */
uint32_t member_has(const member_t *member);

/* 1: a new confirmer of a SUSPECT; 0: known, or there are enough. */
int member_confirm(member_t *member, uint32_t confirmer);

/* A ping came back (RFC 6298, section 2). */
void member_measure_rtt(member_t *member, uint64_t rtt_us);

#endif /* MEMBER_H */
