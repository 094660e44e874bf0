
/*
 * The replicas that a request avoids: excluded ones, and those that pushed it
 * back for a while (attempt/excluded.c in nginx).
 */

#include "sim/gateway/gateway_inner.h"


void
excluded_add(stream_t *s, uint32_t replica, int keeps)
{
    if (s->nexcluded == STREAM_EXCLUDED) {
        return;
    }

    s->excluded_keeps &= ~(UINT64_C(1) << s->nexcluded);
    s->excluded_keeps |= (uint64_t) (keeps != 0) << s->nexcluded;
    s->excluded[s->nexcluded++] = replica;
}


void
excluded_forget(stream_t *s, llmgw_forget_t forget)
{
    uint32_t  i, n;

    if (forget == LLMGW_FORGET_NOTHING) {
        return;
    }

    n = s->nexcluded;
    s->nexcluded = 0;

    for (i = 0; i < n && forget == LLMGW_FORGET_BUT_FAILED; i++) {
        if (s->excluded_keeps >> i & 1) {
            excluded_add(s, s->excluded[i], 1);
        }
    }
}


void
excluded_push_back(gateway_t *g, stream_t *s, uint32_t replica)
{
    excluded_look(g, s);

    if (s->npushed < STREAM_PUSHED) {
        s->pushed[s->npushed] = replica;
        s->pushed_ms[s->npushed++] = gateway_ms(g)
                        + llmgw_full_pushback_ms(LLMGW_PUSHBACK_NONE,
                                                 ++s->refusals);
    }
}


void
excluded_look(gateway_t *g, stream_t *s)
{
    uint32_t  i, n;

    n = s->npushed;
    s->npushed = 0;
    s->told.until_ms = UINT64_MAX;

    for (i = 0; i < n; i++) {

        if (s->pushed_ms[i] <= gateway_ms(g)) {
            continue;
        }

        if (s->pushed_ms[i] < s->told.until_ms) {
            s->told.until_ms = s->pushed_ms[i];
        }

        s->pushed[s->npushed] = s->pushed[i];
        s->pushed_ms[s->npushed++] = s->pushed_ms[i];
    }

    s->told.peers = s->pushed;
    s->told.npeers = s->npushed;
    s->claim.pushed = s->npushed != 0 ? &s->told : NULL;
}
