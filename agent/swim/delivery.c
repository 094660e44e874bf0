
/*
 * Acknowledged delivery to some members: each of them gets pings with the own
 * record, until it has acked or the tries are used up.
 *
 *     gateways, after a change of the own replica:  every 10 ms, 10 times;
 *       where that is a shard, replicas that orchestrate shards as well
 *     everybody, when leaving:                     every 100 ms, 10 times
 *
 * Ten tries of 10 ms end before gossip has carried the change everywhere; ten
 * of 100 ms are the second that an agent takes to leave.  A later delivery
 * replaces an earlier one, since it carries the same record, newer.
 */

#include <stdlib.h>
#include <string.h>

#include "common/data/grow.h"
#include "swim/swim_inner.h"


#define DELIVERY_TRIES               10
#define DELIVERY_GATEWAY_INTERVAL_US (10 * SWIM_MS)
#define DELIVERY_ALL_INTERVAL_US     (100 * SWIM_MS)


int
swim_routes_to_us(const swim_t *swim, const member_t *member)
{
    return llmgw_member_role(&member->facts) == LLMGW_ROLE_GATEWAY
           || (swim->own->facts.is_shard && member->traits.orchestrates);
}


static void
delivery_add_target(swim_t *swim, member_t *member)
{
    delivery_t  *delivery;

    delivery = &swim->delivery;

    /* if there is no memory, gossip brings the record */
    if (grow(&delivery->targets, &delivery->capacity, delivery->n + 1,
             sizeof(member_t *)) == 0)
    {
        delivery->targets[delivery->n++] = member;
    }
}


static void
delivery_begin(swim_t *swim, int is_gateways, uint64_t interval_us,
    uint64_t now_us)
{
    size_t       i;
    delivery_t  *delivery;
    member_t    *member;

    delivery = &swim->delivery;
    delivery->n = 0;
    delivery->sequence = ++swim->sequence;
    delivery->interval_us = interval_us;
    delivery->tries = DELIVERY_TRIES;
    delivery->next_us = now_us;

    for (i = 0; i < swim->table.n; i++) {
        member = swim->table.members[i];

        if (member != swim->own && member_is_present(member)
            && (!is_gateways || swim_routes_to_us(swim, member)))
        {
            delivery_add_target(swim, member);
        }
    }

    delivery_tick(swim, now_us);
}


void
delivery_to_gateways(swim_t *swim, uint64_t now_us)
{
    delivery_begin(swim, 1, DELIVERY_GATEWAY_INTERVAL_US, now_us);
}


void
delivery_to_all(swim_t *swim, uint64_t now_us)
{
    delivery_begin(swim, 0, DELIVERY_ALL_INTERVAL_US, now_us);
}


static void
delivery_remove(delivery_t *delivery, size_t i)
{
    delivery->targets[i] = delivery->targets[--delivery->n];
}


void
delivery_drop(swim_t *swim, const member_t *member)
{
    size_t  i;

    for (i = 0; i < swim->delivery.n; i++) {
        if (swim->delivery.targets[i] == member) {
            delivery_remove(&swim->delivery, i);
            return;
        }
    }
}


void
delivery_ack(swim_t *swim, const packet_head_t *ack)
{
    if (swim->delivery.n > 0 && swim->delivery.sequence == ack->sequence) {
        delivery_drop(swim, table_find(&swim->table, ack->sender_id));
    }
}


void
delivery_tick(swim_t *swim, uint64_t now_us)
{
    size_t          i;
    delivery_t     *delivery;
    swim_message_t  message;

    delivery = &swim->delivery;

    if (delivery->tries == 0) {
        delivery->n = 0;
        return;
    }

    memset(&message, 0, sizeof(message));
    message.type = PACKET_PING;
    message.sequence = delivery->sequence;

    for (i = 0; i < delivery->n; i++) {
        message.member = delivery->targets[i];
        message.target_id = delivery->targets[i]->facts.id;
        swim_send(swim, &message, now_us);
    }

    delivery->tries--;
    delivery->next_us = now_us + delivery->interval_us;
}


uint64_t
delivery_next_us(const swim_t *swim)
{
    return swim->delivery.n > 0 ? swim->delivery.next_us : SWIM_NEVER;
}
