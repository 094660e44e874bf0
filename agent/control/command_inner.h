
/* Private to the commands: what they share. */

#ifndef COMMAND_INNER_H
#define COMMAND_INNER_H

#include "control/command.h"


typedef json_t *(*command_pt)(const command_env_t *env, command_peer_t *peer,
    const json_t *request);

/* A string of the request; NULL: it has no string of that name. */
const char *command_text(const json_t *request, const char *name);

/* Reads a number of the request from least to most; *number is `otherwise` if
   it is missing.  0: it is no number, or not within the limits. */
int command_number(const json_t *request, const char *name, json_int_t least,
    json_int_t most, json_int_t otherwise, int64_t *number);


/* The longest wait that may be asked for. */
#define COMMAND_MAX_TIMEOUT_MS    86400000

/* More replicas than any cluster has. */
#define COMMAND_MAX_MEMBERS  65536


/* command_update.c */

json_t *command_rolling_update(const command_env_t *env, command_peer_t *peer,
    const json_t *request);
json_t *command_update_abort(const command_env_t *env, command_peer_t *peer,
    const json_t *request);


/* command_keyring.c */

json_t *command_keyring_list(const command_env_t *env, command_peer_t *peer,
    const json_t *request);
json_t *command_keyring_add(const command_env_t *env, command_peer_t *peer,
    const json_t *request);
json_t *command_keyring_use(const command_env_t *env, command_peer_t *peer,
    const json_t *request);
json_t *command_keyring_remove(const command_env_t *env, command_peer_t *peer,
    const json_t *request);

#endif /* COMMAND_INNER_H */
