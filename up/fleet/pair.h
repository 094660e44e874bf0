
/*
 * One engine's two processes: the adapter, to which nginx sends requests, and
 * the agent, which announces it to the cluster.
 *
 *   LIVE ----------> DRAINING ------------> LEAVING -----------> gone
 *        retire:      adapter   its streams   agent    its leave
 *        SIGTERM      refuses   have ended,   SIGTERM  was sent
 *                     new work  it is gone
 */

#ifndef PAIR_H
#define PAIR_H

#include <jansson.h>

#include "up/fleet/files.h"
#include "up/fleet/members.h"
#include "up/fleet/probe.h"
#include "up/host/program.h"


#define PAIR_TEXT_BYTES  1024
#define PAIR_STARTING    "starting"

/* Agents refuse longer ones. */
#define PAIR_DETAIL_BYTES  128

typedef enum {
    PAIR_LIVE = 0,
    PAIR_DRAINING,
    PAIR_LEAVING
} pair_state_t;

/* What the cluster knew about the replica at the last look. */
typedef struct {
    int         is_listed;
    int         is_ready;           /* READY, and alive */
    char        service[16];        /* READY, STARTING, ...; "": unknown */
    char        model[DIALECT_MODEL_BYTES];
    json_int_t  capacity;           /* 0: no limit */
    json_int_t  active;             /* streams */
} pair_seen_t;

typedef struct pair_s  pair_t;

typedef void (*pair_gone_pt)(void *data, pair_t *pair);

struct pair_s {
    struct ev_loop  *loop;
    const files_t   *files;
    pair_gone_pt     on_gone;
    void            *data;

    char             id[SOURCE_ID_BYTES];
    source_kind_t    kind;
    char             target[URL_BYTES];     /* URL or command */
    const void      *origin;                /* the source that it belongs to */
    unsigned         slot;

    pair_state_t     state;
    program_t        adapter;
    program_t        agent;
    probe_t          probe;                 /* used for an engine with a URL */
    pair_seen_t      seen;
    members_t        own;                   /* of an engine started here */
    char             detail[PAIR_DETAIL_BYTES];     /* why it is down */

    char             said[PAIR_TEXT_BYTES]; /* the text printed last */
    pair_state_t     said_state;
    double           said_at;
    double           began_at;
    pair_t          *next;
};


/*
 * The caller has set id, kind, target, slot and origin; the rest is zero.
 * Writes the files of both processes and starts them.  key: the engine's key,
 * or NULL.  0, or -1 and a reason.
 */
int pair_begin(pair_t *pair, struct ev_loop *loop, const files_t *files,
    const tools_t *tools, const char *key, char error[FILES_ERROR_BYTES]);

/*
 * Drains the engine, then ends both processes; on_gone is called once.
 * is_hurried: does not wait for streams.
 */
void pair_retire(pair_t *pair, int is_hurried);

/*
 * Frees what the pair has and removes its files.  Its processes have ended, or
 * are no longer waited for.
 */
void pair_done(pair_t *pair);

/* Takes note of what the agent's list says about the replica. */
void pair_see(pair_t *pair, const json_t *members);

/* The state of the engine, as one line for people. */
void pair_text(const pair_t *pair, char *text, size_t bytes);

/* Whether adapter, engine and cluster all report it ready. */
int pair_is_ready(const pair_t *pair);

#endif /* PAIR_H */
