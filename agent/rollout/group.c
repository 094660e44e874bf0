
/*
 * Standby groups in a rolling update.
 *
 * A member of a group that does not serve is replaced at once: it has no
 * streams, and a drain would still hold when it begins to serve.  The active
 * member is not drained either, since no other member may serve for its group
 * meanwhile.  It is stopped at once, its streams continue at the successor, and
 * it comes back as a standby, still of the old version: if the new version does
 * not wake, this standby takes over again.  Only when the successor has
 * answered a request, it is replaced as well.
 *
 * A member with no other beside it is updated like a replica of no group.
 */

#include <stdlib.h>
#include <string.h>

#include "proto/members/member.h"
#include "rollout/rollout_inner.h"


/* --- the order */

/*
 * A member's place in the plan.  Units of the plan are ordered by the place of
 * their first member.
 */
typedef struct {
    const llmgw_member_t  *member;
    size_t                 i;           /* in the roster */
    size_t                 unit;        /* place of the unit's first member */
    int                    is_ready;
    int                    has_ready;   /* of the unit */
} rollout_place_t;


static int
rollout_compare_groups(const void *one, const void *other)
{
    int                     order;
    const rollout_place_t  *a, *b;

    a = *(rollout_place_t *const *) one;
    b = *(rollout_place_t *const *) other;
    order = strcmp(a->member->group, b->member->group);

    return order ? order : a->i < b->i ? -1 : 1;
}


static int
rollout_compare_places(const void *one, const void *other)
{
    const rollout_place_t  *a = one, *b = other;

    if (a->has_ready != b->has_ready) {
        return a->has_ready - b->has_ready;
    }

    if (a->unit != b->unit) {
        return a->unit < b->unit ? -1 : 1;
    }

    return a->is_ready != b->is_ready ? a->is_ready - b->is_ready
                                      : a->i < b->i ? -1 : 1;
}


/* grouped: has room for n places. */
static void
rollout_join_units(rollout_place_t *places, size_t n,
    rollout_place_t **grouped)
{
    int     has_ready;
    size_t  i, first, end, ngrouped;

    ngrouped = 0;

    for (i = 0; i < n; i++) {
        if (places[i].member->group[0] != '\0') {
            grouped[ngrouped++] = &places[i];
        }
    }

    qsort(grouped, ngrouped, sizeof(rollout_place_t *),
          rollout_compare_groups);

    for (first = 0; first < ngrouped; first = end) {
        has_ready = 0;

        for (end = first; end < ngrouped
             && strcmp(grouped[end]->member->group,
                       grouped[first]->member->group) == 0; end++)
        {
            has_ready |= grouped[end]->is_ready;
        }

        for (i = first; i < end; i++) {
            grouped[i]->unit = grouped[first]->i;
            grouped[i]->has_ready = has_ready;
        }
    }
}


int
rollout_sort(const llmgw_member_t **members, size_t n)
{
    size_t             i;
    rollout_place_t   *places, **grouped;

    places = calloc(n + 1, sizeof(rollout_place_t));
    grouped = calloc(n + 1, sizeof(rollout_place_t *));

    if (places == NULL || grouped == NULL) {
        free(places);
        free(grouped);
        return -1;
    }

    for (i = 0; i < n; i++) {
        places[i].member = members[i];
        places[i].i = i;
        places[i].unit = i;
        places[i].is_ready = rollout_is_ready(members[i]);
        places[i].has_ready = places[i].is_ready;
    }

    rollout_join_units(places, n, grouped);
    qsort(places, n, sizeof(rollout_place_t), rollout_compare_places);

    for (i = 0; i < n; i++) {
        members[i] = places[i].member;
    }

    free(places);
    free(grouped);

    return 0;
}


/* --- the way */

const llmgw_member_t *
rollout_peer(const llmgw_roster_t *roster, const llmgw_member_t *member,
    const llmgw_member_t *after)
{
    const llmgw_member_t  *peer, *end;

    if (member->group[0] == '\0') {
        return NULL;
    }

    end = roster->members + roster->n;

    for (peer = after ? after + 1 : roster->members; peer < end; peer++) {
        if (peer != member && rollout_is_present(peer)
            && strcmp(peer->group, member->group) == 0)
        {
            return peer;
        }
    }

    return NULL;
}


static int
rollout_is_busy(const rollout_t *rollout, const rollout_step_t *step,
    const llmgw_roster_t *roster, const char *group)
{
    size_t                 i;
    const llmgw_member_t  *other;

    for (i = 0; i < rollout->nsteps; i++) {
        if (&rollout->steps[i] == step
            || !rollout_is_active(&rollout->steps[i]))
        {
            continue;
        }

        other = llmgw_roster_find(roster, rollout->steps[i].id);

        if (other != NULL && strcmp(other->group, group) == 0) {
            return 1;
        }
    }

    return 0;
}


static int
rollout_is_waking(const llmgw_roster_t *roster, const llmgw_member_t *member)
{
    const llmgw_member_t  *peer;

    peer = member;

    do {
        if (llmgw_group_has_process(peer, member->group)
            && peer->group_state == LLMGW_GROUP_WAKING)
        {
            return 1;
        }

        peer = rollout_peer(roster, member, peer == member ? NULL : peer);
    } while (peer != NULL);

    return 0;
}


static int
rollout_has_successor(const rollout_t *rollout, const llmgw_roster_t *roster,
    const llmgw_member_t *member)
{
    const llmgw_member_t  *peer;

    for (peer = rollout_peer(roster, member, NULL); peer != NULL;
         peer = rollout_peer(roster, member, peer))
    {
        if (llmgw_group_is_standby(peer, member->group)
            && strcmp(peer->model_version, rollout->to) == 0)
        {
            return 1;
        }
    }

    return 0;
}


rollout_way_t
rollout_way(const rollout_t *rollout, const rollout_step_t *step,
    const llmgw_roster_t *roster, const llmgw_member_t *member,
    const char **why)
{
    if (member == NULL || rollout_peer(roster, member, NULL) == NULL) {
        return ROLLOUT_BY_DRAIN;
    }

    if (rollout_is_busy(rollout, step, roster, member->group)) {
        *why = "another replica of its group is being updated";
        return ROLLOUT_NOT_NOW;
    }

    if (rollout_is_waking(roster, member)) {
        *why = "a standby of its group is waking";
        return ROLLOUT_NOT_NOW;
    }

    if (member != llmgw_group_active(roster->members, roster->n,
                                     member->group))
    {
        return ROLLOUT_AT_ONCE;
    }

    if (rollout_has_successor(rollout, roster, member)) {
        return ROLLOUT_BY_SWITCH;
    }

    *why = "it is active, and its group has no standby of the new version";

    return ROLLOUT_NOT_NOW;
}


/* --- the switch */

void
rollout_look_switching(rollout_t *rollout, rollout_step_t *step,
    const llmgw_roster_t *roster, uint64_t now_us)
{
    const llmgw_member_t  *active;

    if (step->doing != ROLLOUT_NOTHING) {
        return;
    }

    active = llmgw_group_active(roster->members, roster->n, step->group);

    if (active != NULL && active->group_epoch > step->group_epoch) {

        if (strcmp(active->model_version, rollout->to) != 0) {
            rollout_fail(rollout, step, now_us, "\"%s\" of version \"%s\" "
                         "is active now", active->id, active->model_version);
            return;
        }

        if (active->service == LLMGW_SERVICE_READY) {
            strcpy(step->successor, active->id);
            rollout_enter(step, ROLLOUT_PROBING, ROLLOUT_PROBE, now_us);
            return;
        }
    }

    if (now_us >= step->since_us + rollout->rejoin_timeout_us) {
        rollout_fail(rollout, step, now_us, "no standby has taken over after "
                     "%.3g s", rollout->rejoin_timeout_us / 1e6);
    }
}
