
/*
 * Who drains the own replica, until when, and what the replica is to be told.
 *
 *   operator     until somebody undrains it; kept over restarts of the agent,
 *                by its owner's memory (drain_kept()) or by what others know
 *   update:ID    a lease of DRAIN_LEASE_US that the driver of a rolling update
 *                renews by ordering it again; ends by itself without the
 *                driver, and with the agent
 *   shutdown     the agent leaves; ends with its epoch
 *
 * They stand beside each other, and the drain ends with the last of them.
 * To others the first of operator, update, shutdown is named: what the next
 * life has to know of.  So an operator's drain is never ended by an update,
 * and an operator may take over what an update began.
 *
 *   asked for \ is     nobody's    operator     update:A      shutdown
 *   DRAIN operator     begins      as it is     stands, too   for next time
 *   DRAIN update:A     begins      stands, too  renewed       ELEAVING
 *   DRAIN update:B     begins      stands, too  EOWNED        ELEAVING
 *   UNDRAIN operator   (a)         ends         EOWNED        (b)
 *   UNDRAIN update:A   (a)         (b)          ends          (b)
 *   UNDRAIN update:B   (a)         (b)          EOWNED        (b)
 *
 *   (a) done; the replica is told, since it may drain on its own
 *   (b) done; nothing changes
 *   operator and update:A at once: each column where it has something to say,
 *   but UNDRAIN operator is done, and update:A goes on
 *
 * The replica is told to drain once, when the drain begins.  One that is
 * started under a drain is not: gateways hold its traffic back, and whoever
 * restarts it for an update can ask it directly whether it works.
 *
 * A life that ends (kill -9, upgrade) while the replica drains by its word
 * leaves it so, and a lease that is not kept is nobody's to end.  So the next
 * life, which learns of it by what was kept or from others, tells the replica
 * to undrain when that reports that it drains (drain_reported()).  So does
 * one whose drain ended while its replica was not there to be told.
 *
 * Pure: time and orders come in, what to do (DRAIN_ bits) comes out.
 */

#ifndef DRAIN_H
#define DRAIN_H

#include <stdint.h>

#include "proto/members/members.h"
#include "swim/order/order.h"


/* Six of its renewals must fail. */
#define DRAIN_LEASE_US   30000000ULL

#define DRAIN_OPERATOR   "operator"
#define DRAIN_SHUTDOWN   "shutdown"
#define DRAIN_UPDATE     "update:"      /* and the id of the update */

/* What is to be done. */
#define DRAIN_TELL       0x1    /* tell the replica to drain */
#define DRAIN_UNTELL     0x2    /* tell it to undrain */
#define DRAIN_KEEP       0x4    /* drain_kept() changed */

typedef struct {
    int       is_operator;
    int       is_shutdown;
    char      update[LLMGW_MEMBERS_OWNER_BYTES];    /* "": none */
    uint64_t  lease_until_us;
    int       is_lapsed;        /* it ended, the replica may not know */
    int       is_decided;       /* what others know of it is older */
    uint64_t  past_epoch;       /* the latest that was heard of ... */
    uint64_t  past_incarnation; /* ... an earlier life */
} drain_t;


/*
 * kept: drain_kept() of the life before, NULL where that is not known, so that
 * others are believed.
 */
void drain_init(drain_t *drain, const char *kept);

/* Is it an owner that an order may name? */
int drain_is_owner(const char *owner);

/* ORDER_DONE or the refusal, and in *what what is to be done. */
order_rc_t drain_begin(drain_t *drain, const char *owner, uint64_t now_us,
    unsigned *what);
order_rc_t drain_end(drain_t *drain, const char *owner, unsigned *what);

/* The agent leaves. */
void drain_shutdown(drain_t *drain);

/* At drain_next_us(): a lease ends; UINT64_MAX: there is none. */
unsigned drain_tick(drain_t *drain, uint64_t now_us);
uint64_t drain_next_us(const drain_t *drain);

/* What others know of an earlier life. */
unsigned drain_merge_past(drain_t *drain, const llmgw_member_t *past);

/* What the replica says of itself. */
unsigned drain_reported(drain_t *drain, int is_draining);

/* Whose it is, "": nobody's. */
const char *drain_owner(const drain_t *drain);

/* What the next life must know: an owner, or "". */
const char *drain_kept(const drain_t *drain);

#endif /* DRAIN_H */
