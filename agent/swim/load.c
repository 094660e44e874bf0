
/*
 * The load of the own replica, on its way to the gateways.
 *
 * Every ping and ack carries it anyway.  Gateways, which route by it, get it
 * directly as well: when the replica went from full to free or back, or the
 * load changed by a tenth of the capacity, or the engine's queue or cache
 * changed, but at most every 100 ms; and at least once a second while the
 * replica reports, since a load older than two seconds is not believed.
 */

#include <string.h>

#include "swim/swim_inner.h"


#define LOAD_MIN_INTERVAL_US  (100 * SWIM_MS)
#define LOAD_MAX_INTERVAL_US  SWIM_S

/*
 * For a replica without a capacity, a change by this many requests counts like
 * a tenth.
 */
#define LOAD_UNLIMITED_STEP   4

/*
 * Policies compare queues, which are short: a change of a queue by a quarter
 * counts.  The cache is counted in twentieths.
 */
#define LOAD_QUEUE_PARTS      4
#define LOAD_KV_STEP          50


static uint32_t
load_moved(uint32_t sent, uint32_t now)
{
    return now > sent ? now - sent : sent - now;
}


static int
load_of_engine_is_worth_sending(const llmgw_engine_load_t *sent,
    const llmgw_engine_load_t *now)
{
    uint32_t  moved;

    moved = load_moved(sent->waiting, now->waiting);

    return (moved > 0 && moved >= sent->waiting / LOAD_QUEUE_PARTS)
           || load_moved(sent->kv_permille, now->kv_permille) >= LOAD_KV_STEP;
}


static int
load_is_worth_sending(uint32_t sent, uint32_t now, uint32_t capacity)
{
    uint32_t  step, moved;

    moved = load_moved(sent, now);

    if (moved == 0) {
        return 0;
    }

    if (capacity == 0) {
        return moved >= LOAD_UNLIMITED_STEP;
    }

    step = (capacity + 9) / 10;

    return moved >= step || (now >= capacity) != (sent >= capacity);
}


void
load_set(swim_t *swim, uint32_t active_requests,
    const llmgw_engine_load_t *engine, uint64_t now_us)
{
    load_t    *load;
    uint64_t   due_us;
    member_t  *own;

    load = &swim->load;
    own = swim->own;

    own->load.active_requests = active_requests;
    own->load.engine = *engine;
    own->load.reported_ms = now_us / 1000;
    own->load_seq++;

    due_us = load->sent_us + LOAD_MAX_INTERVAL_US;

    if (load_is_worth_sending(load->sent.active_requests, active_requests,
                              own->facts.max_capacity)
        || load_of_engine_is_worth_sending(&load->sent.engine, engine))
    {
        due_us = load->sent_us + LOAD_MIN_INTERVAL_US;
    }

    if (due_us < load->next_us) {
        load->next_us = due_us < now_us ? now_us : due_us;
    }

    swim_changed(swim, own, MEMBER_LOAD);

    if (load->next_us <= now_us) {
        load_tick(swim, now_us);
    }
}


void
load_tick(swim_t *swim, uint64_t now_us)
{
    size_t          i;
    load_t         *load;
    member_t       *member;
    swim_message_t  message;

    load = &swim->load;

    memset(&message, 0, sizeof(message));
    message.type = PACKET_UPDATES;
    message.is_bare = 1;

    for (i = 0; i < swim->table.n; i++) {
        member = swim->table.members[i];

        if (member != swim->own && member_is_present(member)
            && swim_routes_to_us(swim, member))
        {
            message.member = member;
            swim_send(swim, &message, now_us);
        }
    }

    load->sent = swim->own->load;
    load->sent_us = now_us;
    load->next_us = SWIM_NEVER;     /* until the replica's next report */
}


uint64_t
load_next_us(const swim_t *swim)
{
    return swim->load.next_us;
}
