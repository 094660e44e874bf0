
/* Members at random: a reservoir of one pass over the table. */

#include "swim_core.h"


size_t
swim_pick(swim_t *swim, member_t **picked, size_t max, swim_pick_pt fits,
    const void *data)
{
    size_t     i, slot, seen;
    member_t  *member;

    seen = 0;

    for (i = 0; i < swim->table.n; i++) {
        member = swim->table.members[i];

        if (!fits(swim, member, data)) {
            continue;
        }

        seen++;
        slot = seen <= max ? seen - 1 : rnd_below(&swim->rnd, seen);

        if (slot < max) {
            picked[slot] = member;
        }
    }

    return seen < max ? seen : max;
}


int
swim_fits_present(const swim_t *swim, const member_t *member,
    const void *data)
{
    return member != swim->own && member != data && member_is_present(member);
}


int
swim_fits_dead(const swim_t *swim, const member_t *member, const void *data)
{
    return member != swim->own
           && member->facts.liveness == LLMGW_LIVENESS_DEAD;
}
