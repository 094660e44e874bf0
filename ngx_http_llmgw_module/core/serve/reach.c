
#include "core/serve/reach.h"


void
llmgw_reach_update(llmgw_reach_t *reach, llmgw_liveness_t liveness,
    uint64_t now_ms)
{
    if (liveness == LLMGW_LIVENESS_ALIVE) {
        reach->suspect_ms = 0;

    } else if (reach->suspect_ms == 0) {
        reach->suspect_ms = now_ms != 0 ? now_ms : 1;
    }
}


llmgw_peer_state_t
llmgw_reach_by_gossip(const llmgw_reach_facts_t *facts)
{
    if (facts->is_barred) {
        return LLMGW_PEER_UNUSABLE;
    }

    switch (facts->standing) {

    case LLMGW_STANDING_FREE:
    case LLMGW_STANDING_LEADS:
        break;

    case LLMGW_STANDING_WARM:
        return LLMGW_PEER_STANDBY;

    default:
        return LLMGW_PEER_UNUSABLE;
    }

    if (facts->service != LLMGW_SERVICE_READY) {
        return LLMGW_PEER_UNUSABLE;
    }

    switch (facts->liveness) {

    case LLMGW_LIVENESS_ALIVE:
        return LLMGW_PEER_ALIVE;

    case LLMGW_LIVENESS_SUSPECT:
        return LLMGW_PEER_SUSPECT;

    case LLMGW_LIVENESS_DEAD:
        /* an agent cut off from gossip believes all others dead */
        return facts->is_isolated ? LLMGW_PEER_SUSPECT : LLMGW_PEER_UNUSABLE;

    default:
        return LLMGW_PEER_UNUSABLE;
    }
}


llmgw_peer_state_t
llmgw_reach_state(const llmgw_reach_t *reach,
    const llmgw_reach_facts_t *facts, uint64_t now_ms)
{
    int                 backs_off;
    llmgw_peer_state_t  state;

    state = llmgw_reach_by_gossip(facts);
    backs_off = llmgw_reach_wait_ms(reach, now_ms) != 0;

    if (state == LLMGW_PEER_ALIVE && backs_off) {
        return facts->has_standby ? LLMGW_PEER_UNUSABLE : LLMGW_PEER_SUSPECT;
    }

    if (state == LLMGW_PEER_STANDBY && !backs_off
        && (facts->is_stale || facts->is_isolated))
    {
        return LLMGW_PEER_LAST;
    }

    return state;
}


uint32_t
llmgw_reach_failed(llmgw_reach_t *reach, uint64_t now_ms)
{
    uint32_t  twice_ms;

    twice_ms = reach->backoff_ms * 2;

    reach->backoff_ms = twice_ms == 0 ? LLMGW_REACH_BACKOFF_MS
                        : twice_ms < LLMGW_REACH_BACKOFF_MAX_MS
                        ? twice_ms : LLMGW_REACH_BACKOFF_MAX_MS;
    reach->retry_ms = now_ms + reach->backoff_ms;

    return reach->backoff_ms;
}


void
llmgw_reach_renewed(llmgw_reach_t *reach)
{
    reach->backoff_ms = 0;
    reach->retry_ms = 0;
}


uint64_t
llmgw_reach_wait_ms(const llmgw_reach_t *reach, uint64_t now_ms)
{
    return reach->retry_ms > now_ms ? reach->retry_ms - now_ms : 0;
}


int
llmgw_reach_is_absent(const llmgw_reach_facts_t *facts)
{
    return facts->standing == LLMGW_STANDING_WARM
           || (facts->standing == LLMGW_STANDING_LEADS && facts->has_standby);
}


llmgw_cause_t
llmgw_reach_leaves(const llmgw_reach_t *reach,
    const llmgw_reach_facts_t *facts, const llmgw_attempt_t *attempt)
{
    if (facts->service == LLMGW_SERVICE_DOWN) {
        return LLMGW_CAUSE_MEMBER_DOWN;
    }

    if (facts->standing == LLMGW_STANDING_PAST) {
        return LLMGW_CAUSE_MEMBER_SUPERSEDED;
    }

    if (facts->liveness == LLMGW_LIVENESS_DEAD && !facts->is_isolated
        && attempt->heard_ms < reach->suspect_ms)
    {
        return LLMGW_CAUSE_MEMBER_DEAD;
    }

    if (facts->service == LLMGW_SERVICE_STALLED && !attempt->has_begun) {
        return LLMGW_CAUSE_MEMBER_STALLED;
    }

    return LLMGW_CAUSE_NONE;
}
