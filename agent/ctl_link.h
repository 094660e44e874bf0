
/* A question to the agent, and its answer. */

#ifndef CTL_LINK_H
#define CTL_LINK_H

#include "ctl.h"


/*
 * Sends one request line and reads one line.  CTL_DONE and *answer (owned by
 * the caller, its "ok" taken off); else one line has gone to stderr.
 */
int ctl_link_ask(const ctl_t *ctl, const char *request, json_t **answer);

#endif /* CTL_LINK_H */
