
/* The round robin: each member in turn, in an order that changes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "swim/swim_inner.h"


#define MEMBERS    20
#define PERIOD_US  500000ULL

typedef struct {
    char    pinged[LLMGW_MEMBERS_NAME_BYTES];   /* the last one */
    size_t  npings;
    size_t  npingreqs;
} capture_t;


static void
on_send(void *net, const address_t *to, const uint8_t *bytes, size_t len)
{
    packet_t    packet;
    capture_t  *capture = net;

    assert_int_equal(packet_decode(&packet, "c", bytes, len,
                                   1763650000000000ULL), PACKET_DONE);

    if (packet.head.type == PACKET_PING) {
        strcpy(capture->pinged, packet.head.target_id);
        capture->npings++;
    }

    capture->npingreqs += packet.head.type == PACKET_PING_REQ;
}


static void
on_change(void *data, const member_t *member, unsigned what)
{
}


static void
on_conflict(void *data, const char *address)
{
}


static const swim_callbacks_t  callbacks = {
    .on_change = on_change,
    .on_conflict = on_conflict
};


static swim_t *
create(capture_t *capture, size_t n)
{
    size_t           i;
    swim_t          *swim;
    member_update_t  update;
    swim_config_t    config;

    memset(capture, 0, sizeof(capture_t));
    memset(&config, 0, sizeof(config));
    config.cluster = "c";
    config.id = "me";
    config.address = "10.0.0.1:7946";
    config.grpc = "";
    config.role = LLMGW_ROLE_GATEWAY;
    config.weight = 1;
    config.period_us = PERIOD_US;
    config.ping_timeout_us = 200000;
    config.suspect_timeout_us = 2000000;
    config.indirect_probes = 3;
    config.on_send = on_send;
    config.callbacks = &callbacks;
    config.net = capture;
    swim = swim_create(&config, 1);

    for (i = 0; i < n; i++) {
        memset(&update, 0, sizeof(update));
        snprintf(update.facts.id, sizeof(update.facts.id), "m%zu", i);
        strcpy(update.facts.address, "10.0.0.2:7946");
        strcpy(update.facts.grpc, "10.0.0.2:5051");
        update.facts.weight = 1;
        swim_add(swim, &update, 1);
    }

    /* This test is about pings only: no joins, no push-pull syncs. */
    swim->join.is_done = 1;
    swim->sync_us = SWIM_NEVER;

    return swim;
}


/* Runs up to the next ping, and answers it or not; returns the number of the
   member that was pinged. */
static size_t
next_ping(swim_t *swim, capture_t *capture, int is_answered)
{
    size_t         before;
    packet_head_t  ack;

    for (before = capture->npings; capture->npings == before; /* void */) {
        swim_tick(swim, swim_next_us(swim));
    }

    if (is_answered) {
        memset(&ack, 0, sizeof(ack));
        ack.sequence = swim->probe.sequence;
        strcpy(ack.target_id, capture->pinged);
        probe_ack(swim, &ack, 2);
    }

    return strtoul(capture->pinged + 1, NULL, 10);
}


static void
each_round_pings_everybody_once_in_another_order(void **state)
{
    size_t      i, round, seen[MEMBERS], order[4][MEMBERS];
    swim_t     *swim;
    capture_t   capture;

    swim = create(&capture, MEMBERS);

    for (round = 0; round < 4; round++) {
        memset(seen, 0, sizeof(seen));

        for (i = 0; i < MEMBERS; i++) {
            order[round][i] = next_ping(swim, &capture, 1);
            seen[order[round][i]]++;
        }

        for (i = 0; i < MEMBERS; i++) {
            assert_int_equal(seen[i], 1);
        }
    }

    assert_memory_not_equal(order[0], order[1], sizeof(order[0]));
    assert_memory_not_equal(order[1], order[2], sizeof(order[0]));
    assert_int_equal(capture.npingreqs, 0);
    assert_int_equal(swim_counters(swim)->suspicions, 0);
    swim_destroy(swim);
}


static void
unanswered_ping_asks_three_others_and_then_accuses(void **state)
{
    size_t      i;
    uint64_t    sent_us;
    swim_t     *swim;
    capture_t   capture;

    swim = create(&capture, MEMBERS);
    i = next_ping(swim, &capture, 0);
    sent_us = swim->probe.period_us - PERIOD_US;

    swim_tick(swim, sent_us + 199999);
    assert_int_equal(capture.npingreqs, 0);
    swim_tick(swim, sent_us + 200000);
    assert_int_equal(capture.npingreqs, 3);

    swim_tick(swim, sent_us + PERIOD_US - 1);
    assert_int_equal(swim_counters(swim)->suspicions, 0);
    swim_tick(swim, sent_us + PERIOD_US);
    assert_int_equal(swim_counters(swim)->suspicions, 1);
    assert_int_equal(strtoul(swim->suspicion.members[0]->facts.id + 1, NULL,
                             10), i);
    swim_destroy(swim);
}


static void
late_tick_accuses_nobody(void **state)
{
    uint64_t    sent_us;
    swim_t     *swim;
    capture_t   capture;

    swim = create(&capture, MEMBERS);
    next_ping(swim, &capture, 0);
    sent_us = swim->probe.period_us - PERIOD_US;

    swim_tick(swim, sent_us + 200000);
    swim_tick(swim, sent_us + PERIOD_US + 51000);
    assert_int_equal(swim_counters(swim)->late_ticks, 1);
    assert_int_equal(swim_counters(swim)->suspicions, 0);

    /* Deadlines are moved by as much as the tick was late, no further. */
    swim_tick(swim, sent_us + PERIOD_US + 51002);
    assert_int_equal(swim_counters(swim)->suspicions, 1);
    swim_destroy(swim);
}


/* The timeout of the next ping, when earlier ones were answered
   after rtt_us. */
static uint64_t
timeout_after_rtts_of(uint64_t rtt_us)
{
    size_t          i;
    uint64_t        sent_us, timeout_us;
    swim_t         *swim;
    capture_t       capture;
    packet_head_t   ack;

    swim = create(&capture, 1);

    for (i = 0; i < 50; i++) {
        next_ping(swim, &capture, 0);
        memset(&ack, 0, sizeof(ack));
        ack.sequence = swim->probe.sequence;
        strcpy(ack.target_id, "m0");
        strcpy(ack.sender_id, "m0");
        probe_ack(swim, &ack, swim->probe.sent_us + rtt_us);
    }

    next_ping(swim, &capture, 0);
    sent_us = swim->probe.sent_us;
    timeout_us = swim->probe.indirect_us - sent_us;
    swim_destroy(swim);

    return timeout_us;
}


static void
timeout_follows_the_target_within_its_bounds(void **state)
{
    assert_int_equal(timeout_after_rtts_of(300), 50000);
    assert_in_range(timeout_after_rtts_of(100000), 100000, 105000);
    assert_int_equal(timeout_after_rtts_of(190000000), 200000);
}


static void
helper_that_says_nothing_makes_one_doubt_oneself(void **state)
{
    size_t          i;
    uint64_t        sent_us;
    swim_t         *swim;
    capture_t       capture;
    packet_head_t   nack;

    swim = create(&capture, MEMBERS);
    next_ping(swim, &capture, 0);
    sent_us = swim->probe.sent_us;
    swim_tick(swim, sent_us + 200000);

    /* One of three helpers sends a NACK, and sends it twice. */
    memset(&nack, 0, sizeof(nack));
    nack.sequence = swim->probe.sequence;

    for (i = 0; i < MEMBERS; i++) {
        strcpy(nack.sender_id, swim->table.members[i + 1]->facts.id);

        if (member_hash(nack.sender_id) == swim->probe.nacks_due[0]) {
            probe_nack(swim, &nack);
            probe_nack(swim, &nack);
            break;
        }
    }

    assert_in_range(i, 0, MEMBERS - 1);
    swim_tick(swim, sent_us + PERIOD_US);
    assert_int_equal(swim_local_health(swim), 2);

    /* All time-outs are three times as long; an answer improves
       local health. */
    assert_int_equal(swim->probe.period_us,
                     sent_us + PERIOD_US + 3 * PERIOD_US);
    assert_int_equal(swim->probe.indirect_us,
                     sent_us + PERIOD_US + 3 * 200000);
    memset(&nack, 0, sizeof(nack));
    nack.sequence = swim->probe.stream_sequence;
    strcpy(nack.target_id, swim->probe.target->facts.id);
    probe_ack(swim, &nack, sent_us + PERIOD_US);
    assert_int_equal(swim_local_health(swim), 1);
    assert_null(swim->probe.target);

    local_health_worsen(swim, 100);
    assert_int_equal(swim_local_health(swim), 8);
    swim_destroy(swim);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(each_round_pings_everybody_once_in_another_order),
        cmocka_unit_test(unanswered_ping_asks_three_others_and_then_accuses),
        cmocka_unit_test(late_tick_accuses_nobody),
        cmocka_unit_test(timeout_follows_the_target_within_its_bounds),
        cmocka_unit_test(helper_that_says_nothing_makes_one_doubt_oneself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
