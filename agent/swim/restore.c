
/*
 * What an agent takes over from the segment that its predecessor wrote.
 *
 * nginx routes by that segment, so the first publication of a new agent must
 * not take away anything that works.  Members that were ALIVE or SUSPECT are so
 * again.  DEAD and LEFT members are restored, too: they count for the base
 * model of an upstream (docs/adr/0016).  The segment does not have their age.
 * It is assumed to be TOMBSTONE_TOLD_US, at which other agents do not take them
 * up, plus the time since the segment was written; the first table of another
 * agent corrects it.
 *
 * A predecessor that was isolated counted its members as DEAD while nginx still
 * used them.  Then the new agent is isolated as well, until it has met enough
 * of them again (isolation.c).
 */

#include <string.h>

#include "swim/swim_inner.h"
#include "swim/table/tombstone.h"


/* Finds a member's list of models.  If it is not there, the record lacks it, as
   it lacks everything that the segment does not have. */
static void
restore_models(const swim_t *swim, member_update_t *update)
{
    const swim_callbacks_t  *callbacks;

    callbacks = swim->config.callbacks;

    if (callbacks->find_models != NULL && update->facts.models != 0) {
        update->models = callbacks->find_models(swim->config.data,
                                                update->facts.models,
                                                &update->models_bytes);
    }

    if (update->models == NULL) {
        update->facts.models = 0;
        update->facts.models_cut = 0;
    }
}


/* gone_us: the assumed age of a DEAD or LEFT member. */
static void
restore_member(swim_t *swim, const llmgw_member_t *facts,
    const llmgw_member_load_t *load, uint64_t gone_us, uint64_t now_us)
{
    member_t        *member;
    member_update_t  update;

    memset(&update, 0, sizeof(update));
    update.facts = *facts;

    if (!member_liveness_is_present(facts->liveness)) {

        if (gone_us >= TOMBSTONE_US) {
            return;
        }

        update.age_s = gone_us / SWIM_S;
    }

    restore_models(swim, &update);

    member = swim_restore_member(swim, &update, now_us);

    if (member != NULL) {
        member->load = *load;
        member->lacks_traits = 1;
        member->lacks_age = !member_is_present(member);
        member->lacks_more = MEMBER_MORE_ALL;
    }
}


/* Restores our own record, which is of an earlier run. */
static void
restore_own(swim_t *swim, const llmgw_member_t *past, uint64_t now_us)
{
    llmgw_member_t  *own;

    own = &swim->own->facts;

    if (skew_is_refused(swim, past->epoch, now_us)) {
        skew_own_refused(swim, past->epoch, now_us);

    } else if (past->epoch >= own->epoch) {
        own->epoch = past->epoch + 1;
    }
}


void
swim_restore(swim_t *swim, const llmgw_members_view_t *view, uint64_t now_us)
{
    size_t                 i;
    uint64_t               gone_us, written_us;
    const llmgw_member_t  *facts;

    /* a guess: others do not take up a tombstone of this age */
    gone_us = TOMBSTONE_TOLD_US;
    written_us = view->heartbeat_ms * 1000;

    if (now_us > written_us) {
        gone_us += now_us - written_us;
    }

    for (i = 0; i < view->n; i++) {
        facts = &view->members[i];

        if (strcmp(facts->id, swim->own->facts.id) == 0) {
            restore_own(swim, facts, now_us);

        } else if (table_find(&swim->table, facts->id) == NULL) {
            restore_member(swim, facts, &view->loads[i], gone_us, now_us);
        }
    }

    reconnect_restore(swim, now_us);

    if (view->isolated) {
        isolation_restore(swim, now_us);
    }
}
