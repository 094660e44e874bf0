
/*
 * The way from SUSPECT to DEAD.
 *
 * A suspect has base x max(1, log10 n) to contradict: the more members, the
 * longer an accusation and its answer take through them.  Every agent that
 * hears of the suspicion holds its own clock on it, so that the accuser may
 * die without the accused living for ever.
 */

#include <math.h>
#include <stdlib.h>

#include "swim_core.h"


uint64_t
suspicion_timeout_us(uint64_t base_us, size_t n)
{
    double  factor;

    factor = n > 10 ? log10(n) : 1.0;

    return base_us * factor;
}


static int
suspicion_reserve(suspicion_t *suspicion)
{
    size_t      capacity;
    member_t  **members;

    if (suspicion->n < suspicion->capacity) {
        return 0;
    }

    capacity = suspicion->capacity ? suspicion->capacity * 2 : 8;
    members = realloc(suspicion->members, capacity * sizeof(member_t *));
    if (members == NULL) {
        return -1;
    }

    suspicion->members = members;
    suspicion->capacity = capacity;

    return 0;
}


void
suspicion_done(suspicion_t *suspicion)
{
    free(suspicion->members);
}


/* -1: no memory; others have their clocks on it too. */
int
suspicion_start(swim_t *swim, member_t *member, uint64_t now_us)
{
    suspicion_t  *suspicion;

    suspicion = &swim->suspicion;

    if (member->suspect_until_us == 0) {
        if (suspicion_reserve(suspicion) != 0) {
            return -1;
        }

        suspicion->members[suspicion->n++] = member;
    }

    member->suspect_until_us = now_us
        + suspicion_timeout_us(swim->config.suspect_timeout_us,
                               swim->table.npresent);

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

    for (i = 0; suspicion->members[i] != member; i++) { /* void */ }

    suspicion->members[i] = suspicion->members[--suspicion->n];
}


/* Backwards, since a death takes the member out of the list. */
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
        swim->suspicion.members[i]->suspect_until_us += late_us;
    }
}
