
/*
 * What operators order the cluster to do through this agent: drain, undrain and
 * switch (job.c, switch.c), and the rolling update (update.c).
 *
 * Orders are sent by the node.  Their effect is judged by the members as they
 * were published last, so that the last line of a command is about what nginx
 * can see.  How this agent carries out another agent's order for its own
 * replica is not here, but in agent/.
 */

#ifndef JOBS_H
#define JOBS_H

#include <ev.h>

#include "common/grpc/conn.h"
#include "common/log.h"
#include "control/control.h"
#include "net/clock.h"
#include "node/node.h"
#include "state/publish.h"


typedef struct job_s     job_t;
typedef struct update_s  update_t;

typedef struct {
    /* the owner sets all of these */
    const char                 *id;             /* this agent's */
    llmgw_role_t                role;
    int                         has_keyring;    /* so restarts may be ordered */
    struct ev_loop             *loop;
    log_t                      *log;
    clock_source_t             *clock;
    node_t                     *node;
    publish_t                  *publish;
    const grpc_conn_options_t  *conn;           /* for probes of replicas */

    job_t     *list;            /* of drain, undrain, switch */
    ev_timer   tick;
    update_t  *update;          /* the last update; NULL: none yet */
    int        is_leaving;
} jobs_t;


/* For the control socket; the functions' data is the jobs_t. */
extern const command_jobs_t  jobs_commands;

/* The owner has filled in its fields; all others are 0. */
void jobs_init(jobs_t *jobs);

/* To be called before the control socket is destroyed: followers of an update
   get their last line.  Other jobs end with their connections. */
void jobs_done(jobs_t *jobs);

/*
 * To be called when a member changed; and, in each iteration after publishing,
 * to act on changes.
 */
void jobs_changed(jobs_t *jobs);
void jobs_look(jobs_t *jobs);

/* One of the orders given by node_order() has ended. */
void jobs_ordered(jobs_t *jobs, uint64_t order_id, order_rc_t rc);

/* The agent is going to leave: the update begins no further step.  It runs
   until the steps that have begun have ended. */
void jobs_leave(jobs_t *jobs);
int jobs_is_updating(const jobs_t *jobs);

#endif /* JOBS_H */
