
/*
 * The shards of one model, as an orchestrating replica sees them.
 *
 * They are listed in the members segment that the replica's agent writes.  It
 * is looked at every 100 ms, and read when its generation has changed.  If the
 * segment is absent, damaged or no longer written, the last view stays in use,
 * and a shard that died meanwhile is noticed by its connection.
 *
 *   segment --> view.c --> shards --> path.c --> fleet_find()
 *                            ^ |
 *      fleet_exclude() -----' '--> link.h: connections and sessions
 *      fleet_worked()
 *
 * A shard serves a new session if it computes this model by these weights and
 * numerics, its agent is ALIVE, its process READY and not draining, it has a
 * free place, and it is not excluded.  If its agent is SUSPECT, or it is
 * excluded for anything but corruption, it serves only where no other shard has
 * its layers.  Its queue is the sum of the steps that wait there, the sessions
 * of other orchestrators, and our own.
 *
 * A shard that failed is excluded for 15 s, the next time twice as long, up to
 * 5 min, until it has computed something again.  A new process of the shard is
 * used at once, except after corruption, of which its machine may be the cause.
 *
 * A shard is named by its key, made of its member's id and its process's start.
 * So a key that a caller keeps means that process and no later one.
 *
 * A fleet belongs to one loop and one thread.
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

/* What all shards of a path have in common; read from the head file. */
typedef struct {
    const char  *model;
    uint8_t      weights_id[SHARD_WEIGHTS_BYTES];
    const char  *numerics;
    uint32_t     layers;            /* of the model */
    uint32_t     width;
    uint32_t     vocabulary;
} fleet_want_t;

/* Whether a whole pipeline exists, full or not, has changed to is_ready. */
typedef void (*fleet_changed_pt)(void *data, int is_ready);

/*
 * Opens a fleet, and reads the segment once.  Strings and the key outlive the
 * fleet.  on_changed may be NULL, and is called only from the loop.  NULL: out
 * of memory.
 */
fleet_t *fleet_open(struct ev_loop *loop, const log_t *log,
    const fleet_options_t *options, const fleet_want_t *want,
    fleet_changed_pt on_changed, void *data);

/* All sessions have been closed.  fleet may be NULL. */
void fleet_close(fleet_t *fleet);

int fleet_is_ready(const fleet_t *fleet);


typedef struct {
    uint64_t  key;
    char      id[LLMGW_MEMBERS_NAME_BYTES];
    uint32_t  first;                /* first layer of its slice */
    uint32_t  last;                 /* last layer that it computes */
    int       is_loaded;            /* 0: it has to load its slice first */
} fleet_hop_t;

typedef enum {
    FLEET_FOUND = 0,
    FLEET_GAP,          /* shard_unavailable: no shard computes `layer` */
    FLEET_FULL,         /* shard_full: shards of `layer` have no place */
    FLEET_MISMATCH,     /* weights_mismatch: they have other ids */
    FLEET_TOO_LONG,     /* shard_unavailable: more than 16 hops */
    FLEET_NO_MEMORY     /* out_of_memory */
} fleet_rc_t;

typedef struct {
    fleet_hop_t  hops[SHARD_HOPS_MAX];
    size_t       n;
    uint32_t     layer;                     /* where there is none, if not
                                               FLEET_FOUND */
    char         why[FLEET_WHY_BYTES];      /* why there is none, for people */
} fleet_path_t;

/* Kinds of shards that are used only if those that are ALIVE and not excluded
   do not make a whole path. */
#define FLEET_WITH_LATE     1       /* excluded only for being late */
#define FLEET_WITH_SUSPECT  2       /* their agents are SUSPECT */
#define FLEET_WITH_FAILED   4       /* excluded for anything but corruption */

typedef struct {
    uint32_t         from_layer;    /* the first hop begins there */
    uint32_t         to_layer;      /* the last layer of the path */
    const uint32_t  *keep;          /* boundaries to keep if possible */
    size_t           nkeep;
    const uint64_t  *excluded;      /* keys of shards that this request
                                       excludes */
    size_t           nexcluded;
    unsigned         avoid;         /* FLEET_WITH_..: kinds that are never
                                       used */
    int              is_spare;      /* the work can wait: a shard is full when
                                       half of its places are taken */
} fleet_query_t;

/* Finds the best path, in the order of preference of path.h.  All of *path is
   written. */
fleet_rc_t fleet_find(fleet_t *fleet, const fleet_query_t *query,
    fleet_path_t *path);

/* "shard_unavailable" ...; "" for FLEET_FOUND. */
const char *fleet_reason(fleet_rc_t rc);


/*
 * A shard failed: excludes it.  While it is excluded nothing changes, so that a
 * death that 64 streams report counts once.
 */
void fleet_exclude(fleet_t *fleet, uint64_t key, shard_reason_t reason);

/* 1: by gossip the shard stands still or cannot be reached: its agent is
   SUSPECT or DEAD, or reports STALLED. */
int fleet_is_doubted(const fleet_t *fleet, uint64_t key);

/* The shard computed something: the next exclusion is a first one again. */
void fleet_worked(fleet_t *fleet, uint64_t key);


/* For status and logs: one shard of the model, matching or not. */
typedef struct {
    const char  *id;
    uint32_t     first;
    uint32_t     last;
    uint32_t     sessions;          /* ours */
    uint32_t     queue;
    uint64_t     excluded_ms;       /* time left of the exclusion; 0: not
                                       excluded */
    const char  *excluded_for;      /* the last reason; "": it never was */
    int          is_usable;         /* except for places and exclusion */
    int          is_match;
} fleet_shard_info_t;

/* Visits each shard that is listed, in the order of ids. */
void fleet_each(const fleet_t *fleet,
    void (*visit)(void *data, const fleet_shard_info_t *info), void *data);

#endif /* FLEET_H */
