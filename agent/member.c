
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "member.h"


void
member_init(member_t *member, const member_news_t *news, uint64_t now_us)
{
    uint64_t  age_us;

    memset(member, 0, sizeof(member_t));

    age_us = news->age_s * 1000000ULL;

    member->facts = news->facts;
    member->load.active_requests = news->active_requests;
    member->load_seq = news->load_seq;
    member->since_us = now_us > age_us ? now_us - age_us : 0;
}


int
member_is_newer(const llmgw_member_t *known, const llmgw_member_t *news)
{
    if (news->epoch != known->epoch) {
        return news->epoch > known->epoch;
    }

    if (known->liveness == LLMGW_LIVENESS_LEFT) {
        return 0;
    }

    if (news->incarnation != known->incarnation) {
        return news->incarnation > known->incarnation;
    }

    return news->liveness > known->liveness;
}


int
member_is_plausible(const llmgw_member_t *known, const llmgw_member_t *news)
{
    return news->epoch != known->epoch
           || news->incarnation <= known->incarnation
           || news->incarnation - known->incarnation
              <= MEMBER_MAX_INCARNATION_JUMP;
}


/*
 * Second-hand figures are shown, but only the member's own word makes them
 * fresh: a rumour's age is not known.
 */
static unsigned
member_merge_load(member_t *member, const member_news_t *news,
    int is_first_hand, uint64_t now_us)
{
    if (news->facts.epoch != member->facts.epoch
        || news->load_seq <= member->load_seq)
    {
        return 0;
    }

    member->load_seq = news->load_seq;
    member->load.active_requests = news->active_requests;

    if (is_first_hand) {
        member->load.reported_ms = now_us / 1000;
    }

    return MEMBER_LOAD;
}


static unsigned
member_merge_facts(member_t *member, const member_news_t *news,
    uint64_t now_us)
{
    unsigned         changes;
    llmgw_member_t  *known;

    known = &member->facts;
    changes = 0;

    if (!member_is_newer(known, &news->facts)) {
        return 0;
    }

    if (news->facts.liveness != known->liveness) {
        member_set_liveness(member, news->facts.liveness, now_us);
        member->since_us -= news->age_s * 1000000ULL < member->since_us
                            ? news->age_s * 1000000ULL : 0;
        changes |= MEMBER_LIVENESS;
    }

    if (news->facts.epoch == known->epoch
        && news->facts.incarnation == known->incarnation)
    {
        return changes;
    }

    if (news->facts.epoch != known->epoch) {
        memset(&member->load, 0, sizeof(llmgw_member_load_t));
        member->load_seq = 0;
    }

    *known = news->facts;

    return changes | MEMBER_FACTS;
}


unsigned
member_merge(member_t *member, const member_news_t *news, int is_first_hand,
    uint64_t now_us)
{
    unsigned  changes;

    changes = member_merge_facts(member, news, now_us);

    return changes | member_merge_load(member, news, is_first_hand, now_us);
}


void
member_set_liveness(member_t *member, llmgw_liveness_t liveness,
    uint64_t now_us)
{
    member->facts.liveness = liveness;
    member->since_us = now_us;
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
