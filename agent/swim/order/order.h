
/*
 * What one agent orders another to do with its replica, and the answers.
 *
 * An order is sent to its target's address, again every ORDER_RETRY_US, until
 * the target has answered and its record here shows the effect; at
 * ORDER_TIMEOUT_US it has failed.  The answer comes with the target's own
 * record, so as a rule one round trip is enough.
 *
 *               ORDER(id, verb, epoch, owner)          again every 200 ms
 *     giver  ------------------------------------->  target
 *            <-------------------------------------
 *               ORDER_ACK(id, answer) + own record
 *
 * A datagram may come twice, and late.  Each order has a random id; a target
 * carries out an id once and repeats its answer, for the last ORDER_REMEMBERED
 * ids.  An order is for one start of its target: an order for an earlier epoch
 * is refused, since its sender did not know of the restart.
 *
 * What an order changes is kept on the target's disk, which may be slow.  The
 * target carries it out at once and holds the answer back until the disk has
 * it (swim_kept()); the giver asks again meanwhile, and is not answered.
 *
 * An order to the own id is carried out at once, by the same rules, without a
 * datagram.
 */

#ifndef ORDER_H
#define ORDER_H

#include <stdint.h>

#include "proto/members/members.h"


#define ORDER_RETRY_US     200000ULL
#define ORDER_TIMEOUT_US  5000000ULL

/*
 * Orders given at once: as many as there are connections to the control socket.
 */
#define ORDER_MAX          64

/* Orders that are taken and remembered: an order is repeated for five seconds,
   in which fewer other orders come than this. */
#define ORDER_REMEMBERED   128

typedef enum {
    ORDER_DRAIN = 0,
    ORDER_UNDRAIN,
    ORDER_RESTART,
    ORDER_SWITCH,
    ORDER_NVERBS
} order_verb_t;

/*
 * The results of an order: name for the control socket, text for people.  The
 * numbers are on the wire: new ones are added at the end.
 */
#define ORDER_ANSWERS(X)                                                      \
    X(DONE,        "done", "it is done")                                      \
    X(EVERB,       "failed", "its agent does not know this order")            \
    X(ERESTARTED,  "restarted", "its agent was restarted meanwhile")          \
    X(EROLE,       "not_a_replica", "it is a gateway")                        \
    X(EOWNED,      "owned", "a rolling update drains it")                     \
    X(ELEAVING,    "leaving", "its agent is leaving")                         \
    X(ENOKEYRING,  "no_keyring", "restart orders need encrypted gossip "      \
                   "(--keyring)")                                             \
    X(ENOCHILD,    "no_child", "its agent did not start its replica")         \
    X(EBUSY,       "busy", "its replica is being adopted or stopped")         \
    X(EUNREACHED,  "unreachable", "its agent cannot be reached")              \
    X(EUNKNOWN,    "not_found", "there is no such member")                    \
    X(EMANY,       "busy", "too many orders at once")                         \
    X(ENOTACTIVE,  "not_active", "its replica is not active")                 \
    X(ENOSTANDBY,  "no_standby", "its agent knows of no standby that could "  \
                   "take over")                                               \
    X(ENOPROCESS,  "no_process", "its agent cannot signal the process that "  \
                   "reports to it")                                           \
    X(ENOLOCK,     "no_lock", "its lock service cannot be reached, so no "    \
                   "standby could take over")

typedef enum {
#define X(id, name, text)  ORDER_##id,
    ORDER_ANSWERS(X)
#undef X
    ORDER_NRC,
    ORDER_PENDING           /* not known yet; never on the wire */
} order_rc_t;

typedef struct {
    order_verb_t  verb;
    uint64_t      id;
    uint64_t      target_epoch;
    char          target_id[LLMGW_MEMBERS_NAME_BYTES];
    char          owner[LLMGW_MEMBERS_OWNER_BYTES];
    char          version[LLMGW_MEMBERS_NAME_BYTES];    /* for a RESTART */
    char          group[LLMGW_GROUP_BYTES];             /* for a SWITCH, */
    uint64_t      group_epoch;                          /* and the active one's
                                                           epoch */
    order_rc_t    answer;                               /* for an ORDER_ACK */
} order_t;


/* The code for the control socket: "not_a_replica". */
const char *order_rc_name(order_rc_t rc);

/* The text after the member's id and a colon: "it is a gateway". */
const char *order_rc_text(order_rc_t rc);

#endif /* ORDER_H */
