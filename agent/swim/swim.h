
/*
 * SWIM: which members there are and which of them live, without a centre.
 *
 * In every period each agent pings one other.  The round robins of all agents
 * mesh, so each member is pinged by one other in each period.  If no answer
 * comes within the ping timeout, a few others are asked to ping it as well,
 * since one bad path is no death.  If no answer comes by any path until the
 * period ends, the member is SUSPECT.  It may refute that; if it does not
 * within the suspicion timeout, it is DEAD.  All updates travel on these pings
 * and acks, and in gossip between them.
 *
 * This is the protocol alone, a function of its arguments: time comes in,
 * datagrams come in and go out, randomness comes from a seed.  Nothing here
 * reads a clock, owns a socket, logs or sleeps.  node/node.h connects it to a
 * transport and a clock: real ones in the agent, simulated ones in t/sim.
 *
 * Where to find what:
 *
 *   failure detection
 *     schedule.c            which member is pinged in which period
 *     probe.c               a ping, its indirect pings, and what follows
 *     relay.c               pings on behalf of others
 *     suspicion.c           from SUSPECT to DEAD, and confirmations
 *     local_health.c        local health: this agent itself may be slow
 *     isolation.c           this agent itself may be cut off
 *     reconnect.c           members that are DEAD here and alive
 *   dissemination
 *     table/broadcast.h     the queue of updates
 *     send.c, recv.c        what goes into a datagram, what is done with one
 *     merge.c               what an update changes
 *     delivery.c            what must reach some members at once
 *     join.c, sync.c        whole tables
 *     load.c                load figures, which are no updates
 *   membership
 *     table/member.h        a record, and the order of updates about it
 *     table/table.h         all records
 *     stranger.c            how a stranger becomes a member
 *     table/tombstone.h     how long the dead are remembered
 *     conflict.c            two agents with one id
 *     skew.c                epochs that a wrong clock made
 *     restore.c             what the segment of an earlier run holds
 *   the own replica
 *     own.c                 the own record
 *     order/order.h         what one agent may order another to do
 *     order.c               orders given, and orders taken
 *     order/drain.h         the owners of a drain, and its end
 *   the wire
 *     wire/packet.h         a datagram, decoded and encoded
 *     swim_inner.h          the state of all these, and their internal calls
 *
 * Source: Das, Gupta, Motivala, "SWIM: Scalable Weakly-consistent
 * Infection-style Process Group Membership Protocol", DSN 2002; Dadgar and
 * others, "Lifeguard: Local Health Awareness for More Accurate Failure
 * Detection", DSN-W 2018.  docs/gossip.md says where this departs from them.
 *
 * Times are microseconds of a monotonic clock, unless a name says wall.
 */

#ifndef SWIM_H
#define SWIM_H

#include "common/address.h"
#include "swim/order/order.h"
#include "swim/wire/packet.h"
#include "common/swim_counters.h"
#include "swim/table/table.h"


typedef struct swim_s  swim_t;

/* The calls by which the swim notifies its owner, or asks it for something. */
typedef struct {
    /*
     * A member changed: `what` has the MEMBER_ bits.  With MEMBER_REMOVED the
     * member is freed when this returns.  The swim must not be called within.
     */
    void  (*on_change)(void *data, const member_t *member, unsigned what);

    /* A living agent at this address has our id, and had it first: this agent
       must end, without LEFT, which would be taken for the other agent's. */
    void  (*on_conflict)(void *data, const char *address);

    /*
     * The drain of the own replica changed: `what` has the DRAIN_ bits of
     * swim/order/drain.h, which say what to do.  The swim must not be called
     * within.  NULL: it is not called.
     */
    void  (*on_drain)(void *data, unsigned what);

    /* The own replica is to be restarted as this version.  Returns ORDER_DONE,
       or why not.  The swim must not be called within.  NULL: the replica is
       not the agent's child. */
    order_rc_t  (*on_restart)(void *data, const char *version);

    /* The own replica, which is active in its group, is to end and come back as
       a standby.  As on_restart. */
    order_rc_t  (*on_switch)(void *data);

    /*
     * Returns 0 if what on_drain() or on_restart() was called with is not on
     * the disk yet: then the answers to orders wait for swim_kept().  NULL:
     * they never wait.
     */
    int  (*is_kept)(void *data);

    /* Returns the names that a restored record names by their hash; NULL: they
       are not there.  The function NULL: no names are there. */
    const char *(*find_models)(void *data, uint64_t list, size_t *bytes);

    /*
     * The epoch of that id is so far ahead of our clock that it is refused
     * (swim/skew.c): a sender's, whose datagrams are dropped; or, if from is
     * NULL, our own, which was given up.  NULL: it is not called.
     */
    void  (*on_skew)(void *data, const char *id, const address_t *from,
                     uint64_t ahead_us);

    /*
     * Likewise, for the epoch of a member's group, or, if id is our own, of our
     * replica's group: that member does not count as active.  NULL: it is not
     * called.
     */
    void  (*on_group_skew)(void *data, const char *id, const char *group,
                           uint64_t ahead_us);

    /* The result of an order that was PENDING.  The next order may be given
       within.  NULL: it is not called. */
    void  (*on_ordered)(void *data, uint64_t id, order_rc_t rc);
} swim_callbacks_t;

typedef struct {
    const char              *cluster;
    const char              *id;
    const char              *address;       /* numeric, where others reach it */
    const char              *grpc;          /* "" for a gateway */
    llmgw_role_t             role;          /* SHARD for a shard's agent */
    uint32_t                 weight;
    uint64_t                 epoch;
    uint64_t                 period_us;
    uint64_t                 ping_timeout_us;
    uint64_t                 suspect_timeout_us;    /* the base of suspicions'
                                                       timeouts */
    unsigned                 indirect_probes;
    uint64_t                 random_seed;
    const char              *drain_kept;    /* drain_kept() of the last run;
                                               NULL: unknown */
    int                      can_restart;   /* on_restart can restart the
                                               replica */
    const char              *resume_group;  /* NULL: the empty one */
    struct crypt_s          *crypt;         /* NULL: gossip is plain.  The node
                                               seals; the swim only checks
                                               whether this is set */
    /* Sends a datagram, which may be lost. */
    void                   (*on_send)(void *net, const address_t *to,
                                      const uint8_t *bytes, size_t len);
    /* Sends it over a connection, for a ping that datagrams fail to carry; the
       answer comes by swim_recv().  NULL: there are no connections. */
    void                   (*on_stream)(void *net, const address_t *to,
                                        const uint8_t *bytes, size_t len);
    void                    *net;           /* for these two */
    const swim_callbacks_t  *callbacks;     /* must outlive the swim */
    void                    *data;          /* for its callbacks */
} swim_config_t;

/* What the own agent reports of its replica. */
typedef struct {
    llmgw_service_t  service;
    int              draining;              /* the replica drains by itself */
    const char      *model_version;
    uint32_t         max_capacity;
    uint64_t         replica_start_ms;      /* wall clock */
    int              is_heard;              /* the replica itself reports
                                               whether it drains, READY or
                                               not */
    const char      *resume_group;          /* NULL: unchanged */
    const char      *models;                /* a list (proto/members) */
    size_t           models_bytes;          /* LLMGW_MEMBERS_MODELS_BYTES at
                                               most; 0: none */
    uint32_t         models_cut;            /* number of names that the list
                                               lacks */
    const char      *group;                 /* standby group; NULL: none, and
                                               the next three fields are 0 */
    uint8_t          group_state;
    uint64_t         group_epoch;
    uint64_t         group_lock;
    const llmgw_shard_t *shard;             /* a shard's report; NULL: there is
                                               none */
    int              orchestrates;          /* the replica uses shards */
} swim_own_t;

#define SWIM_MAX_INDIRECT_PROBES  8
#define SWIM_MAX_SEEDS            32


/* Strings are copied.  NULL: out of memory. */
swim_t *swim_create(const swim_config_t *config, uint64_t now_us);
void swim_destroy(swim_t *swim);

/* Takes a datagram.  wall_us: our wall clock, by which epochs are judged. */
void swim_recv(swim_t *swim, const address_t *from, const uint8_t *data,
    size_t len, uint64_t now_us, uint64_t wall_us);

/*
 * Take a datagram in two halves, for a caller that opens sealed ones: one that
 * was decoded already, of len bytes on the wire; and one that was dropped.
 */
void swim_recv_packet(swim_t *swim, const address_t *from,
    const packet_t *packet, size_t len, uint64_t now_us);
void swim_recv_dropped(swim_t *swim, const address_t *from,
    const packet_t *packet, packet_rc_t rc, size_t len, uint64_t now_us);

/*
 * Runs what is due.  To be called at swim_next_us(); harmless when called
 * earlier.
 */
void swim_tick(swim_t *swim, uint64_t now_us);
uint64_t swim_next_us(const swim_t *swim);

/*
 * Sets the seeds to ask for the table, as resolved last; those beyond
 * SWIM_MAX_SEEDS are ignored.  They are asked repeatedly, later only those
 * where no member is.  Own addresses among them do no harm.
 */
void swim_set_seeds(swim_t *swim, const address_t *seeds, size_t n,
    uint64_t now_us);

/*
 * Sets how far the wall clock is ahead of our own time, which decides which
 * member is pinged, and which epochs are refused.  To be called before
 * swim_restore() and before each tick, since wall clocks are set.
 */
void swim_set_wall_ahead(swim_t *swim, uint64_t ahead_us);

/*
 * Takes over the members in the segment of an earlier run of this agent, at the
 * start (swim/restore.c).  These are no updates: nothing is sent.
 */
void swim_restore(swim_t *swim, const llmgw_members_view_t *view,
    uint64_t now_us);

/*
 * Sets the own record.  A difference raises the incarnation; DOWN is sent to
 * every gateway at once.
 */
void swim_set_own(swim_t *swim, const swim_own_t *own, uint64_t now_us);

/* Sets the load that the replica reports; to be called at each report. */
void swim_set_load(swim_t *swim, uint32_t active_requests,
    const llmgw_engine_load_t *engine, uint64_t now_us);

/*
 * Orders a member to do something with its replica (swim/order/order.h); sets
 * the order's id, and its target_epoch if that is 0.  ORDER_PENDING:
 * on_ordered() is called with the result; any other value is the result.
 */
order_rc_t swim_order(swim_t *swim, order_t *order, uint64_t now_us);

/*
 * To be called when is_kept() is true again: sends answers that waited for it.
 */
void swim_kept(swim_t *swim, uint64_t now_us);

/* The result of an order is no longer wanted; the order is still sent. */
void swim_forget_order(swim_t *swim, uint64_t id);

/* Pings a member at once; its answer brings its record and its load. */
void swim_ask(swim_t *swim, const char *id, uint64_t now_us);

/* Drains the own replica for good, since its agent is going to leave. */
void swim_retire(swim_t *swim, uint64_t now_us);

/* Sets the id of the rolling update that this agent drives; "": none. */
void swim_set_update(swim_t *swim, const char *id, uint64_t now_us);

/* The owner of the own replica's drain, for the next run: drain_kept(). */
const char *swim_drain_kept(const swim_t *swim);

/*
 * Sends LEFT to all; swim_has_left(): all have acked, or a second has passed.
 */
void swim_leave(swim_t *swim, uint64_t now_us);
int swim_has_left(const swim_t *swim);

/*
 * Over half of the members are DEAD within 30 s (swim/isolation.c): it is
 * probably this agent that is cut off.  Changes with some member's liveness.
 */
int swim_is_isolated(const swim_t *swim);

/* The last datagram that was dropped, and why. */
typedef struct {
    packet_rc_t  why;           /* PACKET_DONE: there was none */
    address_t    from;
    uint64_t     at_us;
} swim_drop_t;

const swim_drop_t *swim_last_drop(const swim_t *swim);

/* The local health, 0 (good) .. 8 (swim/local_health.c). */
unsigned swim_local_health(const swim_t *swim);

/*
 * For tests: suspects a member falsely.  -1: no such member, or it is not
 * ALIVE.
 */
int swim_inject_suspect(swim_t *swim, const char *id, uint64_t now_us);

/* 1: no table has come from any member yet. */
int swim_is_alone(const swim_t *swim);

const table_t *swim_table(const swim_t *swim);
const member_t *swim_own(const swim_t *swim);
const swim_counters_t *swim_counters(const swim_t *swim);

/* The number of updates that are still being sent. */
size_t swim_backlog(const swim_t *swim);

#endif /* SWIM_H */
