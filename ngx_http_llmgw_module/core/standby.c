
/* Standby groups.  standby.h has the rules. */

#include "core/standby.h"


size_t
llmgw_standby_places(size_t n)
{
    size_t  places;

    if (n == 0) {
        return 0;
    }

    /* at most half of the places are used: a search ends after a few */

    for (places = 2; places < 2 * n; places *= 2) {
        /* void */
    }

    return places;
}


void
llmgw_standby_init(llmgw_standby_t *standby, llmgw_standby_group_t *places,
    size_t nplaces)
{
    standby->places = places;
    standby->nplaces = nplaces;
    standby->n = 0;
}


/* The group's place, or an unused one where it belongs. */
static llmgw_standby_group_t *
standby_place(const llmgw_standby_t *standby, uint64_t group)
{
    size_t  i;

    for (i = group & (standby->nplaces - 1);
         standby->places[i].is_used && standby->places[i].group != group;
         i = (i + 1) & (standby->nplaces - 1))
    {
        /* void */
    }

    return &standby->places[i];
}


/* Below 0: the record is older than what the group has; above: newer. */
static int
standby_compare(const llmgw_standby_record_t *record,
    const llmgw_standby_group_t *group)
{
    if (record->epoch != group->epoch) {
        return record->epoch < group->epoch ? -1 : 1;
    }

    return record->lock < group->lock ? -1 : record->lock > group->lock;
}


/*
 * A record with a newer epoch: facts about the older epoch's holder no longer
 * hold.
 */
static void
standby_succeed(llmgw_standby_group_t *group,
    const llmgw_standby_record_t *record)
{
    group->epoch = record->epoch;
    group->lock = record->lock;
    group->leader = LLMGW_STANDBY_NOBODY;
    group->is_led = 0;
    group->nwaking = 0;
}


static void
standby_note_active(llmgw_standby_group_t *group,
    const llmgw_standby_record_t *record)
{
    /* the same engine may have an older record under another id */

    if (standby_compare(record, group) == 0 && !group->is_led) {
        group->leader = record->index;
        group->is_led = record->is_living;
    }

    if (!record->is_living) {
        return;
    }

    group->is_conflict |= group->has_living
                          && group->living_lock != record->lock;
    group->has_living = 1;
    group->living_lock = record->lock;
}


void
llmgw_standby_add(llmgw_standby_t *standby,
    const llmgw_standby_record_t *record)
{
    llmgw_standby_group_t  *group;

    if (record->state == LLMGW_STANDBY_NONE) {
        return;
    }

    group = standby_place(standby, record->group);

    if (!group->is_used) {
        *group = (llmgw_standby_group_t) {
            .group = record->group, .index = record->index,
            .leader = LLMGW_STANDBY_NOBODY, .is_used = 1
        };
        standby->n++;
    }

    if (standby_compare(record, group) > 0) {
        standby_succeed(group, record);
    }

    switch (record->state) {

    case LLMGW_STANDBY_STANDBY:
        group->nstandbys += record->is_living;
        break;

    case LLMGW_STANDBY_WAKING:
        group->nwaking += record->is_living
                          && standby_compare(record, group) == 0;
        break;

    case LLMGW_STANDBY_ACTIVE:
        standby_note_active(group, record);
        break;

    default: /* LLMGW_STANDBY_INIT */
        break;
    }
}


const llmgw_standby_group_t *
llmgw_standby_find(const llmgw_standby_t *standby, uint64_t group)
{
    const llmgw_standby_group_t  *place;

    if (standby->nplaces == 0) {
        return NULL;
    }

    place = standby_place(standby, group);

    return place->is_used ? place : NULL;
}


llmgw_standing_t
llmgw_standby_standing(const llmgw_standby_t *standby,
    const llmgw_standby_record_t *record)
{
    int                           order;
    const llmgw_standby_group_t  *group;

    if (record->state == LLMGW_STANDBY_NONE) {
        return LLMGW_STANDING_FREE;
    }

    group = llmgw_standby_find(standby, record->group);
    order = standby_compare(record, group);

    if (record->state == LLMGW_STANDBY_STANDBY) {
        return record->is_living ? LLMGW_STANDING_WARM : LLMGW_STANDING_OUT;
    }

    if (record->state == LLMGW_STANDBY_INIT) {
        return LLMGW_STANDING_OUT;
    }

    if (order < 0) {
        return LLMGW_STANDING_PAST;
    }

    if (record->state == LLMGW_STANDBY_ACTIVE) {
        return LLMGW_STANDING_LEADS;
    }

    return record->is_living ? LLMGW_STANDING_WARM : LLMGW_STANDING_OUT;
}
