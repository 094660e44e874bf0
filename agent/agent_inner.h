
/*
 * Private to agent/ itself: the one struct of an agent, and what its files
 * share.
 */

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

/* The files that are kept in the state directory for the next run. */
typedef enum {
    AGENT_EPOCH = 0,
    AGENT_DRAIN,
    AGENT_VERSION,
    AGENT_NFILES
} agent_file_t;

typedef struct {
    char  text[STATE_FILE_BYTES];       /* its content, as wanted */
    int   is_writing;
    int   is_due;                       /* to be written again after that
                                           write */
    int   error;                        /* errno of the last write */
} agent_kept_t;

/* The number of files named by options, which the control socket shows. */
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
    int                is_keys_stale;   /* the file is to be read after that
                                           change */
    resolve_t         *resolve;         /* NULL: no seeds */
    health_t          *health;          /* NULL: it is not asked, or not any
                                           more */
    local_t            local;
    replica_call_t    *call;            /* NULL: this is a gateway's agent */
    tls_endpoint_t     endpoint;        /* TLS for calls to replicas; its names
                                           are the agent's own */
    char               unfit[TLS_ERROR_BYTES];      /* why the replica's port
                                           is not asked, as last logged */
    background_t      *writer;          /* thread that writes files */
    agent_kept_t       kept[AGENT_NFILES];
    jobs_t             jobs;            /* commands that operators gave */
    command_env_t      env;
    command_peer_t    *reporter;        /* the replica's connection */
    reporter_t         watch;           /* and the process at its other end */
    int64_t            reported_pid;    /* pid that this process reports */
    int                is_former;       /* it is older than the child */
    json_t            *pipelines;       /* the replica's report about its
                                           shards; NULL: it uses none */
    json_t            *callers;         /* a shard's report about its callers;
                                           or NULL */
    ev_timer           term_again;      /* when that process gets the next
                                           SIGTERM, in a handover */
    int                term_looks;      /* checks since the first SIGTERM
                                           whether it drains */
    int                terms;           /* SIGTERMs since the first */

    supervise_t        supervise;       /* if there is a command: */
    child_t            child;
    ev_timer           child_due;
    char               version[LLMGW_MEMBERS_NAME_BYTES];   /* "{version}" */
    int                is_version_ordered;      /* ordered in this run or
                                                   before */
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
    int                is_successor;    /* an earlier agent did not leave */
    int                is_held;         /* and nothing is sent yet */
    int                is_leaving;
    int                is_hurried;      /* streams are not waited for */
    int                has_parted;      /* LEFT is being sent */
    int                has_conflict;    /* another agent had our id first */
    command_file_t     files[AGENT_NGIVEN + 1];
    char               drop_from[ADDRESS_TEXT_BYTES];
    char               trouble[LLMGW_MEMBERS_ERROR_BYTES];
                                        /* why the segment is not written; "":
                                           it is */
};


/* segment.c: what others see of the members. */

void agent_segment_init(agent_t *agent);

/*
 * Opens or makes the segment.  -1 and a reason.  A disk that refuses the
 * segment is no error.
 */
int agent_segment_create(agent_t *agent, char *error);
void agent_segment_destroy(agent_t *agent);

/* Takes over the last run's members, so that the first publication does not
   remove any living one. */
void agent_segment_restore(agent_t *agent);

/* swim_callbacks_t's find_models, and command_env_t's show_models. */
const char *agent_segment_models(void *data, uint64_t list, size_t *bytes);

/* Publish what is marked: at once; before the loop sleeps, unless the last
   publication was just now (0: something is still to be published); and each
   second. */
void agent_segment_publish(agent_t *agent);
int agent_segment_flush(agent_t *agent);
void agent_segment_beat(agent_t *agent);


/* replica.c: this agent's own replica. */

void agent_replica_init(agent_t *agent);

/*
 * Begins to ask a replica that may never report for its health.  -1 and a
 * reason.
 */
int agent_replica_watch(agent_t *agent, char *error);
void agent_replica_done(agent_t *agent);

/* For the control socket; data is the agent. */
const command_error_t *agent_replica_report(void *data, command_peer_t *peer,
    const report_t *report);
void agent_replica_lost(void *data, command_peer_t *peer);

/* To be called when agent->local has changed: tells the cluster. */
void agent_replica_changed(agent_t *agent);


/* replica_child.c: the own replica as a child process; no-ops without a
   command. */

void agent_child_init(agent_t *agent);
void agent_child_begin(agent_t *agent);
void agent_child_done(agent_t *agent);

/* A replica has begun to report, which may be an earlier agent's child. */
void agent_child_meet(agent_t *agent);

/* The replica said goodbye. */
void agent_child_parted(agent_t *agent);

/* swim_callbacks_t's on_restart. */
order_rc_t agent_child_restart(void *data, const char *version);

/*
 * Ends the child and starts it again, with the same version; does not wait for
 * its streams.
 */
order_rc_t agent_child_renew(agent_t *agent);

/*
 * Stops the child for good.  If called again, its streams are not waited for.
 */
void agent_child_stop(agent_t *agent);
int agent_child_is_over(const agent_t *agent);


/* keep.c: what the next run finds on the disk. */

/* Begins to keep files.  -1 and a reason. */
int agent_keep_create(agent_t *agent, char *error);

/* Waits for the writes that are under way, two seconds at most. */
void agent_keep_destroy(agent_t *agent);

/*
 * Keeps this text in that file from now on; does nothing without --state-dir.
 */
void agent_keep(agent_t *agent, agent_file_t file, const char *text);

/*
 * The text could not be written; error is the errno.  agent_keep_retry() tries
 * again.
 */
void agent_keep_lacking(agent_t *agent, agent_file_t file, const char *text,
    int error);
void agent_keep_retry(agent_t *agent);

/*
 * swim_callbacks_t's is_kept.  0: a text is being written on which an answer
 * depends; node_kept() is called when that is done.
 */
int agent_keep_is_done(void *data);

/* Why a file is not written; NULL: all are. */
const char *agent_keep_trouble(const agent_t *agent);


/* replica_drain.c: passes the drain on to the own replica. */

/* Begins to pass the drain on.  -1 and a reason. */
int agent_drain_create(agent_t *agent, char *error);
void agent_drain_destroy(agent_t *agent);

/* The owner of the drain when the last run ended; NULL: unknown. */
const char *agent_drain_kept(agent_t *agent);

/* swim_callbacks_t's on_drain. */
void agent_drain_act(void *data, unsigned what);

/* The replica is gone: drops calls to it that wait. */
void agent_drain_replica_gone(agent_t *agent);


/* handover.c: another replica of the standby group is to become active. */

/* swim_callbacks_t's on_switch. */
order_rc_t agent_handover_begin(void *data);

/* The connection of the own replica's reports is gone. */
void agent_handover_reporter_gone(agent_t *agent);

void agent_handover_init(agent_t *agent);
void agent_handover_done(agent_t *agent);


/* life.c: the beginning and the end. */

void agent_life_init(agent_t *agent);
void agent_life_done(agent_t *agent);

/* To be called when all parts exist: begins to serve. */
void agent_life_begin(agent_t *agent);

/*
 * To be called when the replica's state is known: gossip may be sent from now
 * on.
 */
void agent_life_speak(agent_t *agent);

/*
 * Leaves, as at SIGTERM; data is the agent, for the control socket.
 * agent_life_is_over() is called in each iteration, and ends the loop.
 */
void agent_leave(void *data);
int agent_life_is_over(agent_t *agent);



/* seal.c: the keyring that seals gossip. */

/* Reads the keyring; does nothing without --keyring.  -1 and a reason. */
int agent_seal_create(agent_t *agent, char *error);
void agent_seal_destroy(agent_t *agent);

/* Reads the keyring again, at SIGHUP. */
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
