
/*
 * Finding members again that are DEAD here and alive.
 *
 * When a network is cut in two, each half takes the other for dead and stops
 * talking to it.  After the cut has healed one side must begin, so the dead are
 * pinged now and then for as long as they are remembered.  A member that learns
 * that it counts as dead refutes at once.
 *
 * The pause between two such pings grows with the time since the last death
 * and with the number of members that share the work:
 *
 *     pause = age / 128 x members present       one period <= pause <= 10 s
 *
 * so a cluster of any size sends about 128 pings while an outage doubles its
 * age, and the end of a cut that lasted 15 s is noticed within about 0.1 s.  It
 * costs nothing while no member is DEAD, and a crash among twenty costs each
 * member about thirty pings over its first minutes.
 *
 * A dead member that turns out to be alive is rarely the only one.  For a
 * second after each such return, and after it has learnt that it counts as dead
 * at others, an agent pings three of the members that are DEAD or SUSPECT here
 * every 100 ms.  Those that answer do the same, so within a few round trips
 * every member knows its state in the view of others.  The refutations then
 * travel as all updates do.
 *
 * Source: memberlist gossips to the dead for a while as well
 * (GossipToTheDeadTime); pings are used here since they are also sent when
 * there is nothing to gossip.
 */

#include <string.h>

#include "swim/swim_inner.h"


#define RECONNECT_AGE_SHARE     128
#define RECONNECT_MAX_PAUSE_US  (10 * SWIM_S)

#define RECONNECT_BURST_US      SWIM_S
#define RECONNECT_BURST_PAUSE_US  (100 * SWIM_MS)
#define RECONNECT_BURST_PINGS   3


static int
reconnect_is_burst(const swim_t *swim, uint64_t now_us)
{
    return now_us < swim->reconnect.burst_until_us;
}


static uint64_t
reconnect_pause_us(const swim_t *swim, uint64_t now_us)
{
    uint64_t            pause_us, least_us;
    const reconnect_t  *reconnect;

    reconnect = &swim->reconnect;

    if (reconnect_is_burst(swim, now_us)) {
        return RECONNECT_BURST_PAUSE_US;
    }

    least_us = swim->config.period_us;
    pause_us = now_us > reconnect->died_us ? now_us - reconnect->died_us : 0;
    pause_us = pause_us / RECONNECT_AGE_SHARE * swim->table.npresent;
    pause_us = pause_us > least_us ? pause_us : least_us;

    return pause_us < RECONNECT_MAX_PAUSE_US ? pause_us
                                             : RECONNECT_MAX_PAUSE_US;
}


void
reconnect_died(swim_t *swim, const member_t *member, uint64_t now_us)
{
    uint64_t      next_us;
    reconnect_t  *reconnect;

    reconnect = &swim->reconnect;

    if (member->since_us > reconnect->died_us) {
        reconnect->died_us = member->since_us;
    }

    next_us = now_us + rnd_below(&swim->rnd,
                                 reconnect_pause_us(swim, now_us));

    if (next_us < reconnect->next_us) {
        reconnect->next_us = next_us;
    }
}


/* It is not known since when they are DEAD: they are pinged as if they had just
   died. */
void
reconnect_restore(swim_t *swim, uint64_t now_us)
{
    swim->reconnect.died_us = now_us;
    swim->reconnect.next_us = now_us;
}


void
reconnect_returned(swim_t *swim, uint64_t now_us)
{
    uint64_t      next_us;
    reconnect_t  *reconnect;

    reconnect = &swim->reconnect;
    reconnect->burst_until_us = now_us + RECONNECT_BURST_US;
    next_us = reconnect->last_us + RECONNECT_BURST_PAUSE_US;

    if (next_us < reconnect->next_us) {
        reconnect->next_us = next_us > now_us ? next_us : now_us;
    }
}


static int
reconnect_fits(const swim_t *swim, const member_t *member, const void *data)
{
    return swim_fits_dead(swim, member, data)
           || (reconnect_is_burst(swim, *(const uint64_t *) data)
               && member->facts.liveness == LLMGW_LIVENESS_SUSPECT);
}


static void
reconnect_ping(swim_t *swim, member_t *dead, uint64_t now_us)
{
    swim_message_t  message;

    memset(&message, 0, sizeof(message));
    message.type = PACKET_PING;
    message.sequence = ++swim->sequence;
    message.member = dead;
    message.about = dead;
    message.target_id = dead->facts.id;
    swim_send(swim, &message, now_us);
}


void
reconnect_tick(swim_t *swim, uint64_t now_us)
{
    size_t        i, n;
    uint64_t      pause_us;
    member_t     *dead[RECONNECT_BURST_PINGS];
    reconnect_t  *reconnect;

    reconnect = &swim->reconnect;
    n = reconnect_is_burst(swim, now_us) ? RECONNECT_BURST_PINGS : 1;
    n = swim_pick(swim, dead, n, reconnect_fits, &now_us);

    if (n == 0) {
        reconnect->next_us = SWIM_NEVER;
        return;
    }

    for (i = 0; i < n; i++) {
        reconnect_ping(swim, dead[i], now_us);
    }

    pause_us = reconnect_pause_us(swim, now_us);
    reconnect->last_us = now_us;
    reconnect->next_us = now_us + pause_us * 9 / 10
                         + rnd_below(&swim->rnd, pause_us / 5);
}


uint64_t
reconnect_next_us(const swim_t *swim)
{
    return swim->reconnect.next_us;
}
