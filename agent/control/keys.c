
/* The ring of keys on command: ids go out, keys only come in. */

#include "control/command_inner.h"


static const command_error_t  command_key_errors[] = {
    [KEYRING_EKEY] = {
        "bad_key", "no key: 64 hexadecimal digits, or base64 of 32 bytes"
    },
    [KEYRING_EFULL] = { "too_many", "there are 8 keys: remove one first" },
    [KEYRING_EUNKNOWN] = { "not_found", "there is no key with this id" },
    [KEYRING_EPRIMARY] = {
        "in_use", "this key seals: use another one first"
    }
};


static json_t *
command_keys_answer(const keyring_t *keyring)
{
    char     id[KEYRING_ID_TEXT_BYTES];
    size_t   i;
    json_t  *keys;

    keys = json_array();

    for (i = 0; i < keyring_count(keyring); i++) {
        keyring_id_text(keyring, i, id);
        json_array_append_new(
            keys, json_pack("{s:s, s:b}", "id", id, "primary",
                            i == keyring_primary(keyring)));
    }

    return json_pack("{s:b, s:o}", "ok", 1, "keys", keys);
}


static json_t *
command_no_keyring(void)
{
    return command_error("no_keyring", "this agent has no keyring");
}


json_t *
command_keyring_list(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    return env->keyring ? command_keys_answer(env->keyring)
                        : command_no_keyring();
}


static json_t *
command_keyring_change(const command_env_t *env, const json_t *request,
    const char *field,
    keyring_rc_t (*change)(keyring_t *keyring, const char *text, char *error))
{
    char           error[KEYRING_ERROR_BYTES];
    const char    *text;
    keyring_rc_t   rc;

    if (env->keyring == NULL) {
        return command_no_keyring();
    }

    text = command_text(request, field);

    if (text == NULL) {
        return command_error("bad_request", "\"key\" or \"id\" is missing");
    }

    rc = change(env->keyring, text, error);

    if (rc == KEYRING_EFILE) {
        return command_error("failed", error);
    }

    if (rc != KEYRING_DONE) {
        return command_error(command_key_errors[rc].code,
                             command_key_errors[rc].text);
    }

    env->on_keys(env->data);

    return command_keys_answer(env->keyring);
}


json_t *
command_keyring_add(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    return command_keyring_change(env, request, "key", keyring_add);
}


json_t *
command_keyring_use(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    return command_keyring_change(env, request, "id", keyring_use);
}


json_t *
command_keyring_remove(const command_env_t *env, command_peer_t *peer,
    const json_t *request)
{
    return command_keyring_change(env, request, "id", keyring_remove);
}
