
/* Requests of a rolling update: may it begin, and as which? */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/update.h"
#include "swim/order/drain.h"
#include "rollout/show.h"


/*
 * By then the own record has reached all gateways: it is sent to each of them
 * at once, and gossiped again within 100 ms.  An order that loses its first
 * four datagrams takes a second.
 */
#define AGENT_UPDATE_SETTLE_US  1000000ULL


static const table_t *
agent_update_table(const agent_t *agent)
{
    return swim_table(node_swim(agent->node));
}


const member_t *
agent_update_rival(const agent_t *agent)
{
    size_t           i;
    const table_t   *table;
    const member_t  *member, *first;

    table = agent_update_table(agent);
    first = NULL;

    for (i = 0; i < table->n; i++) {
        member = table->members[i];

        if (member->traits.update[0] != '\0' && member_is_present(member)
            && strcmp(member->facts.id, agent->settings->id) != 0
            && (first == NULL || strcmp(member->traits.update,
                                        first->traits.update) < 0))
        {
            first = member;
        }
    }

    return first;
}


static int
agent_update_has_peers(const agent_t *agent)
{
    size_t           i;
    const table_t   *table;
    const member_t  *member;

    table = agent_update_table(agent);

    for (i = 0; i < table->n; i++) {
        member = table->members[i];

        if (llmgw_member_role(&member->facts) == LLMGW_ROLE_GATEWAY
            && member_is_present(member)
            && strcmp(member->facts.id, agent->settings->id) != 0)
        {
            return 1;
        }
    }

    return 0;
}


/* --- the id */

/* Ids sort by the time of their beginning, and differ between agents. */
static void
agent_update_new_id(const agent_t *agent, char *id)
{
    char       text[32];
    time_t     seconds;
    uint64_t   wall_us;
    struct tm  tm;

    wall_us = clock_wall_us(agent->clock);
    seconds = wall_us / 1000000;
    gmtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &tm);
    snprintf(id, LLMGW_MEMBERS_NAME_BYTES, "%s.%06u-%08x", text,
             (unsigned) (wall_us % 1000000), member_hash(agent->settings->id));
}


/* The id in drains that an update left whose driver is gone; else a new
   one. */
static void
agent_update_choose_id(const agent_t *agent, char *id)
{
    size_t          i, len;
    const char     *owner;
    const table_t  *table;

    table = agent_update_table(agent);
    len = strlen(DRAIN_UPDATE);

    for (i = 0; i < table->n; i++) {
        owner = table->members[i]->facts.drain_owner;

        if (strncmp(owner, DRAIN_UPDATE, len) == 0
            && strlen(owner) - len < LLMGW_MEMBERS_NAME_BYTES
            && member_is_present(table->members[i]))
        {
            strcpy(id, owner + len);
            return;
        }
    }

    agent_update_new_id(agent, id);
}


/* --- refused */

static json_t *
agent_update_refuse(const char *code, const char *text)
{
    return json_pack("{s:b, s:s, s:s}", "ok", 0, "error", text, "code", code);
}


static json_t *
agent_update_refuse_running(const char *id, const char *driver)
{
    return json_pack("{s:b, s:o, s:s, s:s}", "ok", 0, "error",
                     json_sprintf("update %s is running, driven by \"%s\"",
                                  id, driver),
                     "code", "update_running", "update", id);
}


/* The update that runs here. */
static json_t *
agent_update_meet(agent_t *agent, command_peer_t *peer,
    const command_update_t *request)
{
    if (request->is_dry
        || strcmp(agent->update->rollout->to, request->to) != 0)
    {
        return agent_update_refuse_running(agent->update->id,
                                           agent->settings->id);
    }

    return agent_update_follow(agent->update, peer, 1, 0);
}


/* NULL: it may begin. */
static json_t *
agent_update_refusal(agent_t *agent, const command_peer_t *peer,
    const command_update_t *request)
{
    const member_t  *rival;

    if (agent->settings->role != LLMGW_ROLE_GATEWAY) {
        return agent_update_refuse("not_a_gateway",
                   "a gateway's agent drives updates, and this is "
                   "none");
    }

    if (agent->is_leaving) {
        return agent_update_refuse("leaving", "the agent leaves");
    }

    /* Its commands would run as our user, and not as root. */
    if (request->start != NULL && geteuid() != 0 && peer->uid != geteuid()) {
        return json_pack("{s:b, s:o, s:s}", "ok", 0, "error",
                   json_sprintf("commands run as their caller, and this agent "
                                "(uid %u) cannot become uid %u",
                                (unsigned) geteuid(), (unsigned) peer->uid),
                   "code", "wrong_user");
    }

    rival = agent_update_rival(agent);

    return rival ? agent_update_refuse_running(rival->traits.update,
                                               rival->facts.id) : NULL;
}


static json_t *
agent_update_refuse_plan(rollout_refusal_t refusal, const char *text)
{
    static const char *const  codes[] = {
        "", "failed", "not_found", "cannot_restart", "no_version",
        "min_available", "whole_group"
    };

    return agent_update_refuse(codes[refusal], text);
}


/* --- the plan */

/* The replicas that the last update to this version did not finish. */
static size_t
agent_update_unfinished(const agent_t *agent, const char *to,
    const char **ids)
{
    size_t            i, n;
    const rollout_t  *last;

    if (agent->update == NULL
        || strcmp(agent->update->rollout->to, to) != 0)
    {
        return 0;
    }

    last = agent->update->rollout;
    n = 0;

    for (i = 0; i < last->nsteps; i++) {
        if (last->steps[i].state == ROLLOUT_FAILED
            || last->steps[i].state == ROLLOUT_UNDONE)
        {
            ids[n++] = last->steps[i].id;
        }
    }

    return n;
}


static void
agent_update_fill_spec(const agent_t *agent, const command_update_t *request,
    const char *owner, rollout_spec_t *spec)
{
    memset(spec, 0, sizeof(rollout_spec_t));
    spec->to = request->to;
    spec->owner = owner;
    spec->ids = request->ids;
    spec->nids = request->nids;
    spec->has_stop = request->stop != NULL;
    spec->has_start = request->start != NULL;
    spec->has_orders = agent->keyring != NULL;
    spec->drain_timeout_us = request->drain_timeout_ms * 1000;
    spec->rejoin_timeout_us = request->rejoin_timeout_ms * 1000;
    spec->max_unavailable = request->max_unavailable;
    spec->min_available = request->min_available;
}


/* NULL and the refusal. */
static rollout_t *
agent_update_plan(agent_t *agent, const command_update_t *request,
    const char *owner, json_t **answer)
{
    char                text[ROLLOUT_REASON_BYTES];
    size_t              i;
    uint8_t            *can_restart;
    rollout_t          *rollout;
    const char        **also;
    const member_t     *member;
    rollout_spec_t      spec;
    rollout_view_t      view;
    rollout_refusal_t   refusal;

    agent_update_view(agent, &view);
    can_restart = calloc(view.n + 1, 1);
    also = calloc(TABLE_MAX_MEMBERS, sizeof(char *));

    if (can_restart == NULL || also == NULL) {
        free(can_restart);
        free(also);
        *answer = agent_update_refuse("failed", "out of memory");
        return NULL;
    }

    for (i = 0; i < view.n; i++) {
        member = table_find(agent_update_table(agent), view.members[i].id);
        can_restart[i] = member != NULL && member->traits.can_restart;
    }

    view.can_restart = can_restart;
    agent_update_fill_spec(agent, request, owner, &spec);
    spec.also = also;
    spec.nalso = agent_update_unfinished(agent, request->to, also);

    rollout = rollout_plan(&spec, &view, &refusal, text);

    if (rollout == NULL) {
        *answer = agent_update_refuse_plan(refusal, text);
    }

    free(can_restart);
    free(also);

    return rollout;
}


/* --- it begins */

static json_t *
agent_update_launch(agent_t *agent, command_peer_t *peer,
    const command_update_t *request, rollout_t *rollout, const char *id)
{
    agent_update_t  *update;

    update = agent_update_create(agent, rollout, id);

    if (update == NULL) {
        return agent_update_refuse("failed", "out of memory");
    }

    update->stop = request->stop ? strdup(request->stop) : NULL;
    update->start = request->start ? strdup(request->start) : NULL;

    if ((request->stop != NULL && update->stop == NULL)
        || (request->start != NULL && update->start == NULL))
    {
        agent_update_destroy(update);
        return agent_update_refuse("failed", "out of memory");
    }

    agent_update_done(agent);
    agent->update = update;
    agent_update_begin(update, agent_update_has_peers(agent)
                               ? AGENT_UPDATE_SETTLE_US : 0);

    return agent_update_follow(update, peer, 0, 0);
}


json_t *
agent_update_start(void *data, command_peer_t *peer,
    const command_update_t *request)
{
    char        id[LLMGW_MEMBERS_NAME_BYTES];
    char        owner[LLMGW_MEMBERS_OWNER_BYTES];
    json_t     *answer;
    agent_t    *agent = data;
    rollout_t  *rollout;

    if (agent_update_is_running(agent)) {
        return agent_update_meet(agent, peer, request);
    }

    answer = agent_update_refusal(agent, peer, request);

    if (answer != NULL) {
        return answer;
    }

    agent_update_choose_id(agent, id);
    snprintf(owner, sizeof(owner), "%s%s", DRAIN_UPDATE, id);
    rollout = agent_update_plan(agent, request, owner, &answer);

    if (rollout == NULL) {
        return answer;
    }

    if (request->is_dry) {
        answer = json_pack("{s:b, s:o}", "ok", 1, "plan",
                           rollout_show_plan(rollout));
        rollout_destroy(rollout);
        return answer;
    }

    return agent_update_launch(agent, peer, request, rollout, id);
}


json_t *
agent_update_abort(void *data, command_peer_t *peer)
{
    agent_t  *agent = data;

    if (!agent_update_is_running(agent)) {
        return agent_update_refuse("not_found",
                                   "no update is driven by this agent");
    }

    agent_update_stop(agent);

    return agent_update_follow(agent->update, peer, 1, 1);
}
