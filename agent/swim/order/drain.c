
#include <string.h>

#include "swim/order/drain.h"


void
drain_init(drain_t *drain, const char *kept)
{
    memset(drain, 0, sizeof(drain_t));

    if (kept == NULL) {
        return;
    }

    drain->is_decided = 1;
    drain->is_operator = strcmp(kept, DRAIN_OPERATOR) == 0;
    drain->is_lapsed = !drain->is_operator && kept[0] != '\0';
}


static int
drain_is_update(const char *owner)
{
    size_t  prefix;

    prefix = sizeof(DRAIN_UPDATE) - 1;

    return strncmp(owner, DRAIN_UPDATE, prefix) == 0
           && llmgw_name_is_valid(owner + prefix, strlen(owner + prefix));
}


int
drain_is_owner(const char *owner)
{
    return strcmp(owner, DRAIN_OPERATOR) == 0 || drain_is_update(owner);
}


static int
drain_is_on(const drain_t *drain)
{
    return drain->is_operator || drain->is_shutdown
           || drain->update[0] != '\0';
}


static int
drain_is_of_another(const drain_t *drain, const char *update)
{
    return drain->update[0] != '\0' && strcmp(drain->update, update) != 0;
}


static order_rc_t
drain_begin_operator(drain_t *drain, unsigned *what)
{
    if (drain->is_operator) {
        return ORDER_DONE;
    }

    *what = DRAIN_KEEP | (drain_is_on(drain) ? 0 : DRAIN_TELL);
    drain->is_operator = 1;

    return ORDER_DONE;
}


static order_rc_t
drain_begin_update(drain_t *drain, const char *update, uint64_t now_us,
    unsigned *what)
{
    if (drain->is_shutdown) {
        return ORDER_ELEAVING;
    }

    if (drain_is_of_another(drain, update)) {
        return ORDER_EOWNED;
    }

    if (drain->update[0] == '\0') {
        *what = drain_is_on(drain) ? 0 : DRAIN_KEEP|DRAIN_TELL;
        strcpy(drain->update, update);
    }

    drain->lease_until_us = now_us + DRAIN_LEASE_US;

    return ORDER_DONE;
}


order_rc_t
drain_begin(drain_t *drain, const char *owner, uint64_t now_us,
    unsigned *what)
{
    *what = 0;
    drain->is_decided = 1;
    drain->is_lapsed = 0;

    return drain_is_update(owner)
           ? drain_begin_update(drain, owner, now_us, what)
           : drain_begin_operator(drain, what);
}


/*
 * An owner has ended its drain: the replica is undrained if it was the last
 * owner.
 */
static unsigned
drain_ended(drain_t *drain)
{
    if (drain_is_on(drain)) {
        return DRAIN_KEEP;
    }

    drain->is_lapsed = 1;

    return DRAIN_KEEP|DRAIN_UNTELL;
}


static order_rc_t
drain_end_operator(drain_t *drain, unsigned *what)
{
    if (!drain->is_operator && drain->update[0] != '\0') {
        return ORDER_EOWNED;
    }

    drain->is_operator = 0;
    *what = drain_ended(drain);

    return ORDER_DONE;
}


static order_rc_t
drain_end_update(drain_t *drain, const char *update, unsigned *what)
{
    if (drain_is_of_another(drain, update)) {
        return ORDER_EOWNED;
    }

    drain->update[0] = '\0';
    *what = drain_ended(drain);

    return ORDER_DONE;
}


order_rc_t
drain_end(drain_t *drain, const char *owner, unsigned *what)
{
    *what = 0;
    drain->is_decided = 1;

    return drain_is_update(owner) ? drain_end_update(drain, owner, what)
                                  : drain_end_operator(drain, what);
}


void
drain_shutdown(drain_t *drain)
{
    drain->is_shutdown = 1;
}


unsigned
drain_tick(drain_t *drain, uint64_t now_us)
{
    if (now_us < drain_next_us(drain)) {
        return 0;
    }

    drain->update[0] = '\0';

    return drain_ended(drain);
}


uint64_t
drain_next_us(const drain_t *drain)
{
    return drain->update[0] != '\0' ? drain->lease_until_us : UINT64_MAX;
}


static int
drain_is_later_past(const drain_t *drain, const llmgw_member_t *past)
{
    return past->epoch != drain->past_epoch
           ? past->epoch > drain->past_epoch
           : past->incarnation > drain->past_incarnation;
}


/*
 * Takes a record of an earlier run of this agent.  Other agents may have
 * records of different runs; the latest counts, even if it takes back what an
 * older one had.
 */
unsigned
drain_merge_past(drain_t *drain, const llmgw_member_t *past)
{
    int  is_operator, was_operator;

    if (drain->is_decided || !drain_is_later_past(drain, past)) {
        return 0;
    }

    drain->past_epoch = past->epoch;
    drain->past_incarnation = past->incarnation;

    is_operator = past->draining
                  && strcmp(past->drain_owner, DRAIN_OPERATOR) == 0;
    was_operator = drain->is_operator;

    drain->is_operator = is_operator;
    drain->is_lapsed = !is_operator && past->draining
                       && drain_is_update(past->drain_owner);

    return is_operator != was_operator ? DRAIN_KEEP : 0;
}


unsigned
drain_reported(drain_t *drain, int is_draining)
{
    if (!drain->is_lapsed || drain_is_on(drain)) {
        return 0;
    }

    drain->is_lapsed = 0;

    return is_draining ? DRAIN_KEEP|DRAIN_UNTELL : DRAIN_KEEP;
}


const char *
drain_owner(const drain_t *drain)
{
    if (drain->is_operator) {
        return DRAIN_OPERATOR;
    }

    return drain->update[0] == '\0' && drain->is_shutdown ? DRAIN_SHUTDOWN
                                                          : drain->update;
}


const char *
drain_kept(const drain_t *drain)
{
    return drain->is_operator ? DRAIN_OPERATOR : drain->update;
}
