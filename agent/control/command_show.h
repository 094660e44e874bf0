
/* Private to the commands: members and status as JSON. */

#ifndef COMMAND_SHOW_H
#define COMMAND_SHOW_H

#include "control/command.h"


/* The state for people, in one word; and in *why its reason, or NULL. */
const char *command_show_state(const llmgw_member_t *member,
    const char **cause);

/* New references; NULL: out of memory. */
json_t *command_show_member(const command_env_t *env,
    const llmgw_member_t *member, const llmgw_member_load_t *load);

/*
 * Adds to a member's object what its shard computes, if it reports that: the
 * model's name if its list is there, and the whole as MODEL:LO-HI@MEMBER.
 */
void command_show_shard(const command_env_t *env, json_t *shown,
    const llmgw_member_t *member);

/*
 * Adds shard_advertised and shard_retired to the events; before NULL: the
 * member is new.
 */
void command_add_shard(const command_env_t *env, json_t *events,
    const llmgw_member_t *before, const llmgw_member_t *after,
    uint64_t wall_us);

/* An event about a member. */
json_t *command_event(const char *name, const char *id, uint64_t wall_us);

/* The names of a member's models; an empty array if there are none. */
json_t *command_show_models(const command_env_t *env,
    const llmgw_member_t *member);
json_t *command_show_members(const command_env_t *env);
json_t *command_show_status(const command_env_t *env);

#endif /* COMMAND_SHOW_H */
