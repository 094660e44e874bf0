
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

/* The names of a member's models; none: empty. */
json_t *command_show_models(const command_env_t *env,
    const llmgw_member_t *member);
json_t *command_show_members(const command_env_t *env);
json_t *command_show_status(const command_env_t *env);

#endif /* COMMAND_SHOW_H */
