
/* Checks whether a requested rolling update may begin, and plans it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "jobs/update.h"
#include "swim/order/drain.h"
#include "rollout/rollout_json.h"


/*
 * By then our own record has reached all gateways: it is sent to each of them
 * at once, and gossiped again within 100 ms.  An order that loses its first
 * four datagrams takes a second.
 */
#define UPDATE_SETTLE_US  1000000ULL


/* The next present member other than us, from the i-th on; NULL: no more. */
static const member_t *
update_other(const jobs_t *jobs, size_t *i)
{
    const table_t   *table;
    const member_t  *member;

    table = jobs_table(jobs);

    while (*i < table->n) {
        member = table->members[(*i)++];

        if (member_is_present(member)
            && strcmp(member->facts.id, jobs->id) != 0)
        {
            return member;
        }
    }

    return NULL;
}


const member_t *
update_rival(const jobs_t *jobs)
{
    size_t           i;
    const member_t  *member, *first;

    first = NULL;

    for (i = 0; (member = update_other(jobs, &i)) != NULL; /* void */ ) {
        if (member->traits.update[0] != '\0'
            && (first == NULL || strcmp(member->traits.update,
                                        first->traits.update) < 0))
        {
            first = member;
        }
    }

    return first;
}


static int
update_has_peers(const jobs_t *jobs)
{
    size_t           i;
    const member_t  *member;

    for (i = 0; (member = update_other(jobs, &i)) != NULL; /* void */ ) {
        if (llmgw_member_role(&member->facts) == LLMGW_ROLE_GATEWAY) {
            return 1;
        }
    }

    return 0;
}


/* --- the id */

/* Ids sort by the time at which updates began, and differ between agents. */
static void
update_new_id(const jobs_t *jobs, char *id)
{
    char       text[32];
    time_t     seconds;
    uint64_t   wall_us;
    struct tm  tm;

    wall_us = clock_wall_us(jobs->clock);
    seconds = wall_us / 1000000;
    gmtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &tm);
    snprintf(id, LLMGW_MEMBERS_NAME_BYTES, "%s.%06u-%08x", text,
             (unsigned) (wall_us % 1000000), member_hash(jobs->id));
}


/* The id of an update whose driver is gone and whose drains still exist;
   otherwise a new id. */
static void
update_choose_id(const jobs_t *jobs, char *id)
{
    size_t           i, len;
    const char      *owner;
    const member_t  *member;

    len = strlen(DRAIN_UPDATE);

    for (i = 0; (member = update_other(jobs, &i)) != NULL; /* void */ ) {
        owner = member->facts.drain_owner;

        if (strncmp(owner, DRAIN_UPDATE, len) == 0
            && strlen(owner) - len < LLMGW_MEMBERS_NAME_BYTES)
        {
            strcpy(id, owner + len);
            return;
        }
    }

    update_new_id(jobs, id);
}


/* --- refused */

static json_t *
update_refuse_running(const char *id, const char *driver)
{
    return json_pack("{s:b, s:o, s:s, s:s}", "ok", 0, "error",
                     json_sprintf("update %s is running, driven by \"%s\"",
                                  id, driver),
                     "code", "update_running", "update", id);
}


/*
 * The answer if an update is running at this agent: one to the same version is
 * followed; any other request is refused.
 */
static json_t *
update_meet(jobs_t *jobs, command_peer_t *peer,
    const command_update_t *request)
{
    if (request->is_dry
        || strcmp(jobs->update->rollout->to, request->to) != 0)
    {
        return update_refuse_running(jobs->update->id, jobs->id);
    }

    return update_follow(jobs->update, peer, 1, 0);
}


/* The refusal of a request; NULL: the update may begin. */
static json_t *
update_refusal(jobs_t *jobs, const command_peer_t *peer,
    const command_update_t *request)
{
    const member_t  *rival;

    if (jobs->role != LLMGW_ROLE_GATEWAY) {
        return command_error("not_a_gateway",
                             "only a gateway's agent drives updates");
    }

    if (jobs->is_leaving) {
        return command_error("leaving", "the agent is shutting down");
    }

    /* commands would run as our user, and not as root */
    if (request->start != NULL && geteuid() != 0 && peer->uid != geteuid()) {
        return json_pack("{s:b, s:o, s:s}", "ok", 0, "error",
                   json_sprintf("commands run as their caller, and this agent "
                                "(uid %u) cannot become uid %u",
                                (unsigned) geteuid(), (unsigned) peer->uid),
                   "code", "wrong_user");
    }

    rival = update_rival(jobs);

    return rival ? update_refuse_running(rival->traits.update, rival->facts.id)
                 : NULL;
}


static json_t *
update_refuse_plan(rollout_refusal_t refusal, const char *text)
{
    static const char *const  codes[] = {
        "", "failed", "not_found", "cannot_restart", "no_version",
        "min_available", "whole_group"
    };

    return command_error(codes[refusal], text);
}


/* --- the plan */

/* The replicas that the last update to this version did not finish. */
static size_t
update_unfinished(const jobs_t *jobs, const char *to,
    const char **ids)
{
    size_t            i, n;
    const rollout_t  *last;

    if (jobs->update == NULL
        || strcmp(jobs->update->rollout->to, to) != 0)
    {
        return 0;
    }

    last = jobs->update->rollout;
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
update_fill_spec(const jobs_t *jobs, const command_update_t *request,
    const char *owner, rollout_spec_t *spec)
{
    memset(spec, 0, sizeof(rollout_spec_t));
    spec->to = request->to;
    spec->owner = owner;
    spec->ids = request->ids;
    spec->nids = request->nids;
    spec->has_stop = request->stop != NULL;
    spec->has_start = request->start != NULL;
    spec->has_orders = jobs->has_keyring;
    spec->drain_timeout_us = request->drain_timeout_ms * 1000;
    spec->rejoin_timeout_us = request->rejoin_timeout_ms * 1000;
    spec->max_unavailable = request->max_unavailable;
    spec->min_available = request->min_available;
}


/* Plans the update.  NULL, and the refusal. */
static rollout_t *
update_plan(jobs_t *jobs, const command_update_t *request,
    const char *owner, json_t **answer)
{
    char                text[ROLLOUT_REASON_BYTES];
    size_t              i;
    uint8_t            *can_restart;
    rollout_t          *rollout;
    const char        **also;
    const member_t     *member;
    rollout_spec_t      spec;
    llmgw_roster_t      roster;
    rollout_refusal_t   refusal;

    roster = jobs_roster(jobs);
    can_restart = calloc(roster.n + 1, 1);
    also = calloc(TABLE_MAX_MEMBERS, sizeof(char *));

    if (can_restart == NULL || also == NULL) {
        free(can_restart);
        free(also);
        *answer = command_error("failed", "out of memory");
        return NULL;
    }

    for (i = 0; i < roster.n; i++) {
        member = jobs_member(jobs, roster.members[i].id);
        can_restart[i] = member != NULL && member->traits.can_restart;
    }

    update_fill_spec(jobs, request, owner, &spec);
    spec.can_restart = can_restart;
    spec.also = also;
    spec.nalso = update_unfinished(jobs, request->to, also);

    rollout = rollout_plan(&spec, &roster, &refusal, text);

    if (rollout == NULL) {
        *answer = update_refuse_plan(refusal, text);
    }

    free(can_restart);
    free(also);

    return rollout;
}


/* --- it begins */

json_t *
update_start(void *data, command_peer_t *peer,
    const command_update_t *request)
{
    char        id[LLMGW_MEMBERS_NAME_BYTES];
    char        owner[LLMGW_MEMBERS_OWNER_BYTES];
    json_t     *answer;
    jobs_t     *jobs = data;
    rollout_t  *rollout;

    if (jobs_is_updating(jobs)) {
        return update_meet(jobs, peer, request);
    }

    answer = update_refusal(jobs, peer, request);

    if (answer != NULL) {
        return answer;
    }

    update_choose_id(jobs, id);
    snprintf(owner, sizeof(owner), "%s%s", DRAIN_UPDATE, id);
    rollout = update_plan(jobs, request, owner, &answer);

    if (rollout == NULL) {
        return answer;
    }

    if (request->is_dry) {
        answer = json_pack("{s:b, s:o}", "ok", 1, "plan",
                           rollout_show_plan(rollout));
        rollout_destroy(rollout);
        return answer;
    }

    if (update_launch(jobs, request, rollout, id,
                      update_has_peers(jobs) ? UPDATE_SETTLE_US : 0) != 0)
    {
        return command_error("failed", "out of memory");
    }

    return update_follow(jobs->update, peer, 0, 0);
}


json_t *
update_abort(void *data, command_peer_t *peer)
{
    jobs_t  *jobs = data;

    if (!jobs_is_updating(jobs)) {
        return command_error("not_found", "no update is driven by this agent");
    }

    update_stop(jobs->update);

    return update_follow(jobs->update, peer, 1, 1);
}


json_t *
update_status(void *data)
{
    jobs_t  *jobs = data;

    return jobs->update ? update_show(jobs->update) : json_null();
}
