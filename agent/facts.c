
/* What the control socket shows of the agent and its cluster. */

#include <string.h>

#include "agent/agent_inner.h"


llmgw_roster_t
agent_facts_roster(void *data)
{
    agent_t  *agent = data;

    return publish_roster(agent->publish);
}


void
agent_facts_traits(void *data, const char *id, command_traits_t *traits)
{
    agent_t              *agent = data;
    uint64_t              now_us;
    const member_t       *member;
    const member_path_t  *path;

    *traits = (command_traits_t) { .update = "", .detail = "",
                                      .heard_ms = -1 };
    member = table_find(swim_table(node_swim(agent->node)), id);

    if (member == NULL) {
        return;
    }

    path = &member->path;
    traits->can_restart = member->traits.can_restart;
    traits->update = member->traits.update;

    if (strcmp(id, agent->settings->id) == 0) {
        traits->detail = agent->local.detail;
    }

    traits->pings_lost = path->pings_lost;
    traits->has_clock = path->has_clock;
    traits->clock_ahead_ms = path->clock_ahead_us / 1000;

    if (path->heard_us != 0) {
        now_us = clock_mono_us(agent->clock);
        traits->heard_ms = (int64_t) (now_us - path->heard_us) / 1000;
    }
}


void
agent_facts_files(agent_t *agent)
{
    const settings_t  *s;

    s = agent->settings;

    agent->files[0] = (command_file_t) { "keyring", s->keyring };
    agent->files[1] = (command_file_t) { "state-dir", s->state_dir };
    agent->files[2] = (command_file_t) { "tls-cert", s->tls.cert };
    agent->files[3] = (command_file_t) { "tls-key", s->tls.key };
    agent->files[4] = (command_file_t) { "tls-ca", s->tls.ca };
}


static void
agent_facts_drop(agent_t *agent, command_status_t *status)
{
    const swim_drop_t  *drop;

    drop = swim_last_drop(node_swim(agent->node));
    status->drop_reason = NULL;

    if (drop->why != PACKET_DONE) {
        address_format(&drop->from, agent->drop_from);
        status->drop_reason = packet_rc_name(drop->why);
        status->drop_from = agent->drop_from;
        status->drop_us = drop->at_us;
    }
}


void
agent_facts_status(void *data, command_status_t *status)
{
    agent_t       *agent = data;
    const swim_t  *swim;

    swim = node_swim(agent->node);

    status->own = &swim_own(swim)->facts;
    status->load = &swim_own(swim)->load;
    status->counters = swim_counters(swim);
    status->key = agent_seal_primary(agent);
    status->backlog = swim_backlog(swim);
    status->local_health = swim_local_health(swim);
    status->is_joined = !swim_is_alone(swim);
    status->is_isolated = swim_is_isolated(swim);
    status->segment_trouble = agent->trouble[0] != '\0' ? agent->trouble
                                                        : NULL;
    status->pipelines = agent->pipelines;
    status->callers = agent->callers;
    status->is_lock_away = agent->local.group.is_lock_away;
    status->state_trouble = agent_keep_trouble(agent);
    status->files = agent->files;
    agent_facts_drop(agent, status);
}
