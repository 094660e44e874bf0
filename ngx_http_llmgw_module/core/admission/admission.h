
/*
 * Admission: who gets a replica now, who waits, who is refused, and who is
 * next when room is made.  One machine over memory that all workers share.
 *
 *                        llmgw_admission_claim()
 *                                 |
 *          +-------------+--------+-------------+----------------+
 *          v             v                      v                v
 *       LEASED        WAITS  in the queue    STALE            FULL, OPEN,
 *          |             |                   attach anew,     EXCLUDED, NONE
 *          |             | its turn:         claim again      refused
 *          |             | claim again
 *   llmgw_admission_end()
 *          |
 *          +--> wake: the head of the queue has its turn
 *
 * A claim picks and reserves in one step, so capacity cannot be oversold
 * between two workers, and nobody slips in between a full pool and the queue
 * before it.  Nobody overtakes: while somebody waits who is not passed over,
 * a newcomer waits as well.
 *
 * Only the head of the queue is granted, and claims for itself, with its own
 * worker's view (docs/adr/0003).  A grant is a hint where to look: `wake` in
 * an answer names the process in which the head waits.  When a lease is taken
 * from the queue, or ended, the next head is granted in the same step.
 *
 * A claim that waits drops its exclusions: by the time it is granted, those
 * replicas may be usable again.  With its last try it keeps those that failed
 * it, as long as another one is merely full; where one of them has room it
 * steps aside for requests that can use it (docs/adr/0006).  So does a stream
 * with tokens out whose resume group is full while others have room.
 *
 * When none of a pool's replicas is left but those that a request has tried,
 * it starts over once, if one of them counted as a failed try; where one of
 * them had said that it was full, it goes to the queue instead.
 *
 * The caller holds the lock of the shared memory around each call, sends the
 * wake-ups and writes the log after it.  now_ms is monotonic.
 */

#ifndef LLMGW_ADMISSION_H
#define LLMGW_ADMISSION_H

#include "core/admission/shared.h"
#include "core/policy/pick.h"


/* A process among those that share the memory. */
typedef struct {
    llmgw_admission_t  *shared;
    uint32_t            row;        /* LLMGW_NO_ROW: counts nothing, as nobody
                                       could take it back, and never waits */
    uint32_t            process;    /* how it is woken, for other processes */
} llmgw_admission_self_t;

/* The pool as this process sees it now. */
typedef struct {
    llmgw_pick_pool_t     pick;
    const llmgw_place_t  *places;       /* of each peer */
    uint32_t              queue_size;   /* 0: nobody waits */
    uint32_t              hedge_budget_permille;
} llmgw_admission_view_t;

/* A request that wants a replica.  New: zeroed, with entry set to NONE. */
typedef struct {
    uint64_t         hash;              /* of its key */
    uint64_t         ticket;            /* 0: it has not asked yet */
    uint64_t         joined_ms;         /* the queue */
    uint64_t         resume_group;      /* where it resumes */
    const uint32_t  *excluded;          /* peers, of the caller's; only during
                                           a call */
    size_t           nexcluded;
    uint32_t         entry;             /* in the queue, or LLMGW_QUEUE_NONE */
    unsigned         was_granted:1;     /* left the queue before */
    unsigned         is_urgent:1;       /* tokens are out */
    unsigned         is_last:1;         /* its last try */
    unsigned         no_wait:1;         /* leased now, or never */
    unsigned         resumes:1;         /* in that group alone */
    unsigned         spares_unproven:1; /* see llmgw_pick_key_t */
    unsigned         to_queue:1;        /* at once, whatever room there is */
    unsigned         saw_full:1;        /* of those excluded, some said so */
    unsigned         may_restart:1;     /* one of those excluded failed it,
                                           which counted */
} llmgw_claim_t;

/* A place at a replica that is held, from the pick to llmgw_admission_end(). */
typedef struct {
    llmgw_place_t           place;
    llmgw_breaker_ticket_t  ticket;
    uint8_t                 is_held;
    uint8_t                 is_judged;
} llmgw_lease_t;

typedef enum {
    LLMGW_ADMISSION_LEASED = 0,
    LLMGW_ADMISSION_WAITS,
    LLMGW_ADMISSION_STALE,      /* peer's slot went to another replica */
    LLMGW_ADMISSION_FULL,       /* and so is the queue */
    LLMGW_ADMISSION_ASIDE,      /* full but for those excluded */
    LLMGW_ADMISSION_OPEN,       /* all circuits are */
    LLMGW_ADMISSION_EXCLUDED,   /* each has been tried */
    LLMGW_ADMISSION_NONE        /* there is nobody */
} llmgw_admission_rc_t;

/* Which exclusions of a claim are dropped. */
typedef enum {
    LLMGW_FORGET_NOTHING = 0,
    LLMGW_FORGET_ALL,
    LLMGW_FORGET_BUT_FAILED
} llmgw_forget_t;

/* A process in which the head of the queue waits. */
typedef struct {
    uint32_t  row;              /* LLMGW_NO_ROW: nobody is to be woken */
    uint32_t  process;
    int       is_new;           /* 0: it was told before */
} llmgw_wake_t;

#define LLMGW_WAKE_NOBODY  ((llmgw_wake_t) { LLMGW_NO_ROW, 0, 0 })

typedef struct {
    llmgw_admission_rc_t    rc;
    llmgw_picked_t          picked;     /* with LEASED and STALE */
    llmgw_forget_t          forget;
    llmgw_wake_t            wake;
    int                     has_joined;     /* the queue, by this call */
    int                     has_left;       /* the queue, by this call */
    llmgw_breaker_change_t  change;     /* of the peer's circuit */
} llmgw_admission_answer_t;

/* An end of a lease, or a proof: what became of the circuit, who is next. */
typedef struct {
    llmgw_breaker_change_t  change;
    llmgw_breaker_counts_t  counts;     /* where it changed */
    llmgw_wake_t            wake;
} llmgw_admission_end_t;


/*
 * A lease now, a place in the queue, or the reason why neither.  Asked again
 * at each turn of a claim that waits; one that waits and is not the head's
 * keeps waiting.  EXCLUDED and NONE leave a claim in the queue where it was.
 */
void llmgw_admission_claim(const llmgw_admission_self_t *self,
    const llmgw_admission_view_t *view, llmgw_claim_t *claim,
    llmgw_lease_t *lease, uint64_t now_ms, uint64_t random,
    llmgw_admission_answer_t *answer);

/*
 * A lease at a second replica beside the first, for a hedge: LEASED, STALE, or
 * another code that says no.  claim->excluded has the first one, too.  It
 * never waits, and gets none while others wait or the pool is saturated.
 * is_budgeted: the hedge is paid from the pool's budget.
 */
void llmgw_admission_second(const llmgw_admission_self_t *self,
    const llmgw_admission_view_t *view, const llmgw_claim_t *claim,
    int is_budgeted, llmgw_lease_t *lease, uint64_t now_ms, uint64_t random,
    llmgw_admission_answer_t *answer);

/* The claim waits no more; also for one that waits nowhere. */
void llmgw_admission_leave(const llmgw_admission_self_t *self,
    llmgw_claim_t *claim, uint64_t now_ms, llmgw_wake_t *wake);

/*
 * The replica has shown what it can, by its first token: a probe need not last
 * its whole stream.  Nothing happens but for a probe.
 */
void llmgw_admission_prove(const llmgw_admission_self_t *self,
    const llmgw_breaker_conf_t *conf, llmgw_lease_t *lease, uint64_t now_ms,
    llmgw_admission_end_t *end);

/* Gives the place back.  A lease that is not held ends without a trace. */
void llmgw_admission_end(const llmgw_admission_self_t *self,
    const llmgw_breaker_conf_t *conf, llmgw_lease_t *lease,
    llmgw_verdict_t verdict, uint64_t now_ms, llmgw_admission_end_t *end);

/* There may be room: grants the head, and tells where it waits. */
void llmgw_admission_wake(const llmgw_admission_self_t *self, uint64_t now_ms,
    llmgw_wake_t *wake);

/*
 * Whose turn it is in this process: the entry that claim->entry names, with
 * its ticket; LLMGW_QUEUE_NONE: nobody's here, *wake tells where.
 */
uint32_t llmgw_admission_turn(const llmgw_admission_self_t *self,
    uint64_t now_ms, uint64_t *ticket, llmgw_wake_t *wake);

/* An entry of this process that none of its claims has. */
void llmgw_admission_drop(const llmgw_admission_self_t *self, uint32_t entry,
    uint64_t ticket);

/*
 * This process is here again, or still: grants that grew old while it stood
 * still are taken back, and all who stepped aside look again.
 */
void llmgw_admission_look(const llmgw_admission_self_t *self,
    uint64_t now_ms);

#endif /* LLMGW_ADMISSION_H */
