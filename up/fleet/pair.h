
/*
 * One engine's two processes: the adapter that nginx asks, and the agent that
 * tells the cluster of it.
 *
 *   LIVE ----------> DRAINING ------------> LEAVING -----------> gone
 *        retire:      adapter   its streams   agent    it told
 *        SIGTERM      refuses   have ended,   SIGTERM  the others
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

/* Agents refuse more. */
#define PAIR_DETAIL_BYTES  128

typedef enum {
    PAIR_LIVE = 0,
    PAIR_DRAINING,
    PAIR_LEAVING
} pair_state_t;

/* What the cluster knows of it, at the last look. */
typedef struct {
    int         is_listed;
    int         is_ready;           /* READY, and alive */
    char        service[16];        /* READY, STARTING, ...; "" : nothing */
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
    char             target[URL_BYTES];     /* a URL or a command */
    const void      *origin;                /* the source that it is of */
    unsigned         slot;

    pair_state_t     state;
    program_t        adapter;
    program_t        agent;
    probe_t          probe;                 /* of an engine with a URL */
    pair_seen_t      seen;
    members_t        own;                   /* of an engine that is started */
    char             detail[PAIR_DETAIL_BYTES];     /* why it does not run */

    char             said[PAIR_TEXT_BYTES]; /* to people, last */
    pair_state_t     said_state;
    double           said_at;
    double           began_at;
    pair_t          *next;
};


/*
 * Id, kind, target, slot and origin are set by the caller, the rest is zero.
 * Writes its files and starts both.  key: of the engine, or NULL.  0, or -1
 * and a reason.
 */
int pair_begin(pair_t *pair, struct ev_loop *loop, const files_t *files,
    const tools_t *tools, const char *key, char error[FILES_ERROR_BYTES]);

/* Drains it and ends it; on_gone comes once.  is_hurried: streams end now. */
void pair_retire(pair_t *pair, int is_hurried);

/* No process is left, or none matters. */
void pair_done(pair_t *pair);

/* From the agent's list of members. */
void pair_see(pair_t *pair, const json_t *members);

/* How it is: one line for people. */
void pair_text(const pair_t *pair, char *text, size_t bytes);

/* Adapter, engine and cluster agree that it serves. */
int pair_is_ready(const pair_t *pair);

#endif /* PAIR_H */
