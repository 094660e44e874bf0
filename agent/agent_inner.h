
/* Private to agent*.c: the one struct. */

#ifndef AGENT_INNER_H
#define AGENT_INNER_H

#include <ev.h>

#include "agent.h"
#include "control.h"
#include "health.h"
#include "local.h"
#include "node.h"
#include "publish.h"
#include "resolve.h"


struct agent_s {
    const settings_t  *settings;
    log_t             *log;
    struct ev_loop    *loop;
    clock_source_t    *clock;
    transport_t       *transport;
    node_t            *node;
    publish_t         *publish;
    control_t         *control;
    resolve_t         *resolve;         /* NULL: no seeds */
    health_t          *health;          /* NULL: not asked (any more) */
    local_t            local;
    command_env_t      env;
    command_peer_t    *reporter;        /* the replica's connection */

    ev_timer           heartbeat;
    ev_timer           stall;
    ev_prepare         flush;
    ev_signal          on_term;
    ev_signal          on_int;
    ev_signal          on_quit;
    int                is_leaving;
    int                is_troubled;     /* the segment is not written */
};


/* agent_replica.c: the own replica. */

void agent_replica_init(agent_t *agent);

/* Begins to ask a replica that may never report.  -1 and a reason. */
int agent_replica_watch(agent_t *agent, char *error);
void agent_replica_done(agent_t *agent);

/* For the control socket; data is the agent. */
const command_error_t *agent_replica_report(void *data, command_peer_t *peer,
    const report_t *report);
void agent_replica_lost(void *data, command_peer_t *peer);

#endif /* AGENT_INNER_H */
