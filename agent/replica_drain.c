
/*
 * The drain of the own replica, apart from gossip: it is passed on to the
 * replica, and its owner is kept on disk for the next run of this agent.
 *
 * The owners of a drain, and how it ends, are in swim/order/drain.h.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent_inner.h"
#include "common/grpc/conn.h"
#include "swim/order/drain.h"


/* Not an owner: the file is not there, or makes no sense. */
#define AGENT_DRAIN_NOT_KEPT  "?"


const char *
agent_drain_kept(agent_t *agent)
{
    char        *text;
    const char  *why;

    text = agent->kept[AGENT_DRAIN].text;

    switch (state_file_read(agent->settings->state_dir, agent->settings->id,
                            SETTINGS_DRAIN_FILE, text))
    {
    case 0:
        strcpy(text, AGENT_DRAIN_NOT_KEPT);
        return NULL;

    case 1:
        if (text[0] == '\0' || drain_is_owner(text)) {
            return text;
        }

        why = "it names no owner of a drain";
        break;

    default:
        why = strerror(errno);
        break;
    }

    log_write(agent->log, LOG_WARN, "the owner of the replica's drain cannot "
              "be read from \"%s/%s." SETTINGS_DRAIN_FILE "\": %s, asking "
              "other members",
              agent->settings->state_dir, agent->settings->id, why);
    strcpy(text, AGENT_DRAIN_NOT_KEPT);

    return NULL;
}


/* Keeps the owner, unless the file has it already. */
static void
agent_drain_keep(agent_t *agent)
{
    const char  *owner;

    owner = swim_drain_kept(node_swim(agent->node));

    if (strcmp(owner, agent->kept[AGENT_DRAIN].text) != 0) {
        agent_keep(agent, AGENT_DRAIN, owner);
    }
}


/* 1: there is a process that can be called; a gateway's agent has none. */
static int
agent_drain_has_replica(const agent_t *agent)
{
    return agent->call != NULL && local_has_replica(&agent->local);
}


void
agent_drain_act(void *data, unsigned what)
{
    agent_t  *agent = data;

    if (what & DRAIN_KEEP) {
        agent_drain_keep(agent);
    }

    if (!agent_drain_has_replica(agent)) {
        return;
    }

    if (what & DRAIN_TELL) {
        replica_call_say(agent->call, REPLICA_CALL_DRAIN);

    } else if (what & DRAIN_UNTELL) {
        replica_call_say(agent->call, REPLICA_CALL_UNDRAIN);
    }
}


static void
agent_drain_told(void *data, replica_call_verb_t verb, int status,
    const char *message)
{
    agent_t     *agent = data;
    const char  *name;

    name = verb == REPLICA_CALL_DRAIN ? "Drain" : "Undrain";

    if (status == LLMGW_GRPC_OK) {
        return;         /* its next report shows it */
    }

    if (status == LLMGW_GRPC_UNIMPLEMENTED) {
        log_write(agent->log, LOG_INFO, "the replica does not implement %s, "
                  "only gateways keep new requests away", name);
        return;
    }

    log_write(agent->log, LOG_WARN, "the replica did not accept %s: %s (gRPC "
              "status %d)", name, message ? message : "", status);
}


int
agent_drain_create(agent_t *agent, char *error)
{
    if (agent->settings->role == LLMGW_ROLE_GATEWAY) {
        return 0;
    }

    agent->call = replica_call_create(agent->loop,
                                      &agent->settings->grpc_address,
                                      &agent->endpoint.conn, agent_drain_told,
                                      agent);
    if (agent->call == NULL) {
        snprintf(error, AGENT_ERROR_BYTES, "out of memory");
        return -1;
    }

    return 0;
}


void
agent_drain_destroy(agent_t *agent)
{
    if (agent->call != NULL) {
        replica_call_destroy(agent->call);
    }
}


void
agent_drain_replica_gone(agent_t *agent)
{
    if (agent->call != NULL) {
        replica_call_drop(agent->call);
    }
}
