
/* Private to the commands: members and status as JSON. */

#ifndef COMMAND_SHOW_H
#define COMMAND_SHOW_H

#include "control/command.h"


/* The one word for people, and why, NULL where nothing is to be said. */
const char *command_show_state(const llmgw_member_t *member,
    const char **cause);

/* New references; NULL: out of memory. */
json_t *command_show_member(const command_env_t *env,
    const llmgw_member_t *member, const llmgw_member_load_t *load);

/*
 * Adds what a shard computes to it, if it is one that says so: the model by its
 * name where the list is there, and the whole as MODEL:LO-HI@MEMBER.
 */
void command_show_shard(const command_env_t *env, json_t *shown,
    const llmgw_member_t *member);

/* Adds shard_advertised, shard_retired to the events; before NULL: it came. */
void command_add_shard(const command_env_t *env, json_t *events,
    const llmgw_member_t *before, const llmgw_member_t *after,
    uint64_t wall_us);

/* An event about a member. */
json_t *command_event(const char *name, const char *id, uint64_t wall_us);

/* The names of a member's models; none: empty. */
json_t *command_show_models(const command_env_t *env,
    const llmgw_member_t *member);
json_t *command_show_members(const command_env_t *env);
json_t *command_show_status(const command_env_t *env);

#endif /* COMMAND_SHOW_H */
