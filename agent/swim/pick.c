
/*
 * Picks random members that fit.  As a rule most of the table fits, so a few
 * random tries find enough; otherwise one pass over the table fills a
 * reservoir.
 */

#include "swim/swim_inner.h"


#define SWIM_THROWS  4              /* random tries for each wanted member */


static int
swim_is_picked(member_t *const *picked, size_t n, const member_t *member)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (picked[i] == member) {
            return 1;
        }
    }

    return 0;
}


static size_t
swim_throw(swim_t *swim, member_t **picked, size_t max, swim_pick_pt fits,
    const void *data)
{
    size_t     i, n;
    member_t  *member;

    n = 0;

    for (i = 0; i < max * SWIM_THROWS && n < max; i++) {
        member = swim->table.members[rnd_below(&swim->rnd, swim->table.n)];

        if (fits(swim, member, data) && !swim_is_picked(picked, n, member)) {
            picked[n++] = member;
        }
    }

    return n;
}


size_t
swim_pick(swim_t *swim, member_t **picked, size_t max, swim_pick_pt fits,
    const void *data)
{
    size_t     i, slot, seen;
    member_t  *member;

    if (swim_throw(swim, picked, max, fits, data) == max) {
        return max;
    }

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
