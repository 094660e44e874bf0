
/*
 * Which member is pinged in which period: round robins that mesh.
 *
 * In SWIM each member walks a shuffled list of its own.  Each is then pinged
 * once a period on average, but by chance: in the period after a crash no agent
 * pings the dead member with probability 1/e, in two periods with 1/e^2, and
 * that wait is most of the time to detection.  Here all walk in the same way.
 * The members stand on a ring, in the order of the hashes of their ids, and in
 * each round everybody pings the member that stands the same number of steps
 * further on:
 *
 *     round 7, 3 steps:   a > d   b > e   c > a   d > b   e > c
 *     round 8, 1 step:    a > b   b > c   c > d   d > e   e > a
 *
 * so each member is pinged by exactly one in each round.  The number of steps
 * goes through 1 .. n - 1 in an order that is drawn anew each time around, by
 * a generator seeded with the number of that time.  A pair meets again at most
 * 2n - 1 rounds after it met, as in SWIM, and no two stay tied to each other.
 *
 * The number of the round is the wall clock divided by the period.  Nothing is
 * agreed upon, and nothing depends on agreement: periods begin at a moment of
 * each member's own, and a clock that is off by less than a period is as good
 * as a right one.  A member whose clock is further off, or that knows other
 * members for a while, pings another one than would be best, which is as good
 * as SWIM's random choice.  Joins and leaves change the ring, and so the
 * pairs; each member is still pinged by one other.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/data/grow.h"
#include "swim/swim_inner.h"


void
schedule_done(schedule_t *schedule)
{
    free(schedule->ring);
}


/* The place of the id on the ring, even if it is not there. */
static size_t
schedule_place(const schedule_t *schedule, const char *id)
{
    size_t       low, high, middle;
    uint32_t     hash, other;
    const char  *other_id;

    hash = member_hash(id);
    low = 0;
    high = schedule->n;

    while (low < high) {
        middle = (low + high) / 2;
        other_id = schedule->ring[middle]->facts.id;
        other = member_hash(other_id);

        if (other < hash || (other == hash && strcmp(other_id, id) < 0)) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return low;
}


void
schedule_add(swim_t *swim, member_t *member)
{
    size_t       place;
    schedule_t  *schedule;

    schedule = &swim->schedule;
    assert(member != swim->own);

    if (member->is_scheduled
        || grow(&schedule->ring, &schedule->capacity, schedule->n + 1,
                sizeof(member_t *)) != 0)
    {
        return;
    }

    place = schedule_place(schedule, member->facts.id);
    memmove(&schedule->ring[place + 1], &schedule->ring[place],
            (schedule->n++ - place) * sizeof(member_t *));
    schedule->ring[place] = member;
    member->is_scheduled = 1;
}


void
schedule_drop(swim_t *swim, member_t *member)
{
    size_t       place;
    schedule_t  *schedule;

    schedule = &swim->schedule;

    if (!member->is_scheduled) {
        return;
    }

    place = schedule_place(schedule, member->facts.id);
    memmove(&schedule->ring[place], &schedule->ring[place + 1],
            (--schedule->n - place) * sizeof(member_t *));
    member->is_scheduled = 0;
}


static size_t
schedule_gcd(size_t a, size_t b)
{
    size_t  rest;

    while (b != 0) {
        rest = a % b;
        a = b;
        b = rest;
    }

    return a;
}


/* The number of steps beyond the next member: a walk over 0 .. n - 1 that
   visits each once, by a stride that has no divisor in common with n. */
static size_t
schedule_steps(uint64_t round, size_t n)
{
    rnd_t   rnd;
    size_t  first, stride;

    rnd.state = round / n;
    first = rnd_below(&rnd, n);
    stride = 1 + rnd_below(&rnd, n);

    while (schedule_gcd(stride, n) != 1) {
        stride++;
    }

    return (first + round % n * stride) % n;
}


member_t *
schedule_choose(swim_t *swim, uint64_t at_us)
{
    size_t       place, steps;
    uint64_t     round;
    schedule_t  *schedule;

    schedule = &swim->schedule;

    if (schedule->n == 0) {
        return NULL;
    }

    place = schedule_place(schedule, swim->own->facts.id);
    round = (at_us + swim->wall_ahead_us) / swim->config.period_us;
    steps = schedule_steps(round, schedule->n);

    return schedule->ring[(place + steps) % schedule->n];
}
