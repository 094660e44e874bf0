
/* The agent's keyring: read at start and at SIGHUP, changed on command. */

#include <stdio.h>
#include <stdlib.h>

#include "agent/agent_inner.h"


/* A change of the keyring's file that is under way. */
struct agent_seal_job_s {
    background_job_t      job;      /* first: a job begins with its header */
    agent_t          *agent;
    command_peer_t   *peer;     /* the connection that asked; NULL: it is
                                   gone */
    keyring_plan_t   *plan;
    int               rc;
    char              error[KEYRING_ERROR_BYTES];
};


int
agent_seal_create(agent_t *agent, char *error)
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
agent_seal_destroy(agent_t *agent)
{
    if (agent->crypt != NULL) {
        crypt_destroy(agent->crypt);
    }

    if (agent->keyring != NULL) {
        keyring_destroy(agent->keyring);
    }
}


static void
agent_seal_log(const agent_t *agent, const char *what)
{
    char  id[KEYRING_ID_TEXT_BYTES];

    keyring_id_text(agent->keyring, keyring_primary(agent->keyring), id);
    log_write(agent->log, LOG_INFO,
              "keyring \"%s\" %s, %zu keys, \"%s\" encrypts",
              agent->settings->keyring, what, keyring_count(agent->keyring),
              id);
}


static void
agent_seal_read(agent_t *agent)
{
    char  error[KEYRING_ERROR_BYTES];

    if (keyring_reload(agent->keyring, error) != 0) {
        log_write(agent->log, LOG_ERROR, "%s, keeping the previous keys",
                  error);
        return;
    }

    agent_seal_log(agent, "was read again");
}


/*
 * A change that is being written is finished first, or it would undo the
 * reload.
 */
void
agent_seal_reload(struct ev_loop *loop, ev_signal *signal, int events)
{
    agent_t  *agent = signal->data;

    if (agent->keyring == NULL) {
        return;
    }

    if (agent->keys_job != NULL) {
        agent->is_keys_stale = 1;
        return;
    }

    agent_seal_read(agent);
}


const char *
agent_seal_primary(agent_t *agent)
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
agent_seal_answer(const keyring_t *keyring)
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
agent_seal_refusal(keyring_rc_t rc, const char *error)
{
    static const command_error_t  refusals[] = {
        [KEYRING_EKEY] = { "bad_key", "no key: 64 hexadecimal digits, or "
                                      "base64 of 32 bytes" },
        [KEYRING_EFULL] = { "too_many", "there are 8 keys: remove one first" },
        [KEYRING_EUNKNOWN] = { "not_found", "there is no key with this id" },
        [KEYRING_EPRIMARY] = { "in_use",
                               "this key encrypts: use another one first" },
        [KEYRING_EFILE] = { "failed", NULL }
    };

    return command_error(refusals[rc].code,
                         refusals[rc].text ? refusals[rc].text : error);
}


/* Writes the file, in the writer's thread. */
static void
agent_seal_write(background_job_t *job)
{
    agent_seal_job_t  *keys = (agent_seal_job_t *) job;

    keys->rc = keyring_plan_write(keys->plan, keys->error);
}


static json_t *
agent_seal_end(agent_seal_job_t *keys)
{
    agent_t  *agent;

    agent = keys->agent;

    if (keys->rc != 0) {
        keyring_plan_destroy(keys->plan);
        return agent_seal_refusal(KEYRING_EFILE, keys->error);
    }

    keyring_take(agent->keyring, keys->plan);
    agent_seal_log(agent, "was changed on command");

    return agent_seal_answer(agent->keyring);
}


static void
agent_seal_written(background_job_t *job)
{
    json_t            *answer;
    agent_t           *agent;
    agent_seal_job_t  *keys = (agent_seal_job_t *) job;

    agent = keys->agent;
    agent->keys_job = NULL;
    answer = agent_seal_end(keys);

    if (keys->peer != NULL) {
        keys->peer->job = NULL;
        control_send(keys->peer, answer);

    } else {
        json_decref(answer);
    }

    free(keys);

    if (agent->is_keys_stale) {
        agent->is_keys_stale = 0;
        agent_seal_read(agent);
    }
}


/* The connection that asked has gone: the change is made all the same. */
static void
agent_seal_gone(void *job)
{
    ((agent_seal_job_t *) job)->peer = NULL;
}


/* Begins a change.  NULL: the answer comes when the file is written. */
static json_t *
agent_seal_start(agent_t *agent, command_peer_t *peer, keyring_plan_t *plan)
{
    agent_seal_job_t  *keys;

    keys = calloc(1, sizeof(agent_seal_job_t));

    if (keys == NULL) {
        keyring_plan_destroy(plan);
        return command_error("failed", "out of memory");
    }

    keys->job.run = agent_seal_write;
    keys->job.done = agent_seal_written;
    keys->agent = agent;
    keys->plan = plan;
    keys->peer = peer;
    peer->job = keys;
    peer->on_gone = agent_seal_gone;

    agent->keys_job = keys;
    background_put(agent->writer, &keys->job);

    return NULL;
}


static json_t *
agent_seal_change(agent_t *agent, command_peer_t *peer, keyring_verb_t verb,
    const char *text)
{
    char             error[KEYRING_ERROR_BYTES];
    keyring_rc_t     rc;
    keyring_plan_t  *plan;

    if (peer->job != NULL) {
        return command_busy();
    }

    if (agent->keys_job != NULL) {
        return command_error("busy", "another change is being written");
    }

    rc = keyring_plan(agent->keyring, verb, text, &plan, error);

    return rc == KEYRING_DONE ? agent_seal_start(agent, peer, plan)
                              : agent_seal_refusal(rc, error);
}


json_t *
agent_seal_command(void *data, command_peer_t *peer, command_keys_t verb,
    const char *text)
{
    agent_t  *agent = data;

    if (agent->keyring == NULL) {
        return command_error("no_keyring", "this agent has no keyring");
    }

    switch (verb) {
    case COMMAND_KEYS_ADD:
        return agent_seal_change(agent, peer, KEYRING_ADD, text);
    case COMMAND_KEYS_USE:
        return agent_seal_change(agent, peer, KEYRING_USE, text);
    case COMMAND_KEYS_REMOVE:
        return agent_seal_change(agent, peer, KEYRING_REMOVE, text);
    default:
        return agent_seal_answer(agent->keyring);
    }
}
