
/*
 * Which owners drain the own replica, until when, and what is passed on to
 * the replica.
 *
 *   operator     until an operator undrains it; outlives restarts of the
 *                agent, by the state directory (drain_kept()) or by the
 *                records that other agents have
 *   update:ID    a lease of DRAIN_LEASE_US that the driver of a rolling update
 *                renews by ordering it again; ends by itself without the
 *                driver; the end of the agent ends it, too
 *   shutdown     the agent leaves; ends with its epoch
 *
 * There may be several owners at once, and the drain ends with the last of
 * them.  The record names the first of operator, update, shutdown, which the
 * next run has to know.  So an operator's drain is never ended by an update,
 * and an operator may take over what an update began.
 *
 *   asked for \ is     none        operator     update:A      shutdown
 *   DRAIN operator     begins      no change    added         for next run
 *   DRAIN update:A     begins      added        renewed       ELEAVING
 *   DRAIN update:B     begins      added        EOWNED        ELEAVING
 *   UNDRAIN operator   (a)         ends         EOWNED        (b)
 *   UNDRAIN update:A   (a)         (b)          ends          (b)
 *   UNDRAIN update:B   (a)         (b)          EOWNED        (b)
 *
 *   (a) done; passed on to the replica, since it may drain by itself
 *   (b) done; nothing changes
 *   operator and update:A at once: the column of the owner that is asked for,
 *   and EOWNED for update:B; UNDRAIN operator is done, and update:A stays
 *
 * The replica is asked to drain once, when the drain begins.  One that is
 * started under a drain is not: gateways send it nothing, and an update that
 * restarts it can ask it directly whether it works.
 *
 * An agent may end (kill -9, upgrade) while its replica drains on
 * request.  The next run does not carry on an update's lease.  It learns of
 * the lease from the state directory or from other agents, and undrains the
 * replica when the replica reports that it drains
 * (drain_reported()).  The same is done where a drain ended while there
 * was no replica.
 *
 * Pure: gets time and orders, and returns what to do (DRAIN_ bits).
 */

#ifndef DRAIN_H
#define DRAIN_H

#include <stdint.h>

#include "proto/members/members.h"
#include "swim/order/order.h"


/* Six of its renewals must fail before a lease ends. */
#define DRAIN_LEASE_US   30000000ULL

#define DRAIN_OPERATOR   "operator"
#define DRAIN_SHUTDOWN   "shutdown"
#define DRAIN_UPDATE     "update:"      /* followed by the id of the update */

/* What the owner has to do. */
#define DRAIN_TELL       0x1    /* tell the replica to drain */
#define DRAIN_UNTELL     0x2    /* tell it to undrain */
#define DRAIN_KEEP       0x4    /* drain_kept() changed */

typedef struct {
    int       is_operator;
    int       is_shutdown;
    char      update[LLMGW_MEMBERS_OWNER_BYTES];    /* "": no update */
    uint64_t  lease_until_us;
    int       is_lapsed;        /* it ended; the replica may still drain */
    int       is_decided;       /* records that others have are older */
    uint64_t  past_epoch;       /* of the latest record of an earlier */
    uint64_t  past_incarnation; /* run that others have */
} drain_t;


/*
 * kept: drain_kept() of the run before.  NULL: it is unknown; then the records
 * of other agents are used.
 */
void drain_init(drain_t *drain, const char *kept);

/* Whether an order may name this owner. */
int drain_is_owner(const char *owner);

/*
 * Begin or end an owner's drain.  ORDER_DONE or the refusal; *what is what to
 * do.
 */
order_rc_t drain_begin(drain_t *drain, const char *owner, uint64_t now_us,
    unsigned *what);
order_rc_t drain_end(drain_t *drain, const char *owner, unsigned *what);

/* The agent leaves: drains for good. */
void drain_shutdown(drain_t *drain);

/*
 * To be called at drain_next_us(), to end a lease; UINT64_MAX: there is none.
 */
unsigned drain_tick(drain_t *drain, uint64_t now_us);
uint64_t drain_next_us(const drain_t *drain);

/* Takes a record of an earlier run that another agent has. */
unsigned drain_merge_past(drain_t *drain, const llmgw_member_t *past);

/* The replica's report says whether it drains; returns what to do. */
unsigned drain_reported(drain_t *drain, int is_draining);

/* The owner that the record names; "": the replica is not drained. */
const char *drain_owner(const drain_t *drain);

/* What the next run needs to know: an owner, or "". */
const char *drain_kept(const drain_t *drain);

#endif /* DRAIN_H */
