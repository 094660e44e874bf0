
/*
 * The agent: one struct that holds all parts, and what flows between them.
 *
 *     datagram -> transport -> node (swim) --on_change--> publish -> segment
 *                                ^                           |
 *     replica -> control -> command -> local                 v
 *                health ----------------'         llmgwctl: view of publish
 */

#ifndef AGENT_H
#define AGENT_H

#include "common/log.h"
#include "agent/settings.h"


typedef struct agent_s  agent_t;

/* Creation returns NULL and one line in error, of this size. */
#define AGENT_ERROR_BYTES  512

agent_t *agent_create(const settings_t *settings, log_t *log, char *error);

/* The exit status if another running agent has this id, and had it first. */
#define AGENT_CONFLICT  3

/* Serves until a signal ends it.  Returns the process's exit status. */
int agent_run(agent_t *agent);

void agent_destroy(agent_t *agent);

#endif /* AGENT_H */
