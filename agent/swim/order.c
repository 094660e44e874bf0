
/*
 * Orders between agents: drain, undrain, restart a replica, or have the
 * standby of its group take over.
 *
 * Orders given: an order of this agent is sent to its target repeatedly, until
 * the target has answered and its record shows the effect, or time is up.
 *
 * Orders taken: an order of another agent is carried out once, and answered
 * each time that it comes, but not before its effect is on the disk.
 *
 * order/order.h has the message flow and the answers.
 */

#include <string.h>

#include "proto/members/member.h"
#include "swim/swim_inner.h"


/* --- taken */

static order_rc_t
order_drain(swim_t *swim, const order_t *order, uint64_t now_us)
{
    unsigned    what;
    order_rc_t  rc;

    if (!drain_is_owner(order->owner)) {
        return ORDER_EVERB;
    }

    rc = order->verb == ORDER_DRAIN
         ? drain_begin(&swim->drain, order->owner, now_us, &what)
         : drain_end(&swim->drain, order->owner, &what);

    swim_drain_changed(swim, what, now_us);

    return rc;
}


static void
order_report(swim_t *swim, uint64_t id, order_rc_t rc)
{
    if (swim->config.callbacks->on_ordered != NULL) {
        swim->config.callbacks->on_ordered(swim->config.data, id, rc);
    }
}


static order_rc_t
order_restart(swim_t *swim, const order_t *order, int is_own)
{
    const swim_callbacks_t  *callbacks;

    callbacks = swim->config.callbacks;

    if (swim->config.crypt == NULL && !is_own) {
        return ORDER_ENOKEYRING;
    }

    if (!swim->config.can_restart || callbacks->on_restart == NULL) {
        return ORDER_ENOCHILD;
    }

    return order->version[0] != '\0'
           ? callbacks->on_restart(swim->config.data, order->version)
           : ORDER_EVERB;
}


static int
order_has_standby(const swim_t *swim, const char *group)
{
    size_t  i;

    for (i = 0; i < swim->table.n; i++) {
        if (llmgw_group_is_standby(&swim->table.members[i]->facts, group)) {
            return 1;
        }
    }

    return 0;
}


/*
 * An order that comes late, when the standby is active already, must not end
 * that standby's service.
 */
static order_rc_t
order_switch(swim_t *swim, const order_t *order, int is_own)
{
    const llmgw_member_t    *own;
    const swim_callbacks_t  *callbacks;

    own = &swim->own->facts;
    callbacks = swim->config.callbacks;

    if (swim->config.crypt == NULL && !is_own) {
        return ORDER_ENOKEYRING;
    }

    if (!llmgw_group_is_active(own, order->group)
        || own->group_epoch != order->group_epoch)
    {
        return ORDER_ENOTACTIVE;
    }

    if (!order_has_standby(swim, order->group)) {
        return ORDER_ENOSTANDBY;
    }

    return callbacks->on_switch != NULL
           ? callbacks->on_switch(swim->config.data) : ORDER_ENOPROCESS;
}


/*
 * Carries an order out.  is_own: it came by our own control socket, not by
 * gossip.
 */
static order_rc_t
order_carry_out(swim_t *swim, const order_t *order, int is_own,
    uint64_t now_us)
{
    const llmgw_member_t  *own;

    own = &swim->own->facts;

    if (order->target_epoch != own->epoch) {
        return ORDER_ERESTARTED;
    }

    if (llmgw_member_role(own) == LLMGW_ROLE_GATEWAY) {
        return ORDER_EROLE;
    }

    if (!member_is_present(swim->own)) {
        return ORDER_ELEAVING;
    }

    switch (order->verb) {
    case ORDER_DRAIN:
    case ORDER_UNDRAIN:
        return order_drain(swim, order, now_us);
    case ORDER_RESTART:
        return order_restart(swim, order, is_own);
    case ORDER_SWITCH:
        return order_switch(swim, order, is_own);
    default:
        return ORDER_EVERB;
    }
}


/* The order with this id that was taken before; NULL: there is none. */
static order_taken_t *
order_find_taken(orders_t *orders, uint64_t id)
{
    size_t  i;

    for (i = 0; i < ORDER_REMEMBERED; i++) {
        if (orders->taken[i].id == id) {
            return &orders->taken[i];
        }
    }

    return NULL;
}


/*
 * Whether an answer must wait: ORDER_DONE is sent only when the disk has what
 * the order changed.
 */
static int
order_is_to_hold(const swim_t *swim, const order_taken_t *taken)
{
    const swim_callbacks_t  *callbacks;

    callbacks = swim->config.callbacks;

    return taken->answer == ORDER_DONE && callbacks->is_kept != NULL
           && !callbacks->is_kept(swim->config.data);
}


static order_taken_t *
order_take(swim_t *swim, const order_t *order, int is_own, uint64_t now_us)
{
    orders_t       *orders;
    order_taken_t  *taken;

    orders = &swim->orders;
    taken = order_find_taken(orders, order->id);

    if (taken != NULL) {
        swim->counters.orders_repeated++;
        return taken;
    }

    taken = &orders->taken[orders->next_taken++ % ORDER_REMEMBERED];
    memset(taken, 0, sizeof(order_taken_t));
    taken->id = order->id;
    taken->answer = order_carry_out(swim, order, is_own, now_us);
    taken->is_held = order_is_to_hold(swim, taken);
    swim->counters.orders_taken++;

    return taken;
}


/* Sends the answer with the own record as it is after the order. */
static void
order_answer(swim_t *swim, const order_taken_t *taken, const address_t *to,
    const member_t *giver, uint64_t sequence, uint64_t now_us)
{
    order_t         answer;
    swim_message_t  message;

    memset(&answer, 0, sizeof(answer));
    answer.id = taken->id;
    answer.answer = taken->answer;

    memset(&message, 0, sizeof(message));
    message.type = PACKET_ORDER_ACK;
    message.to = to;
    message.member = giver;
    message.target_id = giver->facts.id;
    message.sequence = sequence;
    message.order = &answer;
    message.is_bare = 1;
    swim_send(swim, &message, now_us);
}


void
order_recv(swim_t *swim, const order_t *order, const address_t *from,
    const member_t *sender, uint64_t sequence, uint64_t now_us)
{
    order_taken_t  *taken;

    if (strcmp(order->target_id, swim->own->facts.id) != 0) {
        return;         /* it is meant for an earlier member at this address */
    }

    taken = order_take(swim, order, 0, now_us);

    if (!taken->is_held) {
        order_answer(swim, taken, from, sender, sequence, now_us);
        return;
    }

    taken->giver = *from;
    strcpy(taken->giver_id, sender->facts.id);
    taken->sequence = sequence;
}


static void
order_release(swim_t *swim, order_taken_t *taken, uint64_t now_us)
{
    const member_t  *giver;

    taken->is_held = 0;

    if (taken->giver.len == 0) {
        order_report(swim, taken->id, taken->answer);
        return;
    }

    giver = table_find(&swim->table, taken->giver_id);

    if (giver != NULL) {
        order_answer(swim, taken, &taken->giver, giver, taken->sequence,
                     now_us);
    }
}


void
swim_kept(swim_t *swim, uint64_t now_us)
{
    size_t  i;

    for (i = 0; i < ORDER_REMEMBERED; i++) {
        if (swim->orders.taken[i].is_held) {
            order_release(swim, &swim->orders.taken[i], now_us);
        }
    }
}


/* --- given */

static order_given_t *
order_find_given(swim_t *swim, uint64_t id)
{
    size_t  i;

    for (i = 0; i < ORDER_MAX; i++) {
        if (swim->orders.given[i].order.id == id) {
            return &swim->orders.given[i];
        }
    }

    return NULL;
}


static void
order_end(swim_t *swim, order_given_t *given, order_rc_t rc)
{
    int       is_awaited;
    uint64_t  id;

    id = given->order.id;
    is_awaited = !given->is_forgotten;
    memset(given, 0, sizeof(order_given_t));
    swim->orders.ngiven--;

    if (is_awaited) {
        order_report(swim, id, rc);
    }
}


/* Whether the target's record, as we have it, shows the order's effect. */
static int
order_is_shown(const order_t *order, const llmgw_member_t *target)
{
    switch (order->verb) {
    case ORDER_DRAIN:
        return target->draining && target->drain_owner[0] != '\0';
    case ORDER_UNDRAIN:
        return strcmp(target->drain_owner, order->owner) != 0;
    default:
        return 1;       /* takes long, so the answer is enough */
    }
}


/* The order's result as far as the table shows it. */
static order_rc_t
order_judge(const swim_t *swim, const order_given_t *given)
{
    const member_t  *target;

    target = table_find(&swim->table, given->order.target_id);

    if (target == NULL) {
        return ORDER_EUNKNOWN;
    }

    if (target->facts.epoch != given->order.target_epoch) {
        return ORDER_ERESTARTED;
    }

    return given->is_answered && order_is_shown(&given->order, &target->facts)
           ? ORDER_DONE : ORDER_PENDING;
}


void
order_recv_ack(swim_t *swim, const order_t *answer, const member_t *sender)
{
    order_rc_t      rc;
    order_given_t  *given;

    given = order_find_given(swim, answer->id);

    if (given == NULL
        || strcmp(given->order.target_id, sender->facts.id) != 0)
    {
        return;
    }

    if (answer->answer != ORDER_DONE) {
        order_end(swim, given, answer->answer);
        return;
    }

    given->is_answered = 1;
    rc = order_judge(swim, given);

    if (rc != ORDER_PENDING) {
        order_end(swim, given, rc);
    }
}


static void
order_send(swim_t *swim, order_given_t *given, uint64_t now_us)
{
    member_t       *target;
    swim_message_t  message;

    given->next_us = now_us + ORDER_RETRY_US;
    target = table_find(&swim->table, given->order.target_id);

    memset(&message, 0, sizeof(message));
    message.type = PACKET_ORDER;
    message.member = target;
    message.target_id = target->facts.id;
    message.sequence = ++swim->sequence;
    message.order = &given->order;
    message.is_bare = 1;
    swim_send(swim, &message, now_us);
}


static void
order_due(swim_t *swim, order_given_t *given, uint64_t now_us)
{
    order_rc_t  rc;

    rc = order_judge(swim, given);

    if (rc != ORDER_PENDING) {
        order_end(swim, given, rc);

    } else if (now_us >= given->deadline_us) {
        order_end(swim, given, ORDER_EUNREACHED);

    } else {
        order_send(swim, given, now_us);
    }
}


void
order_tick(swim_t *swim, uint64_t now_us)
{
    size_t          i;
    order_given_t  *given;

    for (i = 0; i < ORDER_MAX; i++) {
        given = &swim->orders.given[i];

        if (given->order.id != 0 && given->next_us <= now_us) {
            order_due(swim, given, now_us);
        }
    }
}


uint64_t
order_next_us(const swim_t *swim)
{
    size_t                i;
    uint64_t              next_us;
    const order_given_t  *given;

    next_us = SWIM_NEVER;

    if (swim->orders.ngiven == 0) {
        return next_us;
    }

    for (i = 0; i < ORDER_MAX; i++) {
        given = &swim->orders.given[i];

        if (given->order.id != 0 && given->next_us < next_us) {
            next_us = given->next_us;
        }
    }

    return next_us;
}


order_rc_t
swim_order(swim_t *swim, order_t *order, uint64_t now_us)
{
    member_t             *target;
    order_given_t        *given;
    const order_taken_t  *taken;

    target = table_find(&swim->table, order->target_id);

    if (target == NULL) {
        return ORDER_EUNKNOWN;
    }

    order->id = rnd_next(&swim->rnd) | 1;
    order->target_epoch = order->target_epoch ? order->target_epoch
                                              : target->facts.epoch;

    if (target == swim->own) {
        taken = order_take(swim, order, 1, now_us);
        return taken->is_held ? ORDER_PENDING : taken->answer;
    }

    if (!member_is_present(target)) {
        return ORDER_EUNREACHED;
    }

    given = order_find_given(swim, 0);
    if (given == NULL) {
        return ORDER_EMANY;
    }

    memset(given, 0, sizeof(order_given_t));
    given->order = *order;
    swim->orders.ngiven++;
    given->deadline_us = now_us + ORDER_TIMEOUT_US;
    order_send(swim, given, now_us);

    return ORDER_PENDING;
}


void
swim_forget_order(swim_t *swim, uint64_t id)
{
    order_given_t  *given;

    given = id ? order_find_given(swim, id) : NULL;

    if (given != NULL) {
        given->is_forgotten = 1;
    }
}


void
swim_ask(swim_t *swim, const char *id, uint64_t now_us)
{
    member_t       *member;
    swim_message_t  message;

    member = table_find(&swim->table, id);

    if (member == NULL || member == swim->own) {
        return;
    }

    memset(&message, 0, sizeof(message));
    message.type = PACKET_PING;
    message.member = member;
    message.target_id = member->facts.id;
    message.sequence = ++swim->sequence;
    message.is_bare = 1;
    swim_send(swim, &message, now_us);
}
