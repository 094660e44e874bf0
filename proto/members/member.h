
/*
 * A member of the cluster, as recorded in the members segment: the fields,
 * their valid values, and what follows from them.
 *
 * A record is the last report of the member's own agent, and outlives the
 * process that it describes. So the state in a standby group is meaningful only
 * together with the states of the process and of its agent.
 */

#ifndef LLMGW_MEMBER_H
#define LLMGW_MEMBER_H

#include <stddef.h>
#include <stdint.h>


#define LLMGW_MEMBERS_NAME_BYTES     64     /* id, version; with the NUL */
#define LLMGW_MEMBERS_ADDRESS_BYTES  72     /* HOST:PORT with the NUL */
#define LLMGW_MEMBERS_OWNER_BYTES    72
#define LLMGW_MEMBERS_LIST_BYTES     4096   /* the longest list of names */

#define LLMGW_MEMBERS_WEIGHT_MAX     65536

typedef enum {
    LLMGW_LIVENESS_ALIVE = 0,
    LLMGW_LIVENESS_SUSPECT,
    LLMGW_LIVENESS_DEAD,
    LLMGW_LIVENESS_LEFT
} llmgw_liveness_t;

typedef enum {
    LLMGW_SERVICE_STARTING = 0,
    LLMGW_SERVICE_READY,
    LLMGW_SERVICE_STALLED,
    LLMGW_SERVICE_STOPPED,
    LLMGW_SERVICE_DOWN
} llmgw_service_t;

/* The kind of process beside an agent: llmgw_member_role(). */
typedef enum {
    LLMGW_ROLE_REPLICA = 0,
    LLMGW_ROLE_GATEWAY,
    LLMGW_ROLE_SHARD            /* never in `role` of a record */
} llmgw_role_t;

/*
 * Engines of one host that are standbys of each other form a group.  A lock
 * service lets one of them at a time be Active, by an epoch that is greater
 * than any before (lock/).  This is an engine's state in its group by its last
 * report; whether the engine is still alive is shown by its service.
 */
typedef enum {
    LLMGW_GROUP_NONE = 0,       /* it is in no group */
    LLMGW_GROUP_INIT,
    LLMGW_GROUP_STANDBY,
    LLMGW_GROUP_WAKING,
    LLMGW_GROUP_ACTIVE
} llmgw_group_state_t;

#define LLMGW_GROUP_BYTES  32       /* a group's name with the NUL */

#define LLMGW_ZONE_BYTES   32       /* a shard's zone with the NUL */

#define LLMGW_SHARD_MAX_LAYERS  4096    /* more layers than any model has */

/*
 * A shard's report: it computes the layers first .. last of a model that has
 * `layers` of them.  Which model it is, and by which weights, stands in the
 * list that `models` of its record names.  All shards that may serve one
 * request together name the same list (proto/members/shards.h).
 */
typedef struct {
    char      zone[LLMGW_ZONE_BYTES];   /* may be "" */
    uint64_t  memory_bytes;     /* that weights and KV cache take, or would take
                                   where they are not loaded */
    uint16_t  first;            /* layers count from 0 */
    uint16_t  last;
    uint16_t  layers;           /* 0: no report, and all other fields are 0 */
    uint8_t   is_loaded;
    uint8_t   reserved[17];
} llmgw_shard_t;

typedef struct {
    char      id[LLMGW_MEMBERS_NAME_BYTES];
    char      model_version[LLMGW_MEMBERS_NAME_BYTES];
    char      address[LLMGW_MEMBERS_ADDRESS_BYTES];     /* gossip address */
    char      grpc[LLMGW_MEMBERS_ADDRESS_BYTES];        /* "" for a gateway */
    char      drain_owner[LLMGW_MEMBERS_OWNER_BYTES];
    uint64_t  epoch;
    uint64_t  incarnation;
    uint64_t  replica_start_ms;     /* wall clock */
    uint32_t  weight;               /* >= 1 */
    uint32_t  max_capacity;         /* 0: unlimited */
    uint8_t   role;
    uint8_t   liveness;
    uint8_t   service;
    uint8_t   draining;
    uint8_t   is_shard;             /* 1: its role is that of a gateway */
    uint8_t   reserved[3];
    union {
        char           resume_group[LLMGW_MEMBERS_NAME_BYTES];  /* may be "" */
        llmgw_shard_t  shard;       /* of a shard; read it by
                                       llmgw_member_shard() */
    };
    uint64_t  models;               /* hash of the list of their names; 0:
                                       none */
    uint32_t  models_cut;           /* number of names that the list lacks */
    uint8_t   group_state;          /* llmgw_group_state_t */
    uint8_t   group_reserved[3];
    uint64_t  group_epoch;          /* 0: none was granted */
    char      group[LLMGW_GROUP_BYTES];     /* "": of no group */
    uint64_t  group_lock;           /* instance id of its lock service */
} llmgw_member_t;

/*
 * Agents forward as many of a replica's names as fit into this many bytes, so
 * that the longest datagram still has room for its sender's record
 * (agent/swim/wire/packet.h).  The longest name fits.
 */
#define LLMGW_MEMBERS_MODELS_BYTES   256

/* More requests than any engine has. */
#define LLMGW_ENGINE_MAX_REQUESTS    1000000

#define LLMGW_ENGINE_RUNNING         1      /* bits of `reported` */
#define LLMGW_ENGINE_WAITING         2
#define LLMGW_ENGINE_KV              4
#define LLMGW_ENGINE_FREE_BLOCKS     8
#define LLMGW_ENGINE_HITS            16
#define LLMGW_ENGINE_ALL             31

/* More blocks than fit into any memory. */
#define LLMGW_ENGINE_MAX_BLOCKS      1000000000

/*
 * The load that an engine reports.  Zeroed: it reports none.  A block is what
 * the engine's KV cache is made of; its size is the engine's choice.
 */
typedef struct {
    uint32_t  running;
    uint32_t  waiting;
    uint16_t  kv_permille;          /* 0 .. 1000 */
    uint16_t  reported;             /* LLMGW_ENGINE_ bits: which of these it
                                       reports */
    uint32_t  kv_free_blocks;
    uint16_t  hit_permille;         /* share of prompts' blocks that were in the
                                       cache, in the last minute that had
                                       prompts */
    uint16_t  reserved;
} llmgw_engine_load_t;

/*
 * The load of a member.  It is updated in place, and leaves the generation
 * unchanged.
 */
typedef struct {
    uint32_t             active_requests;
    uint64_t             reported_ms;   /* CLOCK_MONOTONIC of this machine;
                                           0: never */
    llmgw_engine_load_t  engine;
} llmgw_member_load_t;


const char *llmgw_role_name(unsigned role);             /* "replica" ... */
const char *llmgw_liveness_name(unsigned liveness);     /* "ALIVE" ... */
const char *llmgw_service_name(unsigned service);       /* "READY" ... */
const char *llmgw_group_state_name(unsigned state);     /* "none", "init" ... */

llmgw_role_t llmgw_member_role(const llmgw_member_t *member);


/* Valid values in a record. */

/* [A-Za-z0-9][A-Za-z0-9._-]{0,62}: ids, versions, cluster names. */
int llmgw_name_is_valid(const char *name, size_t len);

/* [A-Za-z0-9_-][A-Za-z0-9._-]{0,30}: of groups. */
int llmgw_group_is_valid(const char *name, size_t len);

/* Syntax of HOST:PORT; HOST is IPv4, [IPv6] or a host name. */
int llmgw_members_address_is_valid(const char *address);

/* Names of printable ASCII, none of them empty, each ended by a NUL. */
int llmgw_members_list_is_valid(const char *names, size_t bytes);

/* The layers are in order, and strings and flags are valid; or the report is
   empty in all its fields.  Call it only for a shard's record. */
int llmgw_shard_is_valid(const llmgw_shard_t *shard);

/* Without a group there is no state and no epoch; with a group there is a
   state.  The strings must end with a NUL. */
int llmgw_member_group_is_valid(const llmgw_member_t *member);

/*
 * Checks every field.  NULL: all are valid; otherwise a text about the first
 * invalid one.
 */
const char *llmgw_member_reason(const llmgw_member_t *member);


/* What follows from it. */

/*
 * Copies a shard's report.  0; -1: it is not a shard, or has no valid report.
 */
int llmgw_member_shard(const llmgw_member_t *member, llmgw_shard_t *shard);

/* Both members are shards with equal reports, or neither is a shard and their
   resume groups are equal.  Strings must be filled up with NULs. */
int llmgw_member_shards_are_alike(const llmgw_member_t *a,
    const llmgw_member_t *b);

/* Whether both have the same fields of their groups. */
int llmgw_member_groups_are_alike(const llmgw_member_t *a,
    const llmgw_member_t *b);

/*
 * A replica that gets requests: ALIVE, READY, not draining, and of a group the
 * Active one.  The caller has to check that no other member of its group has a
 * greater epoch.
 */
int llmgw_member_is_routable(const llmgw_member_t *member);

/* Whether the member serves for that group, as far as its agent knows. */
int llmgw_group_is_active(const llmgw_member_t *member, const char *group);

/*
 * Whether the member could take over now: a living process that waits for the
 * lock.
 */
int llmgw_group_is_standby(const llmgw_member_t *member, const char *group);

/* Whether the member has a process that belongs to that group, in any state. */
int llmgw_group_has_process(const llmgw_member_t *member, const char *group);

/* The group's active member with the greatest epoch; NULL: there is none. */
const llmgw_member_t *llmgw_group_active(const llmgw_member_t *members,
    size_t n, const char *group);

/*
 * Whether a shard is offered: it has a valid report, its agent is ALIVE or
 * SUSPECT, and its process runs.  When this changes there is an event,
 * shard_advertised or shard_retired.
 */
int llmgw_shard_is_advertised(const llmgw_member_t *member);

/*
 * Whether a new session may be opened at a shard: it is offered, ALIVE, READY
 * and not draining.
 */
int llmgw_shard_is_usable(const llmgw_member_t *member);


/* What is known of a cluster: its members in the order of their ids, and the
   load of each. */
typedef struct {
    const llmgw_member_t       *members;
    const llmgw_member_load_t  *loads;
    size_t                      n;
} llmgw_roster_t;


/* The member with that id; NULL: there is none. */
const llmgw_member_t *llmgw_roster_find(const llmgw_roster_t *roster,
    const char *id);

#endif /* LLMGW_MEMBER_H */
