
/* Private to agent/ itself: the one struct, and what its files share. */

#ifndef AGENT_INNER_H
#define AGENT_INNER_H

#include <ev.h>

#include "agent/agent.h"
#include "common/tls/endpoint.h"
#include "common/child/child.h"
#include "control/control.h"
#include "supervise/health.h"
#include "agent/local.h"
#include "jobs/jobs.h"
#include "node/node.h"
#include "state/notify.h"
#include "state/publish.h"
#include "supervise/replica_call.h"
#include "supervise/reporter.h"
#include "net/resolve.h"
#include "state/epoch.h"
#include "state/state_file.h"
#include "common/os/background.h"
#include "common/child/supervise.h"


typedef struct agent_seal_job_s  agent_seal_job_t;

/* What is kept in the state directory for the next run. */
typedef enum {
    AGENT_EPOCH = 0,
    AGENT_DRAIN,
    AGENT_VERSION,
    AGENT_NFILES
} agent_file_t;

typedef struct {
    char  text[STATE_FILE_BYTES];       /* as it is to be */
    int   is_writing;
    int   is_due;                       /* to be written again after that */
    int   error;                        /* of the last write, errno */
} agent_kept_t;

/* Files that options name, which the control socket shows. */
#define AGENT_NGIVEN  5

struct agent_s {
    const settings_t  *settings;
    log_t             *log;
    struct ev_loop    *loop;
    clock_source_t    *clock;
    transport_t       *transport;
    node_t            *node;
    publish_t         *publish;
    control_t         *control;
    keyring_t         *keyring;         /* NULL: gossip is plain */
    crypt_t           *crypt;
    char               key_id[KEYRING_ID_TEXT_BYTES];
    agent_seal_job_t  *keys_job;        /* NULL: no change is under way */
    int                is_keys_stale;   /* to be read again after that */
    resolve_t         *resolve;         /* NULL: no seeds */
    health_t          *health;          /* NULL: not asked (any more) */
    local_t            local;
    replica_call_t    *call;            /* NULL: a gateway's */
    tls_endpoint_t     endpoint;        /* for calls to replicas; names: own */
    char               unfit[TLS_ERROR_BYTES];      /* why the replica's port
                                           is not asked, as last logged */
    background_t      *writer;          /* of files */
    agent_kept_t       kept[AGENT_NFILES];
    jobs_t             jobs;            /* what operators ordered */
    command_env_t      env;
    command_peer_t    *reporter;        /* the replica's connection */
    reporter_t         watch;           /* and its process */
    int64_t            reported_pid;    /* which it says it is */
    int                is_former;       /* it is of before the child's start */
    json_t            *pipelines;       /* how its shards do, as it says; NULL:
                                           it uses none */
    json_t            *callers;         /* of a shard, as it reports them; or
                                           NULL */
    ev_timer           term_again;      /* to that process, in a handover */
    int                term_looks;      /* whether it drains, since the first */
    int                terms;           /* SIGTERMs since then */

    supervise_t        supervise;       /* with a command: */
    child_t            child;
    ev_timer           child_due;
    char               version[LLMGW_MEMBERS_NAME_BYTES];   /* "{version}" */
    int                is_version_ordered;      /* in this run or before */
    notify_t           notify;

    ev_timer           heartbeat;
    ev_timer           stall;
    ev_timer           publish_due;
    ev_prepare         flush;
    ev_signal          on_term;
    ev_signal          on_int;
    ev_signal          on_quit;
    ev_signal          on_hup;
    uint64_t           began_us;        /* monotonic */
    ev_timer           hold;
    ev_timer           drain;
    int                is_successor;    /* of an agent that did not leave */
    int                is_held;         /* and silent yet */
    int                is_leaving;
    int                is_hurried;      /* no streams are waited for */
    int                has_parted;      /* LEFT is being sent */
    int                has_conflict;    /* another had our id first */
    command_file_t     files[AGENT_NGIVEN + 1];
    char               drop_from[ADDRESS_TEXT_BYTES];
    char               trouble[LLMGW_MEMBERS_ERROR_BYTES];
                                        /* why the segment is not written; "":
                                           it is */
};


/* segment.c: what others see of the members. */

void agent_segment_init(agent_t *agent);

/* -1 and a reason; a disk that refuses the segment is none. */
int agent_segment_create(agent_t *agent, char *error);
void agent_segment_destroy(agent_t *agent);

/* The last run's members, so that the first publication takes nothing away
   that is alive. */
void agent_segment_restore(agent_t *agent);

/* swim_callbacks_t's find_models, and command_env_t's show_models. */
const char *agent_segment_models(void *data, uint64_t list, size_t *bytes);

/* Publishes what is marked; before the loop sleeps the same, unless the last
   time was just now (0: that is still to come); and each second. */
void agent_segment_publish(agent_t *agent);
int agent_segment_flush(agent_t *agent);
void agent_segment_beat(agent_t *agent);


/* replica.c: the own replica. */

void agent_replica_init(agent_t *agent);

/* Begins to ask a replica that may never report.  -1 and a reason. */
int agent_replica_watch(agent_t *agent, char *error);
void agent_replica_done(agent_t *agent);

/* For the control socket; data is the agent. */
const command_error_t *agent_replica_report(void *data, command_peer_t *peer,
    const report_t *report);
void agent_replica_lost(void *data, command_peer_t *peer);

/* agent->local has changed: tells the cluster. */
void agent_replica_changed(agent_t *agent);


/* replica_child.c: the own replica as a child process; no-ops without a
   command. */

void agent_child_init(agent_t *agent);
void agent_child_begin(agent_t *agent);
void agent_child_done(agent_t *agent);

/* A replica began to report, which may be an earlier agent's child. */
void agent_child_meet(agent_t *agent);

/* The replica said goodbye. */
void agent_child_parted(agent_t *agent);

/* swim_callbacks_t's on_restart. */
order_rc_t agent_child_restart(void *data, const char *version);

/* Ends it and starts it again, as it is; without waiting for its streams. */
order_rc_t agent_child_renew(agent_t *agent);

/* Stops it for good.  Called again: without waiting for its streams. */
void agent_child_stop(agent_t *agent);
int agent_child_is_over(const agent_t *agent);


/* keep.c: what the next run finds on the disk. */

/* -1 and a reason. */
int agent_keep_create(agent_t *agent, char *error);

/* Waits for what is being written, two seconds at most. */
void agent_keep_destroy(agent_t *agent);

/* The text of that file from now on; nothing without --state-dir. */
void agent_keep(agent_t *agent, agent_file_t file, const char *text);

/* It could not be written, errno; agent_keep_retry() tries again. */
void agent_keep_lacking(agent_t *agent, agent_file_t file, const char *text,
    int error);
void agent_keep_retry(agent_t *agent);

/*
 * swim_callbacks_t's is_kept: nothing is being written that an answer would
 * promise.  node_kept() is called when it is again.
 */
int agent_keep_is_done(void *data);

/* Why something is not written; NULL: all is. */
const char *agent_keep_trouble(const agent_t *agent);


/* replica_drain.c: passes the drain on to the own replica. */

/* -1 and a reason. */
int agent_drain_create(agent_t *agent, char *error);
void agent_drain_destroy(agent_t *agent);

/* The owner of its drain when the last run ended; NULL: unknown. */
const char *agent_drain_kept(agent_t *agent);

/* swim_callbacks_t's on_drain. */
void agent_drain_act(void *data, unsigned what);

/* The replica is gone: calls to it that wait are dropped. */
void agent_drain_replica_gone(agent_t *agent);


/* handover.c: another one of its standby group is to be active. */

/* swim_callbacks_t's on_switch. */
order_rc_t agent_handover_begin(void *data);

/* The own replica's connection is gone. */
void agent_handover_reporter_gone(agent_t *agent);

void agent_handover_init(agent_t *agent);
void agent_handover_done(agent_t *agent);


/* life.c: the beginning and the end. */

void agent_life_init(agent_t *agent);
void agent_life_done(agent_t *agent);

/* All parts are there: begins to serve. */
void agent_life_begin(agent_t *agent);

/* The replica's state is known: gossip may be sent from now on. */
void agent_life_speak(agent_t *agent);

/*
 * Leaves, as at SIGTERM; data is the agent, for the control socket.
 * agent_life_is_over() is asked in each iteration and ends the loop.
 */
void agent_leave(void *data);
int agent_life_is_over(agent_t *agent);



/* seal.c: what gossip is sealed with. */

/* -1 and a reason; nothing to do without --keyring. */
int agent_seal_create(agent_t *agent, char *error);
void agent_seal_destroy(agent_t *agent);

/* SIGHUP. */
void agent_seal_reload(struct ev_loop *loop, ev_signal *signal, int events);

/* For the control socket; data is the agent. */
json_t *agent_seal_command(void *data, command_peer_t *peer,
    command_keys_t verb, const char *text);

/* The id of the key that seals, valid until the next change; NULL: gossip is
   plain. */
const char *agent_seal_primary(agent_t *agent);


/* facts.c: what the control socket shows; data is the agent. */

llmgw_roster_t agent_facts_roster(void *data);
void agent_facts_traits(void *data, const char *id, command_traits_t *traits);
void agent_facts_files(agent_t *agent);
void agent_facts_status(void *data, command_status_t *status);

#endif /* AGENT_INNER_H */
