
/*
 * Private to replica/shard/fleet/: what a fleet knows of its shards.
 *
 * A shard is remembered while it is listed, has a session of ours, or is
 * excluded.  Its peer is the connection to it; the peer outlives the shard only
 * to let streams end.  A session is counted at its shard until it is lost or
 * closed, so the shard outlives it.
 */

#ifndef FLEET_INNER_H
#define FLEET_INNER_H

#include <sys/queue.h>

#include "proto/members/shards.h"
#include "replica/shard/fleet/ban.h"
#include "replica/shard/fleet/link.h"
#include "replica/shard/fleet/path.h"


typedef struct peer_s  peer_t;

/* A list in the segment's names area, read once, since lists never change. */
typedef struct {
    uint64_t             hash;
    llmgw_shard_model_t  model;
    unsigned             is_same_model:1;   /* its name is our model's */
    unsigned             is_match:1;        /* its ids are ours, too */
} fleet_list_t;

typedef struct {
    char             id[LLMGW_MEMBERS_NAME_BYTES];
    uint64_t         key;
    address_t        address;
    uint32_t         first;
    uint32_t         last;
    size_t           list;          /* index; 0 if it is not listed */
    size_t           record;        /* index in the view */

    uint32_t         capacity;      /* sessions; 0: unlimited */
    uint32_t         active;        /* sessions of all orchestrators, as
                                       reported */
    uint32_t         waiting;       /* steps, as reported */
    uint32_t         sessions;      /* ours, now */
    uint32_t         highest[2];    /* most sessions of ours, in this second and
                                       the last */
    uint64_t         full_until_ms; /* after it has refused a session */

    ban_t            ban;
    peer_t          *peer;          /* NULL: no connection */

    unsigned         is_listed:1;
    unsigned         is_match:1;    /* this model, these ids, our layers */
    unsigned         is_usable:1;   /* ALIVE or SUSPECT, READY, not draining,
                                       reachable */
    unsigned         is_suspect:1;
    unsigned         is_stalled:1;
    unsigned         is_dead:1;     /* its agent is DEAD */
    unsigned         is_down:1;     /* its process is DOWN, by its agent */
    unsigned         is_loaded:1;
    unsigned         is_far:1;
} fleet_shard_t;

typedef TAILQ_HEAD(fleet_sessions_s, link_session_s)  fleet_sessions_t;
typedef TAILQ_HEAD(fleet_peers_s, peer_s)  fleet_peers_t;

/* The state of the segment; each change is logged once. */
typedef enum {
    VIEW_FRESH = 0,
    VIEW_ABSENT,
    VIEW_REFUSED,
    VIEW_STALE
} view_state_t;

struct fleet_s {
    struct ev_loop          *loop;
    const log_t             *log;
    fleet_options_t          options;
    fleet_want_t             want;
    fleet_changed_pt         on_changed;
    void                    *data;

    ev_timer                 ticker;
    uint64_t                 second_at_ms;      /* when highest[0] began */
    int                      is_ready;
    int                      is_dirty;          /* whether there is a pipeline
                                                   has to be found out again */
    char                     why[FLEET_WHY_BYTES];  /* why there is none, as it
                                                       was logged */

    llmgw_members_reader_t  *reader;
    llmgw_members_view_t     view;
    view_state_t             view_state;
    int                      is_read_again;     /* to be read again: a list was
                                                   missing */
    fleet_list_t            *lists;             /* LLMGW_MEMBERS_LISTS */
    size_t                   nlists;

    fleet_shard_t          **shards;            /* by id */
    fleet_shard_t          **by_key;
    size_t                   nshards;
    size_t                   capacity;          /* of shards, candidates and
                                                   candidate_of */
    path_shard_t            *candidates;
    size_t                  *candidate_of;      /* their indices in shards */

    fleet_peers_t            peers;
    fleet_sessions_t         lost;              /* on_lost() is to be called */
    ev_prepare               teller;            /* runs only when it is fed an
                                                   event */
    uint64_t                 last_session;
    uint8_t                 *chunk;             /* SHARD_CHUNK_BYTES */
};


/* CLOCK_MONOTONIC. */
uint64_t fleet_now_ms(void);

/* The shard with that key; NULL: its process is not known any more. */
fleet_shard_t *fleet_shard_of(const fleet_t *fleet, uint64_t key);

/* Counts a session more, or one less. */
void fleet_count(fleet_shard_t *shard, int more);

/* Sessions at the shard: ours, and those that it reports above the most that we
   had in the last two seconds. */
uint32_t fleet_load(const fleet_shard_t *shard);

/* In addition to those of fleet.h: candidates that have no free place. */
#define FLEET_WITH_FULL  8
#define FLEET_WITH_ALL   (FLEET_WITH_LATE|FLEET_WITH_SUSPECT                  \
                          |FLEET_WITH_FAILED|FLEET_WITH_FULL)

/*
 * Makes candidates of the shards that may serve and that the query does not
 * exclude; returns their number.
 */
size_t fleet_collect(fleet_t *fleet, const fleet_query_t *query,
    unsigned with);


/* view.c: the segment.  0, or -1: no memory. */
int view_open(fleet_t *fleet);
void view_close(fleet_t *fleet);

/* Reads what has changed.  Closes no connection and makes no callback. */
void view_look(fleet_t *fleet);

#endif /* FLEET_INNER_H */
