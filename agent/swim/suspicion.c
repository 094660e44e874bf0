
/*
 * From SUSPECT to DEAD.
 *
 * A suspected member has at least base x max(1, log10 n) to refute: the more
 * members, the longer a suspicion and its refutation travel.  If there is only
 * one confirmer, it has six times that.  The time shrinks with each further
 * member whose own ping failed, too (Lifeguard, section IV-C), to the least
 * time when there are three more:
 *
 *     confirmers      1       2       3       4
 *     times least     6       3.5     2.04    1
 *
 * A single confirmer may be an agent that receives nothing; four at once hardly
 * are.  By chance alone it would take long until four members ping a dead one,
 * so some of the members that learn of a suspicion ping the suspect next
 * (probe.c).  If fewer than three others are ALIVE to confirm, the suspect
 * always has the least time.
 *
 * Every agent that learns of the suspicion runs its own timer, so the suspect
 * is found DEAD even if the agent that suspected it first dies.
 */

#include <stdlib.h>

#include "common/data/grow.h"
#include "swim/swim_inner.h"


#define SUSPICION_MAX_FACTOR     6
#define SUSPICION_CONFIRMATIONS  3

/* About this many of the members that learn of a suspicion ping the suspect:
   enough for three confirmations if every other ping of theirs is lost. */
#define SUSPICION_PROBERS      8


uint64_t
suspicion_timeout_us(uint64_t base_us, size_t n)
{
    double  factor;

    factor = n > 10 ? swim_log10(n) : 1.0;

    return base_us * factor;
}


uint64_t
suspicion_confirmed_us(uint64_t least_us, size_t nconfirmers, size_t npossible)
{
    double               most_us;
    static const double  shrinks[] = {      /* log4 of the number of
                                               confirmers */
        0, 0, 0.5, 0.792481250360578
    };

    if (npossible < SUSPICION_CONFIRMATIONS
        || nconfirmers > SUSPICION_CONFIRMATIONS)
    {
        return least_us;
    }

    most_us = SUSPICION_MAX_FACTOR * (double) least_us;

    return most_us - (most_us - least_us) * shrinks[nconfirmers];
}


/* The least time, which is the same for all suspects. */
static uint64_t
suspicion_least_us(const swim_t *swim)
{
    return suspicion_timeout_us(swim->config.suspect_timeout_us,
                                swim->table.npresent);
}


/*
 * Computes when a suspicion ends.  A suspect confirms nothing, and the first
 * confirmer is counted already.
 */
static void
suspicion_count(swim_t *swim, member_t *member, uint64_t least_us)
{
    size_t  nalive;

    nalive = swim->table.npresent - swim->suspicion.n;

    member->suspect_until_us = member->suspect_from_us
        + suspicion_confirmed_us(least_us, member->nconfirmers,
                                 nalive ? nalive - 1 : 0);
}


/* When half of ten thousand members are cut off, this runs for each of five
   thousand suspicions: so the logarithm is computed outside of the loop. */
static void
suspicion_count_all(swim_t *swim)
{
    size_t    i;
    uint64_t  least_us;

    least_us = suspicion_least_us(swim);

    for (i = 0; i < swim->suspicion.n; i++) {
        suspicion_count(swim, swim->suspicion.members[i], least_us);
    }
}


void
suspicion_done(suspicion_t *suspicion)
{
    free(suspicion->members);
}


/* Begins a suspicion.  -1: no memory; other agents run timers for it, too. */
int
suspicion_start(swim_t *swim, member_t *member, uint64_t now_us)
{
    suspicion_t  *suspicion;

    suspicion = &swim->suspicion;

    if (member->suspect_until_us == 0) {
        if (grow(&suspicion->members, &suspicion->capacity, suspicion->n + 1,
                 sizeof(member_t *)) != 0)
        {
            return -1;
        }

        suspicion->members[suspicion->n++] = member;
    }

    member->suspect_from_us = now_us;
    member->is_confirm_due = rnd_below(&swim->rnd, swim->table.npresent + 1)
                             < SUSPICION_PROBERS;
    suspicion_count_all(swim);

    return 0;
}


void
suspicion_stop(swim_t *swim, member_t *member)
{
    size_t        i;
    suspicion_t  *suspicion;

    suspicion = &swim->suspicion;

    if (member->suspect_until_us == 0) {
        return;
    }

    member->suspect_until_us = 0;
    member->is_confirm_due = 0;

    for (i = 0; suspicion->members[i] != member; i++) { /* void */ }

    suspicion->members[i] = suspicion->members[--suspicion->n];
    suspicion_count_all(swim);
}


void
suspicion_add_confirmer(swim_t *swim, member_t *member)
{
    if (member->suspect_until_us != 0) {
        suspicion_count(swim, member, suspicion_least_us(swim));
    }
}


member_t *
suspicion_next_to_confirm(swim_t *swim)
{
    size_t     i;
    member_t  *member;

    for (i = 0; i < swim->suspicion.n; i++) {
        member = swim->suspicion.members[i];

        if (member->is_confirm_due) {
            member->is_confirm_due = 0;
            return member;
        }
    }

    return NULL;
}


/* Walks backwards, since a death takes the member out of the list. */
void
suspicion_tick(swim_t *swim, uint64_t now_us)
{
    size_t     i;
    member_t  *member;

    for (i = swim->suspicion.n; i > 0; i--) {
        member = swim->suspicion.members[i - 1];

        if (member->suspect_until_us <= now_us) {
            swim->counters.deaths++;
            swim_judge(swim, member, LLMGW_LIVENESS_DEAD, now_us);
        }
    }
}


uint64_t
suspicion_next_us(const swim_t *swim)
{
    size_t    i;
    uint64_t  next_us;

    next_us = SWIM_NEVER;

    for (i = 0; i < swim->suspicion.n; i++) {
        if (swim->suspicion.members[i]->suspect_until_us < next_us) {
            next_us = swim->suspicion.members[i]->suspect_until_us;
        }
    }

    return next_us;
}


void
suspicion_delay(swim_t *swim, uint64_t late_us)
{
    size_t  i;

    for (i = 0; i < swim->suspicion.n; i++) {
        swim->suspicion.members[i]->suspect_from_us += late_us;
        swim->suspicion.members[i]->suspect_until_us += late_us;
    }
}
