
/* Private to the commands: members and status as JSON. */

#ifndef COMMAND_SHOW_H
#define COMMAND_SHOW_H

#include "command.h"


/* New references; NULL: out of memory. */
json_t *command_show_members(const command_env_t *env);
json_t *command_show_status(const command_env_t *env);

#endif /* COMMAND_SHOW_H */
