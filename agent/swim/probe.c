
/*
 * One ping, and what follows from it.
 *
 *     period begins        ping timeout              period ends
 *          |  PING              |  k x PING_REQ           |
 *          |                    |  and a PING over TCP    |
 *          +------------------->+------------------------>+--> SUSPECT
 *             ACK: done            ACK by any path: done
 *                                  NACK of each helper: at 80 % (relay.c)
 *
 * The ping timeout is each target's own, computed from its round-trip times.
 * It may be short, since its end only begins the indirect pings.  The ping over
 * TCP arrives even if a firewall stops datagrams, or a datagram is lost.
 *
 * schedule.c says which member is pinged, but suspects that this agent is to
 * confirm come first (suspicion.c).
 */

#include <string.h>

#include "swim/swim_inner.h"


/*
 * The least ping timeout: a machine that is busy for a moment takes this long
 * to answer.
 */
#define PROBE_MIN_TIMEOUT_US  (50 * SWIM_MS)


static member_t *
probe_choose(swim_t *swim)
{
    member_t  *member;

    member = suspicion_next_to_confirm(swim);

    return member != NULL ? member
                          : schedule_choose(swim, swim->probe.period_us);
}


static void
probe_ping(swim_t *swim, int is_by_stream, uint64_t now_us)
{
    swim_message_t  message;

    memset(&message, 0, sizeof(message));
    message.type = PACKET_PING;
    message.member = swim->probe.target;
    message.target_id = swim->probe.target->facts.id;
    message.sequence = is_by_stream ? swim->probe.stream_sequence
                                    : swim->probe.sequence;
    message.is_by_stream = is_by_stream;

    /* a suspect gets its own record, so that it can refute */
    if (swim->probe.target->facts.liveness != LLMGW_LIVENESS_ALIVE) {
        message.about = swim->probe.target;
    }

    swim_send(swim, &message, now_us);
}


static void
probe_ask_others(swim_t *swim, uint64_t now_us)
{
    size_t          i, n;
    member_t       *helpers[SWIM_MAX_INDIRECT_PROBES];
    swim_message_t  message;

    swim->counters.pings_missed++;
    swim->probe.target->path.pings_lost++;

    memset(&message, 0, sizeof(message));
    message.type = PACKET_PING_REQ;
    message.target_id = swim->probe.target->facts.id;
    message.target_address = swim->probe.target->facts.address;
    message.sequence = swim->probe.sequence;
    message.wait_ms = (swim->probe.period_us - now_us) / SWIM_MS;

    n = swim_pick(swim, helpers, swim->config.indirect_probes,
                  swim_fits_present, swim->probe.target);

    for (i = 0; i < n; i++) {
        message.member = helpers[i];
        swim->probe.nacks_due[i] = member_hash(helpers[i]->facts.id);
        swim_send(swim, &message, now_us);
    }

    probe_ping(swim, 1, now_us);
}


/*
 * Measures an ack that the target itself sent by datagram.  Its clock was read
 * half a round trip ago.
 */
static void
probe_measure(swim_t *swim, const packet_head_t *ack, uint64_t now_us)
{
    uint64_t   there_us;
    probe_t   *probe;
    member_t  *target;

    probe = &swim->probe;
    target = probe->target;
    target->path.pings_lost = 0;

    if (probe->sent_us == 0) {
        return;
    }

    member_measure_rtt(target, now_us - probe->sent_us);

    if (ack->time_us != 0 && swim->wall_ahead_us != 0) {
        there_us = probe->sent_us + (now_us - probe->sent_us) / 2
                   + swim->wall_ahead_us;
        target->path.clock_ahead_us = (int64_t) (ack->time_us - there_us);
        target->path.has_clock = 1;
    }
}


void
probe_ack(swim_t *swim, const packet_head_t *ack, uint64_t now_us)
{
    probe_t  *probe;

    probe = &swim->probe;

    if (probe->target == NULL
        || (probe->sequence != ack->sequence
            && probe->stream_sequence != ack->sequence)
        || strcmp(probe->target->facts.id, ack->target_id) != 0)
    {
        return;
    }

    if (probe->sequence == ack->sequence
        && strcmp(ack->sender_id, ack->target_id) == 0)
    {
        probe_measure(swim, ack, now_us);
    }

    local_health_improve(swim);
    probe->target = NULL;
}


void
probe_nack(swim_t *swim, const packet_head_t *nack)
{
    size_t    i;
    uint32_t  hash;

    if (swim->probe.sequence != nack->sequence) {
        return;
    }

    hash = member_hash(nack->sender_id);

    for (i = 0; i < SWIM_MAX_INDIRECT_PROBES; i++) {
        if (swim->probe.nacks_due[i] == hash) {
            swim->probe.nacks_due[i] = 0;
        }
    }
}


static unsigned
probe_missed_nacks(const probe_t *probe)
{
    size_t    i;
    unsigned  n;

    n = 0;

    for (i = 0; i < SWIM_MAX_INDIRECT_PROBES; i++) {
        n += probe->nacks_due[i] != 0;
    }

    return n;
}


/* An update about the target has come, or the target is forgotten: the ping
   under way proves nothing any more. */
void
probe_forgive(swim_t *swim, const member_t *member)
{
    if (swim->probe.target == member) {
        swim->probe.target = NULL;
    }
}


static uint64_t
probe_timeout_us(const swim_t *swim, const member_t *target)
{
    uint64_t  timeout_us;

    timeout_us = swim->config.ping_timeout_us;

    if (target->srtt_us != 0
        && target->srtt_us + 4ULL * target->rttvar_us < timeout_us)
    {
        timeout_us = target->srtt_us + 4ULL * target->rttvar_us;
    }

    if (timeout_us < PROBE_MIN_TIMEOUT_US) {
        timeout_us = PROBE_MIN_TIMEOUT_US < swim->config.ping_timeout_us
                     ? PROBE_MIN_TIMEOUT_US : swim->config.ping_timeout_us;
    }

    return local_health_scale(swim, timeout_us);
}


static void
probe_begin_period(swim_t *swim, uint64_t now_us)
{
    uint64_t   period_us;
    probe_t   *probe;

    probe = &swim->probe;
    period_us = local_health_scale(swim, swim->config.period_us);

    probe->target = probe_choose(swim);
    probe->sequence = ++swim->sequence;
    probe->stream_sequence = ++swim->sequence;
    memset(probe->nacks_due, 0, sizeof(probe->nacks_due));
    probe->period_us += period_us;

    if (probe->period_us <= now_us) {
        probe->period_us = now_us + period_us;
    }

    if (probe->target != NULL) {
        probe->sent_us = now_us;
        probe->indirect_us = now_us + probe_timeout_us(swim, probe->target);
        probe_ping(swim, 0, now_us);
    }
}


void
probe_tick(swim_t *swim, uint64_t now_us)
{
    member_t  *target;

    target = swim->probe.target;

    if (now_us < swim->probe.period_us) {
        probe_ask_others(swim, now_us);
        swim->probe.indirect_us = 0;
        return;
    }

    if (target != NULL) {
        local_health_worsen(swim, probe_missed_nacks(&swim->probe));
        swim_suspect(swim, target, now_us);
    }

    probe_begin_period(swim, now_us);
}


uint64_t
probe_next_us(const swim_t *swim)
{
    const probe_t  *probe;

    probe = &swim->probe;

    return probe->target != NULL && probe->indirect_us != 0
           && probe->indirect_us < probe->period_us
           ? probe->indirect_us : probe->period_us;
}


void
probe_delay(swim_t *swim, uint64_t late_us)
{
    swim->probe.period_us += late_us;
    swim->probe.sent_us = 0;        /* the time of its ack is no measure now */

    if (swim->probe.indirect_us != 0) {
        swim->probe.indirect_us += late_us;
    }
}
