
/*
 * The shards of one model, as an orchestrating replica sees them.
 *
 * Who they are comes from the members segment that its agent writes: read
 * every 100 ms, at once when its generation moves.  A segment that is absent,
 * damaged or no longer written changes nothing: the last view stands, and a
 * shard that died meanwhile is found by its connection.
 *
 *   segment --> view.c --> shards --> path.c --> fleet_find()
 *                            ^ |
 *      fleet_exclude() -----' '--> link.h: connections and sessions
 *      fleet_worked()
 *
 * A shard serves a new session if it computes this model by these weights and
 * numerics, its agent is ALIVE, its process READY and not draining, it has a
 * free place, and it is not excluded.  With an agent that is SUSPECT, or
 * excluded for whatever but corruption, it does where nobody else has its
 * layers.  Its queue is the steps that wait there, the sessions of others, and
 * our own.
 *
 * A shard that failed is excluded for 15 s, the next time twice as long, up to
 * 5 min, until it has computed something again.  A new process of it is let in
 * at once, except after corruption, for which its machine may be the cause.
 *
 * A shard is named by its key: its member's id and the start of its process.
 * So a key that a caller kept means that process and no later one.
 *
 * All of it belongs to one loop and one thread.
 */

#ifndef FLEET_H
#define FLEET_H

#include <ev.h>
#include <stddef.h>
#include <stdint.h>

#include "common/grpc/conn.h"
#include "common/log.h"
#include "proto/members/members.h"
#include "replica/shard/key.h"
#include "replica/shard/limits.h"
#include "replica/shard/reason.h"
#include "replica/shard/tensor.h"


typedef struct fleet_s  fleet_t;

/* Shards of the model that are remembered; others are not used. */
#define FLEET_SHARDS_MAX  4096

#define FLEET_WHY_BYTES   512

typedef struct {
    const char          *members;   /* the segment's path */
    const char          *id;        /* our member id, never our own first hop */
    const char          *zone;      /* "": all zones are alike */
    tensor_dtype_t       dtype;
    const shard_key_t   *key;       /* NULL: sessions carry no token */
    grpc_conn_options_t  conn;      /* of connections to shards */
} fleet_options_t;

/* What all shards of a path have in common; the head file says it. */
typedef struct {
    const char  *model;
    uint8_t      weights_id[SHARD_WEIGHTS_BYTES];
    const char  *numerics;
    uint32_t     layers;            /* of the model */
    uint32_t     width;
    uint32_t     vocabulary;
} fleet_want_t;

/* A whole pipeline exists now, full or not; or it does not any more. */
typedef void (*fleet_changed_pt)(void *data, int is_ready);

/*
 * Opens, and looks at the segment once.  Strings and the key outlive the fleet.
 * on_changed comes from the loop alone, and may be NULL.  NULL: no memory.
 */
fleet_t *fleet_open(struct ev_loop *loop, const log_t *log,
    const fleet_options_t *options, const fleet_want_t *want,
    fleet_changed_pt on_changed, void *data);

/* When all sessions are closed.  NULL is fine. */
void fleet_close(fleet_t *fleet);

int fleet_is_ready(const fleet_t *fleet);


typedef struct {
    uint64_t  key;
    char      id[LLMGW_MEMBERS_NAME_BYTES];
    uint32_t  first;                /* its slice's own */
    uint32_t  last;                 /* where it stops */
    int       is_loaded;            /* else it has to load first */
} fleet_hop_t;

typedef enum {
    FLEET_FOUND = 0,
    FLEET_GAP,          /* shard_unavailable: no shard leads over `layer` */
    FLEET_FULL,         /* shard_full: those that do have no place */
    FLEET_MISMATCH,     /* weights_mismatch: those that do have other ids */
    FLEET_TOO_LONG,     /* shard_unavailable: more than 16 hops */
    FLEET_NO_MEMORY     /* out_of_memory */
} fleet_rc_t;

typedef struct {
    fleet_hop_t  hops[SHARD_HOPS_MAX];
    size_t       n;
    uint32_t     layer;                     /* not FLEET_FOUND: where */
    char         why[FLEET_WHY_BYTES];      /* and why, for people */
} fleet_path_t;

/* Shards that are asked only where those that are ALIVE and not excluded do not
   lead over all layers. */
#define FLEET_WITH_LATE     1       /* excluded for nothing but being late */
#define FLEET_WITH_SUSPECT  2       /* their agents are */
#define FLEET_WITH_FAILED   4       /* excluded for all but corruption */

typedef struct {
    uint32_t         from_layer;    /* the first hop begins there */
    uint32_t         to_layer;      /* computed too */
    const uint32_t  *keep;          /* boundaries to keep, if one can */
    size_t           nkeep;
    const uint64_t  *excluded;      /* keys of shards, by this request */
    size_t           nexcluded;
    unsigned         avoid;         /* FLEET_WITH_..: not even then */
    int              is_spare;      /* what can wait: a shard is full when half
                                       of its places are taken */
} fleet_query_t;

/* The order of preference is path.h's.  path is written whole. */
fleet_rc_t fleet_find(fleet_t *fleet, const fleet_query_t *query,
    fleet_path_t *path);

/* "shard_unavailable" ...; "" for FLEET_FOUND. */
const char *fleet_reason(fleet_rc_t rc);


/*
 * A shard failed.  While it is excluded already nothing changes: what 64
 * streams say of one death counts once.
 */
void fleet_exclude(fleet_t *fleet, uint64_t key, shard_reason_t reason);

/* 1: by gossip it stands still or cannot be reached: its agent is SUSPECT or
   DEAD, or says STALLED. */
int fleet_is_doubted(const fleet_t *fleet, uint64_t key);

/* It computed something: the next exclusion is a first one again. */
void fleet_worked(fleet_t *fleet, uint64_t key);


/* For status and logs: one shard of the model, matching or not. */
typedef struct {
    const char  *id;
    uint32_t     first;
    uint32_t     last;
    uint32_t     sessions;          /* ours */
    uint32_t     queue;
    uint64_t     excluded_ms;       /* for so long yet; 0: it is not */
    const char  *excluded_for;      /* the last reason; "": never was */
    int          is_usable;         /* but for places and exclusion */
    int          is_match;
} fleet_shard_info_t;

/* Each shard that is listed, by id. */
void fleet_each(const fleet_t *fleet,
    void (*visit)(void *data, const fleet_shard_info_t *info), void *data);

#endif /* FLEET_H */
