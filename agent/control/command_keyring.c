
/* The keyring as commands: answers show ids only; keys only come in. */

#include "control/command_inner.h"


json_t *
command_keyring_list(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    return env->on_keys(env->data, peer, COMMAND_KEYS_LIST, NULL);
}


static json_t *
command_keyring_change(const command_env_t *env, command_peer_t *peer,
    const json_t *request, const char *field, command_keys_t verb)
{
    const char  *text;

    text = command_text(request, field);

    return text ? env->on_keys(env->data, peer, verb, text)
                : command_error("bad_request",
                                "\"key\" or \"id\" is missing");
}


json_t *
command_keyring_add(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    return command_keyring_change(env, peer, request, "key",
                                  COMMAND_KEYS_ADD);
}


json_t *
command_keyring_use(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    return command_keyring_change(env, peer, request, "id", COMMAND_KEYS_USE);
}


json_t *
command_keyring_remove(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    return command_keyring_change(env, peer, request, "id",
                                  COMMAND_KEYS_REMOVE);
}
