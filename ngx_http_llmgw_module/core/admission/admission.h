
/*
 * Admission: which request gets a replica now, which waits, which is refused,
 * and which is next when capacity is freed.  One machine over memory that all
 * workers share.
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
 * A claim picks and reserves in one step, so two workers cannot oversell
 * capacity, and no other request gets between finding the pool full and
 * joining the queue.  No request overtakes: while one waits that is not
 * skipped, a newcomer waits as well.
 *
 * Only the head of the queue is granted; it then claims again, with its own
 * worker's view (docs/adr/0003).  A grant is a hint that this is worthwhile:
 * `wake` in an answer names the process in which the head waits.  When a lease
 * is taken from the queue, or ended, the next head is granted in the same
 * step.
 *
 * A claim that waits drops its exclusions: by the time it is granted, those
 * replicas may be usable again.  A claim with one try left keeps one kind:
 * replicas that failed it stay excluded while another replica is just full.
 * When such an excluded replica has capacity, requests behind the claim that
 * can use it go first (docs/adr/0006).  The same holds for a stream with tokens
 * delivered whose resume group is full while other replicas have capacity, and
 * for a request whose model is served only by full ones.
 *
 * With flow control (queue.h) a claim joins the queue first and continues at
 * once if it is the head.  Its head is held while view->saturation reaches its
 * band's ceiling; urgent ones never are.  A claim that is shed for another one
 * gets SHED when it claims again, for which its process is woken.
 *
 * A replica may ask a claim to come later (claim->pushed). If no other replica
 * is left for the claim, not even a full one, it is skipped until the first of
 * those times, and checks once a second before.
 *
 * When none of a pool's replicas is left but those that a request has tried, it
 * starts over once, if one of them counted as a failed try; if one of them has
 * refused it as full, it goes to the queue instead.  If it would be leased one
 * of them at once, its caller pauses first (llmgw_claim_pauses()).  It does not
 * if the claim has waited in the queue already, or may not wait, or if a
 * standby may take over from the replica that failed: such a claim has to be in
 * the queue when that happens.
 *
 * While no replica is there at all (view->is_empty), a claim is held: it waits
 * in the queue as well, view->hold_ms at most, and its size limits how many do.
 * Then all waiting claims are held, not only the head, so each has its own end,
 * hold_end_ms.  A held claim is made again when the view changes and when that
 * time has come; then it is refused, or waits for room as any other.  A refusal
 * may show that a replica drains before the view does: a claim that finds no
 * other replica waits for the view, if claims are held at all.
 *
 * The caller holds the lock of the shared memory around each call, and sends
 * the wake-ups and writes the log after unlocking it.  now_ms is monotonic.
 */

#ifndef LLMGW_ADMISSION_H
#define LLMGW_ADMISSION_H

#include "core/admission/shared.h"
#include "core/policy/pick.h"


/* One of the processes that share the memory. */
typedef struct {
    llmgw_admission_t  *shared;
    uint32_t            row;        /* LLMGW_NO_ROW: its attempts are not
                                       counted, as nothing could take them back
                                       if it died, and its claims never wait */
    uint32_t            process;    /* by which other processes wake it */
} llmgw_admission_self_t;

/* The pool as this process sees it now. */
typedef struct {
    llmgw_pick_pool_t     pick;
    const llmgw_place_t  *places;       /* of each peer */
    uint32_t              queue_size;   /* 0: new claims never wait */
    uint64_t              hold_ms;      /* how long a claim waits while no
                                           replica is there; 0: never */
    int                   is_empty;     /* no peer is usable, and no standby is
                                           waited for */
    double                saturation;   /* of the fleet; 0: holds no claim
                                           back */
    uint32_t              hedge_budget_permille;
} llmgw_admission_view_t;

/* A request that wants a replica.  New: zeroed, with entry set to NONE. */
typedef struct {
    uint64_t         hash;              /* of its key */
    uint64_t         ticket;            /* 0: none taken yet */
    uint64_t         joined_ms;         /* when it joined the queue */
    uint64_t         resume_group;      /* of the stream, with resumes */
    uint64_t         tenant;            /* hash of its name; 0: none */
    uint64_t         deadline_ms;       /* by when its class wants the first
                                           token; 0: not set */
    uint64_t         hold_end_ms;       /* until when it is held; 0: it is not
                                           held */
    int32_t          priority;          /* of its class: classes.h */
    uint32_t         nexcluded;
    const uint32_t  *excluded;          /* peers; the caller's memory, read
                                           during a call only */
    const llmgw_pushed_t     *pushed;   /* caller's memory, too; NULL: none */
    const llmgw_model_set_t  *serving;  /* caller's memory, too; see
                                           llmgw_pick_key_t */
    uint32_t         only;              /* see llmgw_pick_key_t */
    uint32_t         entry;             /* in the queue, or LLMGW_QUEUE_NONE */
    unsigned         was_granted:1;     /* has left the queue before with a
                                           lease */
    unsigned         is_urgent:1;       /* tokens are delivered */
    unsigned         is_last:1;         /* its last try */
    unsigned         no_wait:1;         /* without a lease now it is refused */
    unsigned         resumes:1;         /* only in resume_group */
    unsigned         spares_unproven:1; /* see llmgw_pick_key_t */
    unsigned         to_queue:1;        /* joins the queue, even if a replica is
                                           free */
    unsigned         saw_full:1;        /* an excluded peer refused it as
                                           full */
    unsigned         may_restart:1;     /* an excluded peer failed it, as a
                                           counted try */
    unsigned         has_paused:1;      /* the pause after that is over */
    unsigned         is_held:1;         /* it waits, and no replica is there */
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
    LLMGW_ADMISSION_SHED,       /* another claim waits in its place */
    LLMGW_ADMISSION_STALE,      /* peer's slot went to another replica */
    LLMGW_ADMISSION_FULL,       /* so is the queue, or it may not wait */
    LLMGW_ADMISSION_SKIPPABLE,  /* all full but those that are excluded, or have
                                   pushed the claim back */
    LLMGW_ADMISSION_OPEN,       /* all circuits are open */
    LLMGW_ADMISSION_EXCLUDED,   /* each peer has been tried */
    LLMGW_ADMISSION_NONE        /* no peer is usable */
} llmgw_admission_rc_t;

/* Which exclusions of a claim are dropped. */
typedef enum {
    LLMGW_FORGET_NOTHING = 0,
    LLMGW_FORGET_ALL,
    LLMGW_FORGET_BUT_FAILED
} llmgw_forget_t;

/* A process in which the head of the queue waits. */
typedef struct {
    uint32_t  row;              /* LLMGW_NO_ROW: no worker has to be woken */
    uint32_t  process;
    int       is_new;           /* 0: it was woken before */
} llmgw_wake_t;

#define LLMGW_WAKE_NOBODY  ((llmgw_wake_t) { LLMGW_NO_ROW, 0, 0 })

typedef struct {
    llmgw_admission_rc_t    rc;
    llmgw_picked_t          picked;     /* with LEASED and STALE */
    llmgw_forget_t          forget;
    llmgw_wake_t            wake;
    llmgw_wake_t            shed;       /* a claim that was shed for this one */
    int                     has_joined;     /* this call put it into the
                                               queue */
    int                     has_left;       /* this call took it out */
    llmgw_breaker_change_t  change;     /* of the peer's circuit */
} llmgw_admission_answer_t;

/*
 * The end or proof of a lease: what became of the circuit, and which process to
 * wake.
 */
typedef struct {
    llmgw_breaker_change_t  change;
    llmgw_breaker_counts_t  counts;     /* of the circuit, if it changed */
    llmgw_wake_t            wake;
} llmgw_admission_end_t;


/* The pick's input for a claim; ranks are computed for it (ranked.h). */
llmgw_pick_key_t llmgw_claim_key(const llmgw_claim_t *claim, uint64_t now_ms,
    uint64_t random);

/*
 * Gives a lease, a place in the queue, or the reason why neither.  A claim
 * that waits is made again each time it is granted; where it is not the head
 * of the queue, it keeps waiting.  EXCLUDED and NONE leave a claim in the
 * queue at its place.
 */
void llmgw_admission_claim(const llmgw_admission_self_t *self,
    const llmgw_admission_view_t *view, llmgw_claim_t *claim,
    llmgw_lease_t *lease, uint64_t now_ms, uint64_t random,
    llmgw_admission_answer_t *answer);

/*
 * A lease at a second replica beside the first, for a hedge: LEASED, STALE, or
 * another code: refused. claim->excluded also has the first replica.  The claim
 * never waits, and gets no lease while others wait or the pool is saturated, by
 * its places or by view->saturation. is_budgeted: the hedge is paid from the
 * pool's budget.
 */
void llmgw_admission_second(const llmgw_admission_self_t *self,
    const llmgw_admission_view_t *view, const llmgw_claim_t *claim,
    int is_budgeted, llmgw_lease_t *lease, uint64_t now_ms, uint64_t random,
    llmgw_admission_answer_t *answer);

/*
 * For a refusal rc.  1: it is not final, as the claim may start over after a
 * pause; then set has_paused, and claim again.
 */
static inline int
llmgw_claim_pauses(const llmgw_claim_t *claim, llmgw_admission_rc_t rc)
{
    return claim->may_restart
           && (rc == LLMGW_ADMISSION_EXCLUDED
               || rc == LLMGW_ADMISSION_SKIPPABLE
               || rc == LLMGW_ADMISSION_OPEN);
}

/* The claim no longer waits; also valid for one that does not wait. */
void llmgw_admission_leave(const llmgw_admission_self_t *self,
    llmgw_claim_t *claim, uint64_t now_ms, llmgw_wake_t *wake);

/*
 * The replica has sent its first token: a probe succeeds now, not at the end
 * of its stream, and the replica is not marked full any more (full.h).
 */
void llmgw_admission_prove(const llmgw_admission_self_t *self,
    const llmgw_breaker_conf_t *conf, llmgw_lease_t *lease, uint64_t now_ms,
    llmgw_admission_end_t *end);

/*
 * The replica of that place has refused an attempt as full (full.h).  load: as
 * it reports it; 0: it does not.
 */
void llmgw_admission_full(const llmgw_admission_self_t *self,
    llmgw_place_t place, uint32_t load, uint64_t now_ms);

/* The replica reports this load now. */
void llmgw_admission_reports(const llmgw_admission_self_t *self,
    llmgw_place_t place, uint32_t load);

/* Gives the lease's place back.  Does nothing if the lease is not held. */
void llmgw_admission_end(const llmgw_admission_self_t *self,
    const llmgw_breaker_conf_t *conf, llmgw_lease_t *lease,
    llmgw_verdict_t verdict, uint64_t now_ms, llmgw_admission_end_t *end);

/*
 * The entry and the ticket of the claim that is to claim again in this process:
 * one that was shed, or the head of the queue.  LLMGW_QUEUE_NONE: the head
 * waits in another process, *wake, or the queue is empty.
 */
uint32_t llmgw_admission_turn(const llmgw_admission_self_t *self,
    uint64_t now_ms, uint64_t *ticket, llmgw_wake_t *wake);

/* Drops an entry of this process to which no claim belongs. */
void llmgw_admission_drop(const llmgw_admission_self_t *self, uint32_t entry,
    uint64_t ticket);

/*
 * To be called when this process runs, perhaps after it was frozen: its expired
 * grants are taken back, and its entries are no longer skipped.
 */
void llmgw_admission_look(const llmgw_admission_self_t *self,
    uint64_t now_ms);

#endif /* LLMGW_ADMISSION_H */
