
/* What the control socket shows of the agent and its cluster. */

#include <string.h>

#include "agent/agent_inner.h"


void
agent_show_view(void *data, command_view_t *view)
{
    agent_t  *agent = data;

    view->members = publish_members(agent->publish, &view->n);
    view->loads = publish_loads(agent->publish);
}


void
agent_show_traits(void *data, const char *id, command_traits_t *traits)
{
    agent_t         *agent = data;
    const member_t  *member;

    member = table_find(swim_table(node_swim(agent->node)), id);

    traits->can_restart = member != NULL && member->traits.can_restart;
    traits->update = member != NULL ? member->traits.update : "";
    traits->detail = strcmp(id, agent->settings->id) == 0
                     ? agent->local.detail : "";
}


void
agent_show_status(void *data, command_status_t *status)
{
    agent_t       *agent = data;
    const swim_t  *swim;

    swim = node_swim(agent->node);

    status->own = &swim_own(swim)->facts;
    status->load = &swim_own(swim)->load;
    status->counters = swim_counters(swim);
    status->key = agent_keys_primary(agent);
    status->backlog = swim_backlog(swim);
    status->doubt = swim_local_health(swim);
    status->is_joined = !swim_is_alone(swim);
    status->is_isolated = swim_is_isolated(swim);
    status->segment_trouble = agent->trouble[0] != '\0' ? agent->trouble
                                                        : NULL;
    status->pipelines = agent->pipelines;
    status->is_lock_away = agent->local.group.is_lock_away;
    status->state_trouble = agent_keep_trouble(agent);
}
