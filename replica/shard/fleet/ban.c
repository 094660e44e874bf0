
#include "replica/shard/fleet/ban.h"


int
ban_is_on(const ban_t *ban, uint64_t now_ms)
{
    return now_ms < ban->until_ms;
}


/* Whether the current ban, if any, also covers this reason. */
static int
ban_covers(const ban_t *ban, shard_reason_t reason, uint64_t now_ms)
{
    return ban_is_on(ban, now_ms)
           && (reason != SHARD_CORRUPTION || ban->reason == SHARD_CORRUPTION);
}


uint64_t
ban_begin(ban_t *ban, shard_reason_t reason, uint64_t now_ms)
{
    if (ban_covers(ban, reason, now_ms)) {
        ban->reason = ban->reason == SHARD_LATE ? reason : ban->reason;
        return 0;
    }

    ban->term_ms = ban->term_ms == 0 ? BAN_MS : ban->term_ms * 2;
    ban->term_ms = ban->term_ms > BAN_MAX_MS ? BAN_MAX_MS : ban->term_ms;
    ban->until_ms = now_ms + ban->term_ms;
    ban->reason = reason;

    return ban->term_ms;
}


void
ban_forgive(ban_t *ban, uint64_t now_ms)
{
    if (!ban_is_on(ban, now_ms)) {
        ban->term_ms = 0;
    }
}


void
ban_lift(ban_t *ban)
{
    if (ban->reason != SHARD_CORRUPTION) {
        ban->until_ms = 0;
    }
}
