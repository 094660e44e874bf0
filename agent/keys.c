
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


void
agent_keys_changed(void *data)
{
    agent_keys_log(data, "was changed on command");
}
