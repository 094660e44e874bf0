
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "swim/table/member.h"


static unsigned
member_merge_confirmers(member_t *member, const member_update_t *update)
{
    size_t    i;
    unsigned  changes;

    changes = 0;

    if (update->facts.liveness != LLMGW_LIVENESS_SUSPECT
        || update->facts.epoch != member->facts.epoch
        || update->facts.incarnation != member->facts.incarnation)
    {
        return 0;
    }

    for (i = 0; i < update->nconfirmers; i++) {
        if (member_confirm(member, update->confirmers[i])) {
            changes = MEMBER_CONFIRMED;
        }
    }

    return changes;
}


int
member_set_models(member_t *member, const char *models, size_t bytes)
{
    char  *copy;

    copy = NULL;

    if (bytes != 0) {
        copy = malloc(bytes);

        if (copy != NULL) {
            memcpy(copy, models, bytes);
        }
    }

    free(member->models);
    member->models = copy;
    member->models_bytes = copy != NULL ? bytes : 0;
    member->facts.models = copy != NULL ? llmgw_members_list_hash(copy, bytes)
                                        : 0;

    return copy != NULL || bytes == 0 ? 0 : -1;
}


static void
member_take_group(llmgw_member_t *facts, const llmgw_member_t *from)
{
    facts->group_state = from->group_state;
    facts->group_epoch = from->group_epoch;
    facts->group_lock = from->group_lock;
    memcpy(facts->group, from->group, sizeof(facts->group));
}


/* A shard's facts are in the place of others' resume group.  An update without
   the shards' edition of MemberMore leaves a shard's as they are. */
static void
member_take_shard(member_t *member, const member_update_t *update,
    member_more_t more)
{
    llmgw_member_t  *facts;

    facts = &member->facts;

    if (more >= MEMBER_MORE_ALL) {
        facts->is_shard = update->facts.is_shard;
        member->traits.orchestrates = update->traits.orchestrates;

    } else if (facts->is_shard) {
        return;
    }

    memcpy(facts->resume_group, update->facts.resume_group,
           sizeof(facts->resume_group));
}


/* Takes that much of MemberMore.  If there is no memory for the list, it is
   lacking, so the member sends it again. */
static void
member_take_more(member_t *member, const member_update_t *update,
    member_more_t more)
{
    member->lacks_more = MEMBER_MORE_ALL - more;

    if (more >= MEMBER_MORE_GROUP) {
        member_take_group(&member->facts, &update->facts);
    }

    if (more < MEMBER_MORE_FIRST) {
        return;
    }

    member_take_shard(member, update, more);
    member->facts.models_cut = update->facts.models_cut;

    if (member->facts.models != update->facts.models
        && member_set_models(member, update->models, update->models_bytes)
           != 0)
    {
        member->lacks_more = MEMBER_MORE_ALL;
    }
}


static int
member_more_differs(const llmgw_member_t *a, const llmgw_member_t *b)
{
    return a->models != b->models || a->models_cut != b->models_cut
           || !llmgw_member_shards_are_alike(a, b)
           || !llmgw_member_groups_are_alike(a, b);
}


/* It has had this liveness for that long. */
static void
member_take_age(member_t *member, uint32_t age_s, uint64_t now_us)
{
    uint64_t  age_us = age_s * 1000000ULL;

    member->since_us = now_us > age_us ? now_us - age_us : 0;
    member->lacks_age = 0;
}


void
member_init(member_t *member, const member_update_t *update, uint64_t now_us)
{
    memset(member, 0, sizeof(member_t));

    member->facts = update->facts;
    member->facts.models = 0;
    member_take_more(member, update, MEMBER_MORE_ALL);
    member->traits = update->traits;
    member->load.active_requests = update->active_requests;
    member->load.engine = update->engine;
    member->load_seq = update->load_seq;
    member_take_age(member, update->age_s, now_us);
    member->present_until_us = member_is_present(member) ? UINT64_MAX : 0;
    member_merge_confirmers(member, update);
}


void
member_done(member_t *member)
{
    free(member->models);
}


int
member_is_newer(const llmgw_member_t *known, const llmgw_member_t *update)
{
    if (update->epoch != known->epoch) {
        return update->epoch > known->epoch;
    }

    if (known->liveness == LLMGW_LIVENESS_LEFT) {
        return 0;
    }

    if (update->incarnation != known->incarnation) {
        return update->incarnation > known->incarnation;
    }

    return update->liveness > known->liveness;
}


int
member_is_same(const llmgw_member_t *known, const llmgw_member_t *update)
{
    return update->epoch == known->epoch
           && update->incarnation == known->incarnation
           && update->liveness == known->liveness;
}


int
member_is_plausible(const llmgw_member_t *known, const llmgw_member_t *update)
{
    return update->epoch != known->epoch
           || update->incarnation <= known->incarnation
           || update->incarnation - known->incarnation
              <= MEMBER_MAX_INCARNATION_JUMP;
}


/*
 * Second-hand figures are shown, but only figures from the member itself count
 * as fresh: the age of others is not known.  What an older agent left out stays
 * as it was.
 */
static unsigned
member_merge_load_update(member_t *member, const member_update_t *update,
    int is_first_hand, uint64_t now_us)
{
    if (update->facts.epoch != member->facts.epoch
        || update->load_seq <= member->load_seq)
    {
        return 0;
    }

    if (is_first_hand) {
        return member_merge_load(member, update->active_requests,
                                 &update->engine, update->load_seq, now_us);
    }

    member->load_seq = update->load_seq;
    member->load.active_requests = update->active_requests;

    if (update->more >= MEMBER_MORE_FIRST) {
        member->load.engine = update->engine;
    }

    return MEMBER_LOAD;
}


unsigned
member_merge_load(member_t *member, uint32_t active_requests,
    const llmgw_engine_load_t *engine, uint64_t load_seq, uint64_t now_us)
{
    if (load_seq <= member->load_seq) {
        return 0;
    }

    member->load_seq = load_seq;
    member->load.active_requests = active_requests;
    member->load.engine = *engine;
    member->load.reported_ms = now_us / 1000;

    return MEMBER_LOAD;
}


/* If a member's own record lacks facts, its agent has none. */
static member_more_t
member_more_said(const member_update_t *update, int is_first_hand)
{
    return is_first_hand ? MEMBER_MORE_ALL : update->more;
}


static unsigned
member_complete_more(member_t *member, const member_update_t *update,
    member_more_t more)
{
    llmgw_member_t  known;

    known = member->facts;
    member_take_more(member, update, more);

    return member_more_differs(&known, &member->facts) ? MEMBER_MORE : 0;
}


/* All traits but the one that comes with MemberMore. */
static void
member_take_traits(member_t *member, const member_update_t *update)
{
    int  orchestrates;

    orchestrates = member->traits.orchestrates;
    member->traits = update->traits;
    member->traits.orchestrates = orchestrates;
}


/*
 * Completes a record with what the segment does not have, and with what an
 * older agent left out.
 */
static unsigned
member_complete(member_t *member, const member_update_t *update,
    int is_first_hand, uint64_t now_us)
{
    unsigned       changes;
    member_more_t  more;

    changes = 0;
    more = member_more_said(update, is_first_hand);

    if (update->facts.epoch != member->facts.epoch
        || update->facts.incarnation != member->facts.incarnation)
    {
        return 0;
    }

    if (MEMBER_MORE_ALL - more < member->lacks_more) {
        changes = member_complete_more(member, update, more);
    }

    if (member->lacks_age && member_is_same(&member->facts, &update->facts)) {
        member_take_age(member, update->age_s, now_us);
    }

    if (member->lacks_traits) {
        member_take_traits(member, update);
        member->lacks_traits = 0;
        changes = MEMBER_TRAITS;
    }

    return changes;
}


/* Takes facts of a later place; those it lacks stay as they were. */
static void
member_replace_facts(member_t *member, const member_update_t *update,
    int is_first_hand)
{
    llmgw_member_t  known;

    known = member->facts;

    member->facts = update->facts;
    member->facts.models = known.models;
    member->facts.models_cut = known.models_cut;
    member->facts.is_shard = known.is_shard;
    memcpy(member->facts.resume_group, known.resume_group,
           sizeof(known.resume_group));
    member_take_group(&member->facts, &known);
    member_take_more(member, update, member_more_said(update, is_first_hand));

    member_take_traits(member, update);
    member->lacks_traits = 0;
}


static void
member_keep_past(member_t *member, uint64_t now_us)
{
    const llmgw_member_t  *known;

    known = &member->facts;
    member->past.until_us = 0;

    if (known->drain_owner[0] != '\0') {
        member->past.until_us = now_us + MEMBER_PAST_US;
        member->past.epoch = known->epoch;
        member->past.incarnation = known->incarnation;
        strcpy(member->past.owner, known->drain_owner);
    }
}


static unsigned
member_merge_facts(member_t *member, const member_update_t *update,
    int is_first_hand, uint64_t now_us)
{
    unsigned         changes;
    llmgw_member_t  *known;

    known = &member->facts;
    changes = member_complete(member, update, is_first_hand, now_us);

    if (!member_is_newer(known, &update->facts)) {
        return changes;
    }

    if (update->facts.liveness != known->liveness) {
        member_set_liveness(member, update->facts.liveness, now_us);
        member_take_age(member, update->age_s, now_us);
        changes |= MEMBER_LIVENESS;
    }

    member->nconfirmers = 0;

    if (update->facts.epoch == known->epoch
        && update->facts.incarnation == known->incarnation)
    {
        return changes;
    }

    if (update->facts.epoch != known->epoch) {
        memset(&member->load, 0, sizeof(llmgw_member_load_t));
        member->load_seq = 0;
        member->seen = 0;       /* a new process has no record of us */
        member_keep_past(member, now_us);
    }

    member_replace_facts(member, update, is_first_hand);

    return changes | MEMBER_FACTS;
}


unsigned
member_merge(member_t *member, const member_update_t *update,
    int is_first_hand, uint64_t now_us)
{
    unsigned  changes;

    changes = member_merge_facts(member, update, is_first_hand, now_us);
    changes |= member_merge_confirmers(member, update);

    return changes | member_merge_load_update(member, update, is_first_hand,
                                              now_us);
}


void
member_set_liveness(member_t *member, llmgw_liveness_t liveness,
    uint64_t now_us)
{
    int  was_present;

    was_present = member_is_present(member);
    member->facts.liveness = liveness;
    member_take_age(member, 0, now_us);
    member->nconfirmers = 0;

    if (!was_present && member_is_present(member)) {
        member->present_until_us = UINT64_MAX;

    } else if (was_present && !member_is_present(member)) {
        member->present_until_us = now_us;
    }
}


int
member_liveness_is_present(unsigned liveness)
{
    return liveness == LLMGW_LIVENESS_ALIVE
           || liveness == LLMGW_LIVENESS_SUSPECT;
}


int
member_is_present(const member_t *member)
{
    return member_liveness_is_present(member->facts.liveness);
}


void
member_refuse_epoch(llmgw_member_t *facts)
{
    facts->group_state = LLMGW_GROUP_INIT;
    facts->group_epoch = 0;
    facts->group_lock = 0;
}


uint32_t
member_age_s(const member_t *member, uint64_t now_us)
{
    uint64_t  age_s;

    if (member_is_present(member) || now_us < member->since_us) {
        return 0;
    }

    age_s = (now_us - member->since_us) / 1000000;

    return age_s < UINT32_MAX ? age_s : UINT32_MAX;
}


uint64_t
member_digest(const member_t *member)
{
    uint64_t  order[3];

    order[0] = member->facts.epoch;
    order[1] = member->facts.incarnation;
    order[2] = member->facts.liveness;

    return XXH3_64bits_withSeed(order, sizeof(order),
                                XXH3_64bits(member->facts.id,
                                            strlen(member->facts.id)));
}


int
member_recall(const member_t *member, member_t *past, uint64_t now_us)
{
    if (now_us >= member->past.until_us) {
        return 0;
    }

    memset(past, 0, sizeof(member_t));
    past->facts = member->facts;
    past->facts.models = 0;
    past->facts.epoch = member->past.epoch;
    past->facts.incarnation = member->past.incarnation;
    past->facts.draining = 1;
    strcpy(past->facts.drain_owner, member->past.owner);

    return 1;
}


uint32_t
member_hash(const char *id)
{
    return XXH3_64bits(id, strlen(id));
}


uint32_t
member_seen(const llmgw_member_t *facts)
{
    uint32_t  seen;
    uint64_t  order[2];

    order[0] = facts->epoch;
    order[1] = facts->incarnation;
    seen = XXH3_64bits(order, sizeof(order));

    return seen ? seen : 1;
}


int
member_says_as_much(const member_t *member, const member_update_t *update)
{
    const llmgw_member_t  *facts;

    facts = &member->facts;

    return MEMBER_MORE_ALL - update->more <= member->lacks_more
           || (!facts->is_shard && !member->traits.orchestrates
               && (update->more == MEMBER_MORE_GROUP
                   || (facts->group[0] == '\0'
                       && (update->more == MEMBER_MORE_FIRST
                           || (facts->resume_group[0] == '\0'
                               && facts->models == 0)))));
}


uint32_t
member_has(const member_t *member)
{
    return member->lacks_traits || member->lacks_more
           ? 0 : member_seen(&member->facts);
}


int
member_confirm(member_t *member, uint32_t confirmer)
{
    size_t  i;

    if (member->facts.liveness != LLMGW_LIVENESS_SUSPECT
        || member->nconfirmers == MEMBER_MAX_CONFIRMERS)
    {
        return 0;
    }

    for (i = 0; i < member->nconfirmers; i++) {
        if (member->confirmers[i] == confirmer) {
            return 0;
        }
    }

    member->confirmers[member->nconfirmers++] = confirmer;

    return 1;
}


void
member_measure_rtt(member_t *member, uint64_t rtt_us)
{
    uint32_t  rtt, error;

    rtt = rtt_us < UINT32_MAX / 8 ? rtt_us : UINT32_MAX / 8;
    rtt = rtt ? rtt : 1;

    if (member->srtt_us == 0) {
        member->srtt_us = rtt;
        member->rttvar_us = rtt / 2;
        return;
    }

    error = rtt > member->srtt_us ? rtt - member->srtt_us
                                  : member->srtt_us - rtt;
    member->rttvar_us += error / 4 - member->rttvar_us / 4;
    member->srtt_us += rtt / 8 - member->srtt_us / 8;
    member->srtt_us = member->srtt_us ? member->srtt_us : 1;
}
