
/*
 * A standby group among the members of a cluster: who is active, who stands by.
 *
 * A record says what its own agent said last, and outlives the process that it
 * is about.  So the state in the group counts only together with what the
 * record says of the process, and of its agent.
 */

#ifndef LLMGW_GROUPS_H
#define LLMGW_GROUPS_H

#include "proto/members/members.h"


/* It serves for that group, as far as its agent knows. */
int llmgw_group_is_active(const llmgw_member_t *member, const char *group);

/* It could take over now: a living process that waits for the lock. */
int llmgw_group_is_standby(const llmgw_member_t *member, const char *group);

/* It has a process that belongs to that group, in whatever state. */
int llmgw_group_has_process(const llmgw_member_t *member, const char *group);

/* The active one of the greatest epoch; NULL: there is none. */
const llmgw_member_t *llmgw_group_active(const llmgw_member_t *members,
    size_t n, const char *group);

#endif /* LLMGW_GROUPS_H */
