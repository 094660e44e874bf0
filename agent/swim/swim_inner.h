
/*
 * What the protocol's files share: the state of each part, collected in one
 * swim, and the functions through which the parts call each other.  Nothing
 * outside of swim/ includes this.
 *
 * Each part has its own state, a NAME_tick() that does what is due, and a
 * NAME_next_us() that says when that will be.
 */

#ifndef SWIM_INNER_H
#define SWIM_INNER_H

#include "swim/table/candidate.h"
#include "swim/order/drain.h"
#include "common/rnd.h"
#include "swim/table/broadcast.h"
#include "swim/swim.h"


#define SWIM_MS     1000ULL
#define SWIM_S      1000000ULL
#define SWIM_NEVER  UINT64_MAX


/* schedule.c: all other present members, in the order of their hashes. */
typedef struct {
    member_t  **ring;
    size_t      n;
    size_t      capacity;
} schedule_t;

/* probe.c: the ping under way. */
typedef struct {
    member_t   *target;             /* NULL: it was answered, or there is
                                       none */
    uint64_t    sequence;
    uint64_t    stream_sequence;    /* that of the ping over TCP */
    uint64_t    sent_us;            /* 0: no measure of the round trip */
    uint32_t    nacks_due[SWIM_MAX_INDIRECT_PROBES];    /* hashes of helpers; 0:
                                                           none */
    uint64_t    indirect_us;        /* when to ask others; 0: was done */
    uint64_t    period_us;          /* when this period ends */
} probe_t;

/* relay.c: pings on behalf of others. */
#define RELAY_MAX  64       /* a ring; room for three probers of 20 each at
                               once */

typedef struct {
    uint64_t  sequence;             /* of our ping; 0: free */
    uint64_t  origin_sequence;
    uint64_t  nack_us;              /* SWIM_NEVER: sent, or not wanted */
    char      origin_id[LLMGW_MEMBERS_NAME_BYTES];
    char      target_id[LLMGW_MEMBERS_NAME_BYTES];
} relay_entry_t;

typedef struct {
    relay_entry_t  entries[RELAY_MAX];
    size_t         next;
    uint64_t       next_us;         /* the first NACK is due then or later */
} relay_t;

/* suspicion.c: the members that are SUSPECT here. */
typedef struct {
    member_t  **members;
    size_t      n;
    size_t      capacity;
} suspicion_t;

/* delivery.c: an acknowledged delivery to some members. */
typedef struct {
    member_t  **targets;            /* members that have not acked */
    size_t      n;
    size_t      capacity;
    uint64_t    sequence;
    uint64_t    interval_us;
    uint64_t    next_us;
    unsigned    tries;              /* tries left */
} delivery_t;

/* join.c */
typedef struct {
    address_t  seeds[SWIM_MAX_SEEDS];
    char       found_ids[SWIM_MAX_SEEDS][LLMGW_MEMBERS_NAME_BYTES];
    size_t     nseeds;
    uint64_t   sequence;            /* the same in every JOIN of this run */
    uint64_t   next_us;
    uint64_t   backoff_us;
    int        is_done;
} join_t;

/* conflict.c: another agent that has our id. */
typedef struct {
    char      address[LLMGW_MEMBERS_ADDRESS_BYTES];
    uint64_t  epoch;                /* the latest epoch in any update */
    uint64_t  sequence;
    uint64_t  next_us;              /* SWIM_NEVER: no member is asked */
    uint64_t  outbid_us;            /* last outbidding; 0: never */
    unsigned  tries;                /* tries left */
} conflict_t;

/* reconnect.c: pings to the dead. */
typedef struct {
    uint64_t  next_us;              /* SWIM_NEVER: no member is DEAD */
    uint64_t  last_us;
    uint64_t  died_us;              /* when a member last became DEAD */
    uint64_t  burst_until_us;
} reconnect_t;

/* skew.c: senders about which the owner was notified. */
#define SKEW_SENDERS  32

typedef struct {
    uint32_t  hash;                 /* of the id */
    uint64_t  logged_us;            /* 0: the entry is free */
} skew_sender_t;

typedef struct {
    skew_sender_t  senders[SKEW_SENDERS];       /* a ring */
    size_t         next;
    uint64_t       silent_until_us;
} skew_t;

/* send.c: whole tables that are being sent. */
#define HANDOUT_MAX  64

typedef struct {
    const member_t  *to;
    uint64_t         sequence;
    size_t           next;          /* the first record that is not sent */
} handout_t;

typedef struct {
    handout_t  entries[HANDOUT_MAX];
    size_t     n;
    uint64_t   next_us;
} handouts_t;

/* load.c */
typedef struct {
    llmgw_member_load_t  sent;      /* what gateways were sent last */
    uint64_t             sent_us;
    uint64_t             next_us;   /* SWIM_NEVER: there is no load */
} load_t;

/* order.c: an order that was given, and is not done yet. */
typedef struct {
    order_t   order;                /* id 0: the entry is free */
    uint64_t  next_us;
    uint64_t  deadline_us;
    int       is_answered;          /* the target answered: done */
    int       is_forgotten;
} order_given_t;

/* An order that was taken; it is answered as soon as its effect is kept. */
typedef struct {
    uint64_t    id;                 /* 0: the entry is free */
    order_rc_t  answer;
    int         is_held;            /* the answer waits */
    address_t   giver;              /* only while the answer waits; len 0:
                                       ourselves */
    char        giver_id[LLMGW_MEMBERS_NAME_BYTES];
    uint64_t    sequence;
} order_taken_t;

typedef struct {
    order_given_t  given[ORDER_MAX];
    size_t         ngiven;
    order_taken_t  taken[ORDER_REMEMBERED];     /* a ring */
    size_t         next_taken;
} orders_t;

struct swim_s {
    swim_config_t    config;
    char             cluster[LLMGW_MEMBERS_NAME_BYTES];
    rnd_t            rnd;
    table_t          table;
    member_t        *own;
    uint32_t         own_hash;      /* of the own id */
    broadcast_t      broadcast;
    packet_out_t    *out;
    member_t         past;          /* written to `out` for its receiver */
    uint64_t         sequence;

    schedule_t       schedule;
    probe_t          probe;
    relay_t          relay;
    suspicion_t      suspicion;
    candidates_t     candidates;
    delivery_t       delivery;
    join_t           join;
    handouts_t       handouts;
    load_t           load;
    drain_t          drain;         /* of the own replica */
    orders_t         orders;
    uint64_t         gossip_us;     /* when the next extra datagram is due */
    uint64_t         sync_us;       /* when the next push-pull sync is due */
    reconnect_t      reconnect;
    skew_t           skew;
    conflict_t       conflict;
    unsigned         local_health;  /* local_health.c */
    int              is_isolated;   /* isolation.c */
    uint64_t         started_us;
    uint64_t         wall_ahead_us; /* ahead of our own time; 0: unknown */
    uint64_t         boot_nonce;

    swim_counters_t  counters;
    swim_drop_t      last_drop;
};


/* send.c */

typedef struct {
    packet_type_t    type;
    const address_t *to;            /* or, if NULL, member's address */
    const member_t  *member;        /* the receiver; NULL: no member */
    const char      *target_id;     /* NULL: none */
    const char      *target_address;
    uint64_t         sequence;
    uint64_t         table_digest;
    const member_t  *about;         /* member whose record is added; NULL:
                                       none */
    const order_t   *order;         /* for an ORDER and its answer */
    uint32_t         wait_ms;
    int              is_bare;       /* without updates but the own record */
    int              is_by_stream;
    int              is_to_own_id;  /* it carries boot nonce and uptime */
} swim_message_t;

void swim_send(swim_t *swim, const swim_message_t *message, uint64_t now_us);

/* Sends the whole table, in as many datagrams as it takes, over some time. */
void swim_send_table(swim_t *swim, const member_t *to, uint64_t sequence,
    uint64_t now_us);
void handout_drop(swim_t *swim, const member_t *to);
void handout_tick(swim_t *swim, uint64_t now_us);
uint64_t handout_next_us(const swim_t *swim);

/* Sends updates to a few members while there are any. */
void gossip_tick(swim_t *swim, uint64_t now_us);
uint64_t gossip_next_us(const swim_t *swim);


/* merge.c */

/* The sender's own record in a packet; NULL: there is none. */
const member_update_t *swim_own_word(const packet_t *packet);

/* Merges the updates of a packet. */
void swim_merge(swim_t *swim, const packet_t *packet, uint64_t now_us);

/* Merges the sender's own record, which came in its short form. */
void swim_merge_short(swim_t *swim, member_t *sender,
    const packet_head_t *head, uint64_t now_us);

/* Adds a member that answered for itself. */
member_t *swim_add(swim_t *swim, const member_update_t *update,
    uint64_t now_us);

/* Adds a member that an earlier run of this agent knew; no update is sent. */
member_t *swim_restore_member(swim_t *swim, const member_update_t *update,
    uint64_t now_us);

/* Sets a member's liveness by this agent's own judgement. */
void swim_judge(swim_t *swim, member_t *member, llmgw_liveness_t liveness,
    uint64_t now_us);

/*
 * The member's ping failed by all paths: it becomes SUSPECT, or gets a
 * confirmer.
 */
void swim_suspect(swim_t *swim, member_t *member, uint64_t now_us);

/* A record changed (MEMBER_ bits): notifies others, and the owner. */
void swim_changed(swim_t *swim, member_t *member, unsigned what);

void swim_remove(swim_t *swim, member_t *member);


/* pick.c */

typedef int (*swim_pick_pt)(const swim_t *swim, const member_t *member,
    const void *data);

/*
 * Picks up to max different members at random, of those that fit; returns how
 * many.
 */
size_t swim_pick(swim_t *swim, member_t **picked, size_t max,
    swim_pick_pt fits, const void *data);

/* For swim_pick(): any present member but ourselves and data (may be NULL). */
int swim_fits_present(const swim_t *swim, const member_t *member,
    const void *data);
int swim_fits_dead(const swim_t *swim, const member_t *member,
    const void *data);


/* schedule.c */

/* Adds a present member.  If there is no memory, only others ping it. */
void schedule_add(swim_t *swim, member_t *member);
void schedule_drop(swim_t *swim, member_t *member);

/* The member to ping in the period that begins then; NULL: there is none. */
member_t *schedule_choose(swim_t *swim, uint64_t at_us);
void schedule_done(schedule_t *schedule);


/* probe.c */

void probe_ack(swim_t *swim, const packet_head_t *ack, uint64_t now_us);
void probe_nack(swim_t *swim, const packet_head_t *nack);
void probe_forgive(swim_t *swim, const member_t *member);
void probe_delay(swim_t *swim, uint64_t late_us);
void probe_tick(swim_t *swim, uint64_t now_us);
uint64_t probe_next_us(const swim_t *swim);


/* relay.c */

void relay_ask(swim_t *swim, const packet_head_t *ping_req, uint64_t now_us);
void relay_ack(swim_t *swim, const packet_head_t *ack, uint64_t now_us);
void relay_tick(swim_t *swim, uint64_t now_us);
uint64_t relay_next_us(const swim_t *swim);


/* log10.c */

/* n > 0. */
double swim_log10(size_t n);


/* suspicion.c */

/* The least time that a suspect has, among n members. */
uint64_t suspicion_timeout_us(uint64_t base_us, size_t n);

/*
 * The time that it has with this many confirmers, of as many as could confirm.
 */
uint64_t suspicion_confirmed_us(uint64_t least_us, size_t nconfirmers,
    size_t npossible);

int suspicion_start(swim_t *swim, member_t *member, uint64_t now_us);
void suspicion_stop(swim_t *swim, member_t *member);

/* A suspect has one more confirmer. */
void suspicion_add_confirmer(swim_t *swim, member_t *member);

/* A suspect to ping before the schedule does; NULL: there is none. */
member_t *suspicion_next_to_confirm(swim_t *swim);
void suspicion_delay(swim_t *swim, uint64_t late_us);
void suspicion_tick(swim_t *swim, uint64_t now_us);
uint64_t suspicion_next_us(const swim_t *swim);
void suspicion_done(suspicion_t *suspicion);


/* local_health.c */

void local_health_worsen(swim_t *swim, unsigned signs);
void local_health_improve(swim_t *swim);
uint64_t local_health_scale(const swim_t *swim, uint64_t us);


/* order.c */

void order_recv(swim_t *swim, const order_t *order, const address_t *from,
    const member_t *sender, uint64_t sequence, uint64_t now_us);
void order_recv_ack(swim_t *swim, const order_t *answer,
    const member_t *sender);
void order_tick(swim_t *swim, uint64_t now_us);
uint64_t order_next_us(const swim_t *swim);


/* own.c */

/* The drain changed: updates the own record, and notifies the owner. */
void swim_drain_changed(swim_t *swim, unsigned what, uint64_t now_us);

/* Ends a lease that is over. */
void swim_drain_tick(swim_t *swim, uint64_t now_us);
uint64_t swim_drain_next_us(const swim_t *swim);


/* conflict.c */

/* An update about our own id has a later start. */
void conflict_found(swim_t *swim, const llmgw_member_t *update,
    uint64_t now_us);

/* A datagram came whose sender has our id. */
void conflict_recv(swim_t *swim, const packet_head_t *head,
    const address_t *from, uint64_t now_us);
void conflict_tick(swim_t *swim, uint64_t now_us);
uint64_t conflict_next_us(const swim_t *swim);


/* isolation.c */

/* To be called when a member died or came back. */
void isolation_count(swim_t *swim, uint64_t now_us);

/*
 * The agent before this one was isolated; its members are in the table already.
 */
void isolation_restore(swim_t *swim, uint64_t now_us);


/* stranger.c: see table/candidate.h */

void stranger_tick(swim_t *swim, uint64_t now_us);
uint64_t stranger_next_us(const swim_t *swim);

/*
 * A stranger was named, or sent something: it is pinged.  join_sequence: of the
 * JOIN that it sent, which is answered when it is a member; 0: it sent none.
 */
void stranger_add(swim_t *swim, const llmgw_member_t *record,
    uint64_t join_sequence, uint64_t now_us);

/* Takes a stranger's answer; returns the new member, NULL if it is none. */
member_t *stranger_ack(swim_t *swim, const packet_t *packet,
    uint64_t now_us);


/* delivery.c */

/* 1: the member routes by our own record: it is a gateway, or, if we are a
   shard's agent, its replica uses shards. */
int swim_routes_to_us(const swim_t *swim, const member_t *member);

void delivery_to_gateways(swim_t *swim, uint64_t now_us);
void delivery_to_all(swim_t *swim, uint64_t now_us);
void delivery_ack(swim_t *swim, const packet_head_t *ack);
void delivery_drop(swim_t *swim, const member_t *member);
void delivery_tick(swim_t *swim, uint64_t now_us);
uint64_t delivery_next_us(const swim_t *swim);


/* join.c */

/* The first answer to our JOIN came. */
void join_answer(swim_t *swim, const packet_head_t *table);

/* A member asks for the table. */
void join_asked(swim_t *swim, member_t *member, uint64_t sequence,
    uint64_t now_us);

/* A first member was met: it is asked for the table if we have none yet. */
void join_met(swim_t *swim, const member_t *member, uint64_t now_us);
void join_tick(swim_t *swim, uint64_t now_us);
uint64_t join_next_us(const swim_t *swim);


/* sync.c */

void sync_recv(swim_t *swim, member_t *sender, const packet_head_t *sync,
    uint64_t now_us);
void sync_tick(swim_t *swim, uint64_t now_us);
uint64_t sync_next_us(const swim_t *swim);


/* reconnect.c */

/* A member became DEAD. */
void reconnect_died(swim_t *swim, const member_t *member, uint64_t now_us);

/* A member that was DEAD turned out to be alive. */
void reconnect_returned(swim_t *swim, uint64_t now_us);

/* Some members are DEAD from the start on. */
void reconnect_restore(swim_t *swim, uint64_t now_us);
void reconnect_tick(swim_t *swim, uint64_t now_us);
uint64_t reconnect_next_us(const swim_t *swim);


/* skew.c */

/* 1: an epoch would be refused by a clock that shows the same time as ours. */
int skew_is_refused(const swim_t *swim, uint64_t epoch, uint64_t now_us);

/* A datagram was dropped because of its sender's epoch. */
void skew_refused(swim_t *swim, const packet_head_t *head,
    const address_t *from, uint64_t now_us);

/*
 * An epoch of ours, of this run or an earlier one, was refused: counts it, and
 * notifies the owner.
 */
void skew_own_refused(swim_t *swim, uint64_t epoch, uint64_t now_us);

/*
 * The epoch of this member's group was refused: counts it, and notifies the
 * owner.
 */
void skew_group_refused(swim_t *swim, const llmgw_member_t *member,
    uint64_t epoch, uint64_t now_us);

/* Removes such an epoch from the own record. */
void skew_check_group(swim_t *swim, llmgw_member_t *own, uint64_t now_us);

/*
 * Gives our own epoch up if it would be refused: our clock may have been set
 * back.
 */
void skew_check_own(swim_t *swim, uint64_t now_us);

/*
 * Lets an epoch that would be refused give way to any other; to be called
 * before a record is compared with an update.
 */
void skew_give_way(const swim_t *swim, member_t *member, uint64_t now_us);


/* load.c */

void load_set(swim_t *swim, uint32_t active_requests,
    const llmgw_engine_load_t *engine, uint64_t now_us);
void load_tick(swim_t *swim, uint64_t now_us);
uint64_t load_next_us(const swim_t *swim);

#endif /* SWIM_INNER_H */
