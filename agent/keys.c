
/* The agent's ring of keys: read at the start, at SIGHUP, and on command. */

#include <stdio.h>

#include "agent/agent_inner.h"


int
agent_keys_create(agent_t *agent, char *error)
{
    const settings_t  *settings;

    settings = agent->settings;

    if (settings->keyring == NULL) {
        return 0;
    }

    agent->keyring = keyring_create(settings->keyring, error);
    if (agent->keyring == NULL) {
        return -1;
    }

    agent->crypt = crypt_create(agent->keyring, settings->cluster);
    if (agent->crypt == NULL) {
        snprintf(error, AGENT_ERROR_BYTES, "out of memory");
        return -1;
    }

    return 0;
}


void
agent_keys_destroy(agent_t *agent)
{
    if (agent->crypt != NULL) {
        crypt_destroy(agent->crypt);
    }

    if (agent->keyring != NULL) {
        keyring_destroy(agent->keyring);
    }
}


static void
agent_keys_log(const agent_t *agent, const char *what)
{
    char  id[KEYRING_ID_TEXT_BYTES];

    keyring_id_text(agent->keyring, keyring_primary(agent->keyring), id);
    log_write(agent->log, LOG_INFO,
              "keyring \"%s\" %s, %zu keys, \"%s\" seals",
              agent->settings->keyring, what, keyring_count(agent->keyring),
              id);
}


void
agent_keys_reload(struct ev_loop *loop, ev_signal *signal, int events)
{
    char      error[KEYRING_ERROR_BYTES];
    agent_t  *agent = signal->data;

    if (agent->keyring == NULL) {
        return;
    }

    if (keyring_reload(agent->keyring, error) != 0) {
        log_write(agent->log, LOG_ERROR, "%s, going on with the keys as they "
                  "were", error);
        return;
    }

    agent_keys_log(agent, "was read again");
}


const char *
agent_keys_primary(agent_t *agent)
{
    if (agent->keyring == NULL) {
        return NULL;
    }

    keyring_id_text(agent->keyring, keyring_primary(agent->keyring),
                    agent->key_id);

    return agent->key_id;
}


/* --- on command */

static json_t *
agent_keys_answer(const keyring_t *keyring)
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
agent_keys_refusal(keyring_rc_t rc, const char *error)
{
    static const command_error_t  refusals[] = {
        [KEYRING_EKEY] = { "bad_key", "no key: 64 hexadecimal digits, or "
                                      "base64 of 32 bytes" },
        [KEYRING_EFULL] = { "too_many", "there are 8 keys: remove one first" },
        [KEYRING_EUNKNOWN] = { "not_found", "there is no key with this id" },
        [KEYRING_EPRIMARY] = { "in_use",
                               "this key seals: use another one first" },
        [KEYRING_EFILE] = { "failed", NULL }
    };

    return command_error(refusals[rc].code,
                         refusals[rc].text ? refusals[rc].text : error);
}


json_t *
agent_keys_command(void *data, command_peer_t *peer, command_keys_t verb,
    const char *text)
{
    static keyring_rc_t  (*const changes[])(keyring_t *keyring,
                                            const char *text, char *error) = {
        [COMMAND_KEYS_ADD] = keyring_add,
        [COMMAND_KEYS_USE] = keyring_use,
        [COMMAND_KEYS_REMOVE] = keyring_remove
    };

    char           error[KEYRING_ERROR_BYTES];
    agent_t       *agent = data;
    keyring_rc_t   rc;

    if (agent->keyring == NULL) {
        return command_error("no_keyring", "this agent has no keyring");
    }

    if (verb == COMMAND_KEYS_LIST) {
        return agent_keys_answer(agent->keyring);
    }

    rc = changes[verb](agent->keyring, text, error);

    if (rc != KEYRING_DONE) {
        return agent_keys_refusal(rc, error);
    }

    agent_keys_log(agent, "was changed on command");

    return agent_keys_answer(agent->keyring);
}
