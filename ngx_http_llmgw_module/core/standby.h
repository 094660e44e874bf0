
/*
 * Standby groups: which member of a group may be asked, judged from one view.
 *
 * One engine of a group is active, with an epoch that a lock service granted,
 * and others are standbys that can take over.  Every grant has a greater epoch
 * than all before, so the view itself shows the current one:
 *
 *     standing   the member's record              what follows
 *     FREE       names no group                   as ever
 *     LEADS      active, with the greatest epoch  is asked
 *     WARM       standby, or waking with the      may be active soon: requests
 *                greatest epoch; and living       that no other can take wait
 *     PAST       has an epoch, and a record of    is not asked, and what runs
 *                the group has a greater one      there ends
 *     OUT        anything else                    is not asked
 *
 * All records of the view count for the greatest epoch, those of the dead
 * included: an engine that was paused, and continues when its successor has
 * died already, does not become active again.  Nothing is remembered from one
 * view to the next.
 *
 * Two services that grant one group by mistake have different instance ids,
 * which the records carry.  Among equal epochs the greater id leads, so that
 * each worker and each gateway gets the same result.
 *
 * Groups are found by a hash of their name, in a table with open addressing
 * (Knuth, The Art of Computer Programming 3, 6.4, algorithm L).  Pure; the
 * caller's memory.
 */

#ifndef LLMGW_STANDBY_H
#define LLMGW_STANDBY_H

#include <stddef.h>
#include <stdint.h>


#define LLMGW_STANDBY_NOBODY  UINT32_MAX

/* What a record states; the numbers are those of proto/members/member.h. */
typedef enum {
    LLMGW_STANDBY_NONE = 0,
    LLMGW_STANDBY_INIT,
    LLMGW_STANDBY_STANDBY,
    LLMGW_STANDBY_WAKING,
    LLMGW_STANDBY_ACTIVE
} llmgw_standby_state_t;

typedef struct {
    uint64_t  group;            /* hash of its name */
    uint64_t  epoch;            /* 0: it has none */
    uint64_t  lock;             /* instance of the service that gave it */
    uint32_t  index;            /* of the member, in the caller's view */
    uint8_t   state;            /* llmgw_standby_state_t; NONE: of no group */
    uint8_t   is_living;        /* as far as the view knows */
} llmgw_standby_record_t;

typedef enum {
    LLMGW_STANDING_FREE = 0,
    LLMGW_STANDING_OUT,
    LLMGW_STANDING_WARM,
    LLMGW_STANDING_LEADS,
    LLMGW_STANDING_PAST
} llmgw_standing_t;

/* A group as the view shows it; zeroed: an unused place of the table. */
typedef struct {
    uint64_t  group;            /* hash of its name */
    uint64_t  epoch;            /* the greatest of all its records */
    uint64_t  lock;             /* of that epoch */
    uint64_t  living_lock;      /* of a living active one; with has_living */
    uint32_t  index;            /* of some member of it */
    uint32_t  leader;           /* the active one with the greatest epoch, dead
                                   or alive; LLMGW_STANDBY_NOBODY */
    uint32_t  nstandbys;        /* that live */
    uint32_t  nwaking;          /* that live, with the greatest epoch */
    uint8_t   is_used;
    uint8_t   is_led;           /* the leader lives */
    uint8_t   has_living;
    uint8_t   is_conflict;      /* two services have each an active one */
} llmgw_standby_group_t;

typedef struct {
    llmgw_standby_group_t  *places;
    size_t                  nplaces;    /* a power of two, or 0 */
    size_t                  n;          /* groups */
} llmgw_standby_t;


/* The size of a table for the groups of n records; 0 for none. */
size_t llmgw_standby_places(size_t n);

/* places: zeroed, llmgw_standby_places() of them. */
void llmgw_standby_init(llmgw_standby_t *standby,
    llmgw_standby_group_t *places, size_t nplaces);

/*
 * Takes note of a record; a record without a group changes nothing.  The table
 * has places for all records that are added.
 */
void llmgw_standby_add(llmgw_standby_t *standby,
    const llmgw_standby_record_t *record);

/* NULL: no record of that group was added. */
const llmgw_standby_group_t *llmgw_standby_find(
    const llmgw_standby_t *standby, uint64_t group);

/*
 * The standing of a record that was added.  To be called when all records of
 * the view were.
 */
llmgw_standing_t llmgw_standby_standing(const llmgw_standby_t *standby,
    const llmgw_standby_record_t *record);

/* 1: some member may be active soon. */
static inline int
llmgw_standby_has_standby(const llmgw_standby_group_t *group)
{
    return group->nstandbys != 0 || group->nwaking != 0;
}

#endif /* LLMGW_STANDBY_H */
