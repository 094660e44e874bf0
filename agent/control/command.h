
/*
 * Requests on the control socket and their answers.
 *
 * No sockets here: a line comes in and a JSON object goes out, so that tests
 * and the fuzzer send the same lines as people do.  A command is an entry in
 * one table, with the right that it needs, and a function.  docs/control.md
 * shows each command with its answer.
 */

#ifndef COMMAND_H
#define COMMAND_H

#include <jansson.h>
#include <sys/types.h>

#include "common/swim_counters.h"
#include "control/report.h"
#include "proto/members/members.h"


/* A connection that sends requests. */
typedef struct {
    uid_t  uid;             /* as the kernel reports it */
    int    is_reporter;     /* it is the replica's, and has reported */
    int    wants_events;    /* until it closes, it gets events */
    int    waits_for_end;   /* its answer comes when the agent has left */

    /* The job that works for this connection, and sends it lines by
       control_send(); when the connection ends, on_gone ends the job.  NULL:
       none. */
    void  *job;
    void  (*on_gone)(void *job);
} command_peer_t;

typedef struct {
    const char  *code;      /* for programs: "busy" */
    const char  *text;      /* for people */
} command_error_t;

/* The request of a rolling update. */
typedef struct {
    const char   *to;           /* the new version */
    const char  **ids;          /* of the replicas to update; NULL: all */
    size_t        nids;
    const char   *stop;         /* shell commands; NULL: none */
    const char   *start;
    int64_t       drain_timeout_ms;
    int64_t       rejoin_timeout_ms;
    int64_t       max_unavailable;
    int64_t       min_available;    /* -1: not given */
    int           is_dry;
} command_update_t;

/* What is known of a member and is not in the segment. */
typedef struct {
    int          can_restart;
    const char  *update;        /* id of the rolling update that it drives; "":
                                   none */
    const char  *detail;        /* only for our own replica: why its engine does
                                   not run; "": it runs, or the reason is not
                                   known */
    uint32_t     pings_lost;    /* last pings without an answer by datagram */
    int64_t      heard_ms;      /* time since its last ping; -1: none came */
    int64_t      clock_ahead_ms;
    int          has_clock;
} command_traits_t;

/* A file that the agent was given, and the option that named it, for checks; a
   NULL ends the array. */
typedef struct {
    const char  *option;
    const char  *path;          /* NULL: not given */
} command_file_t;

/* The agent itself. */
typedef struct {
    const llmgw_member_t       *own;
    const llmgw_member_load_t  *load;
    const swim_counters_t      *counters;
    const char                 *key;    /* id of the sealing key; NULL: none */
    size_t                      backlog;
    unsigned                    local_health;
    int                         is_joined;
    int                         is_isolated;
    const char                 *segment_trouble;    /* why it is not written; */
    const char                 *state_trouble;      /* NULL: it is */
    json_t                     *pipelines;          /* NULL: there are none */
    json_t                     *callers;            /* likewise */
    int                         is_lock_away;       /* of its replica's group */
    const command_file_t       *files;              /* NULL: none */
    const char                 *drop_reason;    /* of the last datagram that */
    const char                 *drop_from;      /* was dropped; NULL: none */
    uint64_t                    drop_us;
} command_status_t;

typedef enum {
    COMMAND_KEYS_LIST = 0,
    COMMAND_KEYS_ADD,
    COMMAND_KEYS_USE,
    COMMAND_KEYS_REMOVE
} command_keys_t;

/* Commands that take long; their data is jobs_data of the command_env_t. */
typedef struct {
    /* Their answers, the last line included, are sent by control_send(). */
    void  (*on_drain)(void *data, command_peer_t *peer, const char *id,
                      uint64_t timeout_ms, int is_forced);
    void  (*on_undrain)(void *data, command_peer_t *peer, const char *id);
    void  (*on_switch)(void *data, command_peer_t *peer, const char *group,
                       uint64_t timeout_ms);

    /* These return the answer; the request stays the caller's. */
    json_t  *(*on_update)(void *data, command_peer_t *peer,
                          const command_update_t *update);
    json_t  *(*on_abort)(void *data, command_peer_t *peer);

    /* The update that the agent drives, or drove last; JSON's null: none. */
    json_t  *(*on_show_update)(void *data);
} command_jobs_t;

/*
 * What the commands need from the agent.  A pointer that a function returns is
 * used before the next function is called.
 */
typedef struct {
    const char       *id;
    const char       *role;
    const char       *cluster;
    const char       *members_path;     /* NULL: none is written */
    uid_t             uid;              /* our own; may use all commands, like
                                           root */
    uint64_t          started_us;       /* monotonic */

    uint64_t  (*now_us)(void *data);
    uint64_t  (*wall_us)(void *data);

    /* The members of the cluster, as published last. */
    llmgw_roster_t  (*show_roster)(void *data);
    void  (*show_traits)(void *data, const char *id,
                         command_traits_t *traits);
    void  (*show_status)(void *data, command_status_t *status);

    /* The list of names that a member in the roster names by its hash; NULL: it
       is not there. */
    const char *(*show_models)(void *data, uint64_t models, size_t *bytes);

    /* Takes a report.  NULL: it is accepted; otherwise why not. */
    const command_error_t *(*on_report)(void *data, command_peer_t *peer,
                                        const report_t *report);

    const command_jobs_t  *jobs;
    void                  *jobs_data;

    /* The agent is to leave, as by SIGTERM. */
    void  (*on_leave)(void *data);

    /* Returns the answer.  text: for ADD a key, for the others an id; NULL for
       LIST. */
    json_t  *(*on_keys)(void *data, command_peer_t *peer, command_keys_t verb,
                        const char *text);

    /* For tests: suspects a member falsely.  0; -1: no such member is ALIVE. */
    int   (*on_inject)(void *data, const char *id);
    void             *data;
} command_env_t;


/*
 * Answers one line.  The caller owns the answer; NULL: nothing is sent now (for
 * a report that is not the connection's first, for an answer that comes later,
 * or if out of memory).
 */
json_t *command_answer(const command_env_t *env, command_peer_t *peer,
    const char *line, size_t len);

/* {"ok":false,"error":TEXT,"code":CODE} */
json_t *command_error(const char *code, const char *text);

/* The answer to a request on a connection whose peer->job is not done. */
json_t *command_busy(void);

/*
 * What happened to a member, as an array of events in their order; empty if
 * there is no event (a new incarnation, for example).  before NULL: it is new;
 * after NULL: it was forgotten.  NULL: out of memory.
 */
json_t *command_events(const command_env_t *env,
    const llmgw_member_t *before, const llmgw_member_t *after,
    uint64_t wall_us);

#endif /* COMMAND_H */
