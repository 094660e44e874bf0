
/*
 * What an update changes: the one place where a record changes.
 *
 * An update about a known member is merged (table/member.h); one about the own
 * id may have to be refuted; after one about a stranger, the stranger is
 * pinged.  Each change goes from here to the parts that keep something about
 * the member (probe, suspicion, schedule), into the broadcast queue, and to the
 * owner.
 */

#include <string.h>

#include "swim/swim_inner.h"
#include "swim/table/tombstone.h"


/*
 * For this long after the start, a record of an earlier epoch of ours is used.
 */
#define SWIM_PAST_US  MEMBER_PAST_US


const member_update_t *
swim_own_word(const packet_t *packet)
{
    const member_update_t  *first;

    first = &packet->updates[0];

    return packet->nupdates > 0
           && strcmp(first->facts.id, packet->head.sender_id) == 0
           ? first : NULL;
}


/* Tells the other parts about a member's new liveness. */
static void
swim_enact_liveness(swim_t *swim, member_t *member, uint64_t now_us)
{
    if (member->facts.liveness == LLMGW_LIVENESS_SUSPECT) {
        suspicion_start(swim, member, now_us);

    } else {
        suspicion_stop(swim, member);
    }

    if (member_is_present(member)) {
        schedule_add(swim, member);

    } else {
        schedule_drop(swim, member);
        delivery_drop(swim, member);
        handout_drop(swim, member);
    }

    if (member->facts.liveness == LLMGW_LIVENESS_DEAD) {
        reconnect_died(swim, member, now_us);
    }

    if (swim->is_isolated || member->facts.liveness == LLMGW_LIVENESS_DEAD) {
        isolation_count(swim, now_us);
    }
}


static broadcast_class_t
swim_class(const member_t *member, unsigned what)
{
    if (!member_is_present(member)) {
        return BROADCAST_GONE;
    }

    return what & (MEMBER_LIVENESS|MEMBER_CONFIRMED|MEMBER_REFUTED)
           ? BROADCAST_SUSPICION : BROADCAST_JOIN;
}


void
swim_changed(swim_t *swim, member_t *member, unsigned what)
{
    if (what & ~(MEMBER_LOAD|MEMBER_TRAITS)) {
        broadcast_add(&swim->broadcast, member, swim_class(member, what));
    }

    what &= ~(MEMBER_CONFIRMED|MEMBER_REFUTED);

    if (what != 0) {
        swim->config.callbacks->on_change(swim->config.data, member, what);
    }
}


/* Adds a member.  is_update: the update is sent on to others. */
static member_t *
swim_add_member(swim_t *swim, const member_update_t *update, int is_update,
    uint64_t now_us)
{
    member_t  *member;

    member = table_add(&swim->table, update, now_us);

    if (member == NULL) {
        swim->counters.members_refused++;
        return NULL;
    }

    swim_enact_liveness(swim, member, now_us);

    if (is_update) {
        swim_changed(swim, member, MEMBER_ADDED);

    } else {
        swim->config.callbacks->on_change(swim->config.data, member,
                                          MEMBER_ADDED);
    }

    return member;
}


member_t *
swim_add(swim_t *swim, const member_update_t *update, uint64_t now_us)
{
    return swim_add_member(swim, update, 1, now_us);
}


member_t *
swim_restore_member(swim_t *swim, const member_update_t *update,
    uint64_t now_us)
{
    return swim_add_member(swim, update, 0, now_us);
}


void
swim_judge(swim_t *swim, member_t *member, llmgw_liveness_t liveness,
    uint64_t now_us)
{
    int  was_present;

    was_present = member_is_present(member);

    member_set_liveness(member, liveness, now_us);
    table_count(&swim->table, was_present, member);
    swim_enact_liveness(swim, member, now_us);
    swim_changed(swim, member, MEMBER_LIVENESS);
}


void
swim_suspect(swim_t *swim, member_t *member, uint64_t now_us)
{
    if (member->facts.liveness == LLMGW_LIVENESS_ALIVE) {
        swim->counters.suspicions++;
        swim_judge(swim, member, LLMGW_LIVENESS_SUSPECT, now_us);
    }

    member->is_confirm_due = 0;

    if (member_confirm(member, swim->own_hash)) {
        swim->counters.accusations++;
        suspicion_add_confirmer(swim, member);
        swim_changed(swim, member, MEMBER_CONFIRMED);
    }
}


void
swim_remove(swim_t *swim, member_t *member)
{
    suspicion_stop(swim, member);
    schedule_drop(swim, member);
    probe_forgive(swim, member);
    delivery_drop(swim, member);
    handout_drop(swim, member);
    broadcast_remove(&swim->broadcast, member);

    swim->config.callbacks->on_change(swim->config.data, member,
                                      MEMBER_REMOVED);
    table_remove(&swim->table, member);
}


/*
 * Takes a record of our last run, which others still have: a drain that an
 * operator asked for outlives a restart, even if the state directory does not
 * (swim/order/drain.h).
 */
static void
swim_merge_past(swim_t *swim, const llmgw_member_t *update, uint64_t now_us)
{
    if (now_us <= swim->started_us + SWIM_PAST_US) {
        swim_drain_changed(swim, drain_merge_past(&swim->drain, update),
                           now_us);
    }
}


/*
 * An update about ourselves.  If it says SUSPECT or DEAD, it is refuted by a
 * higher incarnation.
 */
static void
swim_merge_self(swim_t *swim, const llmgw_member_t *update, uint64_t now_us)
{
    llmgw_member_t  *own;

    own = &swim->own->facts;

    if (!member_is_present(swim->own)) {
        return;
    }

    if (update->epoch < own->epoch) {
        swim_merge_past(swim, update, now_us);
        return;
    }

    if (update->epoch > own->epoch || update->liveness == LLMGW_LIVENESS_LEFT
        || strcmp(update->address, own->address) != 0)
    {
        conflict_found(swim, update, now_us);
        return;
    }

    if (!member_is_newer(own, update)) {
        return;
    }

    if (!member_is_plausible(own, update)) {
        swim->counters.updates_implausible++;
        return;
    }

    own->incarnation = update->incarnation + 1;
    swim->counters.refutations++;
    local_health_worsen(swim, 1);
    swim_changed(swim, swim->own, MEMBER_FACTS|MEMBER_REFUTED);

    if (update->liveness == LLMGW_LIVENESS_DEAD) {
        reconnect_returned(swim, now_us);
    }
}


/*
 * An update about a stranger.  If it says ALIVE or SUSPECT, the stranger is
 * pinged first.  If it says DEAD or LEFT, the stranger becomes a tombstone, so
 * that an older ALIVE cannot revive it, unless all others are about to forget
 * it.
 */
static void
swim_merge_stranger(swim_t *swim, const member_update_t *update,
    uint64_t now_us)
{
    member_t  *member;

    if (member_liveness_is_present(update->facts.liveness)) {
        stranger_add(swim, &update->facts, 0, now_us);
        return;
    }

    if (update->age_s * SWIM_S >= TOMBSTONE_TOLD_US) {
        return;
    }

    member = swim_add(swim, update, now_us);
    if (member != NULL) {
        member->lacks_more = MEMBER_MORE_ALL - update->more;
    }
}


/*
 * A member that is not ALIVE here and does not refute may be one that receives
 * nothing, and so finds all others dead.  Its suspicions are ignored until it
 * has refuted.
 */
static int
swim_is_doubtful(const member_t *sender, const member_update_t *update)
{
    return sender != NULL && sender->facts.liveness != LLMGW_LIVENESS_ALIVE
           && (update->facts.liveness == LLMGW_LIVENESS_SUSPECT
               || update->facts.liveness == LLMGW_LIVENESS_DEAD);
}


/*
 * Tells a record's changes to the parts that keep something about the member.
 */
static void
swim_enact(swim_t *swim, member_t *member, unsigned what, uint64_t now_us)
{
    if (what & MEMBER_FACTS) {
        probe_forgive(swim, member);
    }

    /* a suspicion of a new incarnation begins again */
    if (what & (MEMBER_LIVENESS|MEMBER_FACTS)) {
        swim_enact_liveness(swim, member, now_us);

    } else if (what & MEMBER_CONFIRMED) {
        suspicion_add_confirmer(swim, member);
    }

    swim_changed(swim, member, what);
}


static void
swim_merge_member(swim_t *swim, member_t *member,
    const member_update_t *update, int is_first_hand, uint64_t now_us)
{
    int       was_present, was_dead;
    unsigned  what;

    skew_give_way(swim, member, now_us);

    was_present = member_is_present(member);
    was_dead = member->facts.liveness == LLMGW_LIVENESS_DEAD
               && member->facts.epoch == update->facts.epoch;
    what = member_merge(member, update, is_first_hand, now_us);

    if ((what & ~MEMBER_LOAD) == 0 && !is_first_hand
        && member_is_same(&member->facts, &update->facts)
        && member_says_as_much(member, update))
    {
        broadcast_received(&swim->broadcast, member,
                           broadcast_limit(swim->table.npresent));
    }

    if (what == 0) {
        return;
    }

    if (what & MEMBER_LIVENESS) {
        table_count(&swim->table, was_present, member);
    }

    swim_enact(swim, member, what, now_us);

    if (was_dead && member_is_present(member)) {
        reconnect_returned(swim, now_us);
    }
}


static void
swim_merge_update(swim_t *swim, const member_update_t *update,
    const member_t *sender, int is_first_hand, uint64_t now_us)
{
    member_t  *member;

    member = table_find(&swim->table, update->facts.id);

    if (update->refused_epoch != 0) {
        skew_group_refused(swim, &update->facts, update->refused_epoch,
                           now_us);
    }

    if (member != swim->own && !is_first_hand
        && swim_is_doubtful(sender, update))
    {
        swim->counters.updates_doubted++;

    } else if (member == NULL) {
        swim_merge_stranger(swim, update, now_us);

    } else if (member == swim->own) {
        swim_merge_self(swim, &update->facts, now_us);

    } else if (!member_is_plausible(&member->facts, &update->facts)) {
        swim->counters.updates_implausible++;

    } else {
        swim_merge_member(swim, member, update, is_first_hand, now_us);
    }
}


void
swim_merge_short(swim_t *swim, member_t *sender, const packet_head_t *head,
    uint64_t now_us)
{
    if (head->sender_epoch != sender->facts.epoch
        || head->own_incarnation != sender->facts.incarnation)
    {
        return;         /* we lack the rest of the record; our answer says
                           that */
    }

    if (member_merge_load(sender, head->own_active_requests, &head->own_engine,
                          head->own_load_seq, now_us))
    {
        swim_changed(swim, sender, MEMBER_LOAD);
    }
}


void
swim_merge(swim_t *swim, const packet_t *packet, uint64_t now_us)
{
    size_t                  i;
    const member_t         *sender;
    const member_update_t  *own_word;

    sender = table_find(&swim->table, packet->head.sender_id);
    own_word = swim_own_word(packet);

    for (i = 0; i < packet->nupdates; i++) {
        swim_merge_update(swim, &packet->updates[i], sender,
                          &packet->updates[i] == own_word, now_us);
    }
}
