
/* The maximum number of members that an agent can know, and one more. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "swim/swim_inner.h"


#define WALL_US  1763650000000000ULL
#define T0_US    1000000ULL
#define SEQUENCE 4711

/* The TABLE messages that were sent; told[i]: how often m<i> was in them. */
typedef struct {
    size_t   nupdates;
    size_t   ndatagrams;
    uint8_t  told[TABLE_MAX_MEMBERS];
} capture_t;

static capture_t  capture;


static void
on_send(void *net, const address_t *to, const uint8_t *bytes, size_t len)
{
    size_t           i;
    static packet_t  packet;

    assert_int_equal(packet_decode(&packet, "c", bytes, len, WALL_US),
                     PACKET_DONE);

    if (packet.head.type != PACKET_TABLE) {
        return;
    }

    assert_in_range(packet.head.sequence, SEQUENCE, SEQUENCE + 1);
    capture.ndatagrams++;
    capture.nupdates += packet.nupdates;

    for (i = 0; i < packet.nupdates; i++) {
        capture.told[strtoul(packet.updates[i].facts.id + 1, NULL, 10)]++;
    }
}


static void
on_change(void *data, const member_t *member, unsigned what)
{
}


static const swim_callbacks_t  callbacks = {
    .on_change = on_change
};


static member_t *
meet(swim_t *swim, size_t i)
{
    member_update_t  update;

    memset(&update, 0, sizeof(update));
    snprintf(update.facts.id, sizeof(update.facts.id), "m%zu", i);
    strcpy(update.facts.address, "10.0.0.2:7946");
    strcpy(update.facts.grpc, "10.0.0.2:5051");
    strcpy(update.facts.model_version, "v1");
    update.facts.weight = 1;
    update.facts.epoch = WALL_US;

    return swim_add(swim, &update, T0_US);
}


/* The swim_t of "m0", with n - 1 others in its table. */
static swim_t *
full_of(size_t n)
{
    size_t         i;
    swim_t        *swim;
    swim_config_t  config;

    memset(&capture, 0, sizeof(capture));
    memset(&config, 0, sizeof(config));
    config.cluster = "c";
    config.id = "m0";
    config.address = "10.0.0.1:7946";
    config.grpc = "";
    config.role = LLMGW_ROLE_GATEWAY;
    config.weight = 1;
    config.period_us = 500000;
    config.ping_timeout_us = 200000;
    config.suspect_timeout_us = 2000000;
    config.on_send = on_send;
    config.callbacks = &callbacks;
    swim = swim_create(&config, T0_US);

    for (i = 1; i < n; i++) {
        assert_non_null(meet(swim, i));
    }

    return swim;
}


static void
one_more_member_is_refused_and_counted(void **state)
{
    swim_t  *swim;

    swim = full_of(TABLE_MAX_MEMBERS);
    assert_int_equal(swim_counters(swim)->members_refused, 0);
    assert_null(meet(swim, TABLE_MAX_MEMBERS));
    assert_int_equal(swim_counters(swim)->members_refused, 1);
    assert_int_equal(swim_table(swim)->n, TABLE_MAX_MEMBERS);

    /* When a member is forgotten, another one has its place. */
    swim_remove(swim, table_find(swim_table(swim), "m7"));
    assert_non_null(meet(swim, TABLE_MAX_MEMBERS));
    swim_destroy(swim);
}


/* A table is sent in parts, each no more than its receiver can take at once. */
static void
table_is_handed_out_in_parts(void **state)
{
    size_t    i, before, parts;
    swim_t   *swim;
    uint64_t  now_us;

    swim = full_of(TABLE_MAX_MEMBERS);
    swim_send_table(swim, table_find(swim_table(swim), "m1"), SEQUENCE,
                    T0_US);
    assert_in_range(capture.nupdates, CANDIDATE_MAX, CANDIDATE_MAX);

    now_us = T0_US;

    for (parts = 0; handout_next_us(swim) != SWIM_NEVER; parts++) {
        assert_int_equal(handout_next_us(swim), now_us + 100000);
        now_us += 100000;
        before = capture.nupdates;
        handout_tick(swim, now_us);
        assert_in_range(capture.nupdates - before, 1, 320);
        assert_true(parts < 50);
    }

    assert_int_equal(capture.nupdates, TABLE_MAX_MEMBERS);

    for (i = 0; i < TABLE_MAX_MEMBERS; i++) {
        assert_int_equal(capture.told[i], 1);
    }

    swim_destroy(swim);
}


static void
small_table_is_handed_out_at_once(void **state)
{
    swim_t  *swim;

    swim = full_of(CANDIDATE_MAX);
    swim_send_table(swim, table_find(swim_table(swim), "m1"), SEQUENCE,
                    T0_US);
    assert_int_equal(capture.nupdates, CANDIDATE_MAX);
    assert_true(handout_next_us(swim) == SWIM_NEVER);
    swim_destroy(swim);
}


static void
table_for_one_that_is_gone_is_dropped(void **state)
{
    swim_t    *swim;
    member_t  *one, *other;

    swim = full_of(2 * CANDIDATE_MAX);
    one = table_find(swim_table(swim), "m1");
    other = table_find(swim_table(swim), "m2");
    swim_send_table(swim, one, SEQUENCE, T0_US);
    swim_send_table(swim, other, SEQUENCE, T0_US);
    assert_int_equal(swim->handouts.n, 2);

    swim_judge(swim, one, LLMGW_LIVENESS_DEAD, T0_US);
    assert_int_equal(swim->handouts.n, 1);
    swim_remove(swim, other);
    assert_int_equal(swim->handouts.n, 0);
    assert_true(handout_next_us(swim) == SWIM_NEVER);
    swim_destroy(swim);
}


/* Asked again with the same sequence, a hand-out just continues; the member
   after HANDOUT_MAX others gets its table all at once. */
static void
so_many_tables_are_handed_out_at_a_time(void **state)
{
    size_t   i;
    char     id[LLMGW_MEMBERS_NAME_BYTES];
    swim_t  *swim;

    swim = full_of(2 * CANDIDATE_MAX);

    for (i = 1; i <= HANDOUT_MAX; i++) {
        snprintf(id, sizeof(id), "m%zu", i);
        swim_send_table(swim, table_find(swim_table(swim), id), SEQUENCE,
                        T0_US);
        swim_send_table(swim, table_find(swim_table(swim), id), SEQUENCE,
                        T0_US);
    }

    assert_int_equal(swim->handouts.n, HANDOUT_MAX);
    assert_int_equal(capture.nupdates, HANDOUT_MAX * CANDIDATE_MAX);

    /* With a new sequence, as after a restart, m1 gets the table from its
       start. */
    swim_send_table(swim, table_find(swim_table(swim), "m1"), SEQUENCE + 1,
                    T0_US);
    assert_int_equal(swim->handouts.n, HANDOUT_MAX);
    assert_int_equal(capture.nupdates, (HANDOUT_MAX + 1) * CANDIDATE_MAX);

    capture.nupdates = 0;
    snprintf(id, sizeof(id), "m%zu", i);
    swim_send_table(swim, table_find(swim_table(swim), id), SEQUENCE, T0_US);
    assert_int_equal(capture.nupdates, 2 * CANDIDATE_MAX);
    assert_int_equal(swim->handouts.n, HANDOUT_MAX);
    swim_destroy(swim);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(one_more_member_is_refused_and_counted),
        cmocka_unit_test(table_is_handed_out_in_parts),
        cmocka_unit_test(small_table_is_handed_out_at_once),
        cmocka_unit_test(table_for_one_that_is_gone_is_dropped),
        cmocka_unit_test(so_many_tables_are_handed_out_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
