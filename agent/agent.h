
/*
 * The agent: one struct from which everything hangs, and what flows between
 * its parts.
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

/* NULL and one line in error (of 512 bytes). */
#define AGENT_ERROR_BYTES  512

agent_t *agent_create(const settings_t *settings, log_t *log, char *error);

/* Exit status when another running agent has this id, and had it first. */
#define AGENT_CONFLICT  3

/* Serves until a signal ends it.  Returns the process's exit status. */
int agent_run(agent_t *agent);

void agent_destroy(agent_t *agent);

#endif /* AGENT_H */
