
/* The own replica: reports, silence, goodbye, a broken connection, health. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/local.h"


#define S  1000000ULL


static report_t
report(uint32_t active)
{
    report_t  said;

    memset(&said, 0, sizeof(said));
    strcpy(said.model_version, "v1");
    said.max_capacity = 4;
    said.active_requests = active;
    said.replica_start_ms = 77;
    said.state = LLMGW_SERVICE_READY;

    return said;
}


static void
reports_make_it_ready(void **state)
{
    local_t     local;
    report_t    said;
    swim_own_t  own;

    local_init(&local);
    assert_int_equal(local.service, LLMGW_SERVICE_STARTING);
    assert_true(local_next_us(&local) == UINT64_MAX);

    said = report(3);
    local_report(&local, &said, 10 * S);
    local_own(&local, &own);
    assert_int_equal(own.service, LLMGW_SERVICE_READY);
    assert_int_equal(own.max_capacity, 4);
    assert_int_equal(own.replica_start_ms, 77);
    assert_string_equal(own.model_version, "v1");
    assert_int_equal(local.active_requests, 3);
}


static void
three_seconds_of_silence_are_a_stall_and_a_report_ends_it(void **state)
{
    local_t   local;
    report_t  said;

    local_init(&local);
    said = report(0);
    local_report(&local, &said, 10 * S);
    assert_int_equal(local_next_us(&local), 13 * S);

    local_tick(&local, 13 * S - 1);
    assert_int_equal(local.service, LLMGW_SERVICE_READY);
    local_tick(&local, 13 * S);
    assert_int_equal(local.service, LLMGW_SERVICE_STALLED);

    local_report(&local, &said, 14 * S);
    assert_int_equal(local.service, LLMGW_SERVICE_READY);
}


static void
broken_connection_is_DOWN_and_goodbye_is_STOPPED(void **state)
{
    local_t   local;
    report_t  said;

    local_init(&local);
    said = report(2);
    local_report(&local, &said, 10 * S);
    local_lost(&local);
    assert_int_equal(local.service, LLMGW_SERVICE_DOWN);
    assert_int_equal(local.active_requests, 0);
    assert_true(local_next_us(&local) == UINT64_MAX);

    local_report(&local, &said, 11 * S);
    assert_int_equal(local.service, LLMGW_SERVICE_READY);

    said.goodbye = 1;
    local_report(&local, &said, 12 * S);
    assert_int_equal(local.service, LLMGW_SERVICE_STOPPED);
    assert_true(local_next_us(&local) == UINT64_MAX);
    local_lost(&local);
    assert_int_equal(local.service, LLMGW_SERVICE_STOPPED);
}


static void
state_of_the_engine_counts_at_once(void **state)
{
    size_t      i;
    local_t     local;
    report_t    said;
    swim_own_t  own;

    const llmgw_service_t  states[] = {
        LLMGW_SERVICE_STARTING, LLMGW_SERVICE_READY, LLMGW_SERVICE_STALLED,
        LLMGW_SERVICE_DOWN, LLMGW_SERVICE_READY
    };

    local_init(&local);
    assert_false(local_has_replica(&local));
    said = report(0);

    for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        said.state = states[i];
        local_report(&local, &said, 10 * S + i);
        local_own(&local, &own);
        assert_int_equal(own.service, states[i]);
        assert_true(own.is_heard);
        assert_true(local_has_replica(&local));
    }

    said.state = LLMGW_SERVICE_DOWN;
    said.goodbye = 1;
    local_report(&local, &said, 11 * S);
    local_own(&local, &own);
    assert_int_equal(own.service, LLMGW_SERVICE_STOPPED);
    assert_false(own.is_heard);
    assert_false(local_has_replica(&local));
}


/* A silent replica becomes STALLED; but if its engine was DOWN, it
   stays DOWN. */
static void
silence_counts_whatever_the_engine_was(void **state)
{
    local_t   local;
    report_t  said;

    local_init(&local);
    said = report(0);
    said.state = LLMGW_SERVICE_STARTING;
    local_report(&local, &said, 10 * S);
    assert_int_equal(local_next_us(&local), 13 * S);
    local_tick(&local, 13 * S);
    assert_int_equal(local.service, LLMGW_SERVICE_STALLED);

    said.state = LLMGW_SERVICE_DOWN;
    local_report(&local, &said, 14 * S);
    assert_true(local_next_us(&local) == UINT64_MAX);
    local_tick(&local, 20 * S);
    assert_int_equal(local.service, LLMGW_SERVICE_DOWN);

    said.state = LLMGW_SERVICE_STALLED;
    local_report(&local, &said, 21 * S);
    local_lost(&local);
    assert_int_equal(local.service, LLMGW_SERVICE_DOWN);
}


/* When the connection breaks, the last report stands, except for figures. */
static void
facts_of_the_engine_are_told(void **state)
{
    local_t     local;
    report_t    said;
    swim_own_t  own;

    local_init(&local);
    local_own(&local, &own);
    assert_null(own.resume_group);
    assert_int_equal(own.models_bytes, 0);

    said = report(0);
    strcpy(said.resume_group, "g1");
    memcpy(said.models.names, "a\0b", 4);
    said.models.bytes = 4;
    said.models.cut = 2;
    said.engine = (llmgw_engine_load_t) { 1, 2, 3, LLMGW_ENGINE_ALL, 4, 5, 0 };
    local_report(&local, &said, S);
    assert_int_equal(local.engine.waiting, 2);

    local_lost(&local);
    local_own(&local, &own);
    assert_false(own.is_heard);
    assert_string_equal(own.resume_group, "g1");
    assert_memory_equal(own.models, "a\0b", 4);
    assert_int_equal(own.models_bytes, 4);
    assert_int_equal(own.models_cut, 2);
    assert_int_equal(local.engine.reported, 0);

    /* The next process reports nothing about an engine. */
    said = report(0);
    local_report(&local, &said, 2 * S);
    local_own(&local, &own);
    assert_null(own.resume_group);
    assert_int_equal(own.models_bytes, 0);
}


/* An inactive engine that reports READY is published as STARTING, so that
   members that know no groups do not use it. */
static void
only_the_active_one_of_a_group_is_READY(void **state)
{
    local_t     local;
    report_t    said;
    swim_own_t  own;

    local_init(&local);
    said = report(0);
    strcpy(said.group.name, "g");

    for (said.group.state = LLMGW_GROUP_INIT;
         said.group.state < LLMGW_GROUP_ACTIVE; said.group.state++)
    {
        local_report(&local, &said, S);
        local_own(&local, &own);
        assert_int_equal(own.service, LLMGW_SERVICE_STARTING);
        assert_true(own.is_heard);
    }

    said.group.epoch = 7;
    said.group.lock = 9;
    local_report(&local, &said, S);
    local_own(&local, &own);
    assert_int_equal(own.service, LLMGW_SERVICE_READY);

    said.state = LLMGW_SERVICE_STALLED;
    local_report(&local, &said, S);
    assert_int_equal(local.service, LLMGW_SERVICE_STALLED);

    /* It stays the active one by its epoch: a successor has a greater epoch. */
    local_lost(&local);
    local_own(&local, &own);
    assert_int_equal(own.service, LLMGW_SERVICE_DOWN);
    assert_string_equal(own.group, "g");
    assert_int_equal(own.group_state, LLMGW_GROUP_ACTIVE);
    assert_int_equal(own.group_epoch, 7);
    assert_int_equal(own.group_lock, 9);

    /* A silent standby is STALLED; after a goodbye it is STOPPED. */
    said = report(0);
    strcpy(said.group.name, "g");
    said.group.state = LLMGW_GROUP_STANDBY;
    local_report(&local, &said, 10 * S);
    local_tick(&local, 10 * S + LOCAL_STALL_US);
    assert_int_equal(local.service, LLMGW_SERVICE_STALLED);
    said.goodbye = 1;
    local_report(&local, &said, 20 * S);
    assert_int_equal(local.service, LLMGW_SERVICE_STOPPED);
}


static void
health_judges_who_never_reported(void **state)
{
    local_t  local;

    local_init(&local);
    local_health(&local, HEALTH_GONE);
    local_health(&local, HEALTH_SILENT);
    local_health(&local, HEALTH_NOT_SERVING);
    assert_int_equal(local.service, LLMGW_SERVICE_STARTING);

    local_health(&local, HEALTH_SERVING);
    assert_int_equal(local.service, LLMGW_SERVICE_READY);
    assert_int_equal(local.max_capacity, 0);

    local_health(&local, HEALTH_NOT_SERVING);
    assert_int_equal(local.service, LLMGW_SERVICE_READY);
    assert_true(local.draining);
    local_health(&local, HEALTH_SILENT);
    assert_int_equal(local.service, LLMGW_SERVICE_STALLED);
    local_health(&local, HEALTH_GONE);
    assert_int_equal(local.service, LLMGW_SERVICE_DOWN);

    local_health(&local, HEALTH_SERVING);
    assert_int_equal(local.service, LLMGW_SERVICE_READY);
    assert_false(local.draining);
}


static void
health_is_not_asked_about_who_reports(void **state)
{
    local_t   local;
    report_t  said;

    local_init(&local);
    local_health(&local, HEALTH_SERVING);
    said = report(1);
    local_report(&local, &said, S);
    local_health(&local, HEALTH_GONE);
    assert_int_equal(local.service, LLMGW_SERVICE_READY);

    local_lost(&local);
    local_health(&local, HEALTH_SERVING);
    assert_int_equal(local.service, LLMGW_SERVICE_DOWN);
}


/* What a shard computes stays known for two minutes, although it is DOWN or
   STALLED. */
static void
shard_is_forgotten_two_minutes_after_its_last_report(void **state)
{
    local_t     local;
    report_t    said;
    swim_own_t  own;

    local_init(&local);
    said = report(0);
    said.shard.facts.last = 7;
    said.shard.facts.layers = 8;
    said.models.bytes = 9;
    local_report(&local, &said, 10 * S);
    local_own(&local, &own);
    assert_int_equal(own.shard->layers, 8);
    assert_int_equal(own.models_bytes, 9);

    local_tick(&local, 13 * S);
    assert_int_equal(local.service, LLMGW_SERVICE_STALLED);
    assert_int_equal(local_next_us(&local), 130 * S);
    local_tick(&local, 130 * S - 1);
    assert_int_equal(own.shard->layers, 8);
    local_tick(&local, 130 * S);
    local_own(&local, &own);
    assert_int_equal(local.service, LLMGW_SERVICE_STALLED);
    assert_int_equal(own.shard->layers, 0);
    assert_int_equal(own.models_bytes, 0);
    assert_true(local_next_us(&local) == UINT64_MAX);

    local_report(&local, &said, 200 * S);
    local_lost(&local);
    assert_int_equal(local.service, LLMGW_SERVICE_DOWN);
    assert_int_equal(local.shard.layers, 8);
    assert_int_equal(local_next_us(&local), 320 * S);
    local_tick(&local, 320 * S);
    assert_int_equal(local.service, LLMGW_SERVICE_DOWN);
    assert_int_equal(local.shard.layers, 0);
}


static void
replica_that_reports_pipelines_uses_shards(void **state)
{
    json_t      *pipelines;
    local_t      local;
    report_t     said;
    swim_own_t   own;

    local_init(&local);
    said = report(0);
    local_report(&local, &said, 10 * S);
    local_own(&local, &own);
    assert_int_equal(own.orchestrates, 0);

    pipelines = json_object();
    said.pipelines = pipelines;
    local_report(&local, &said, 10 * S);
    local_own(&local, &own);
    assert_int_equal(own.orchestrates, 1);
    json_decref(pipelines);

    local_lost(&local);
    local_own(&local, &own);
    assert_int_equal(own.orchestrates, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(shard_is_forgotten_two_minutes_after_its_last_report),
        cmocka_unit_test(replica_that_reports_pipelines_uses_shards),
        cmocka_unit_test(reports_make_it_ready),
        cmocka_unit_test(
            three_seconds_of_silence_are_a_stall_and_a_report_ends_it),
        cmocka_unit_test(broken_connection_is_DOWN_and_goodbye_is_STOPPED),
        cmocka_unit_test(state_of_the_engine_counts_at_once),
        cmocka_unit_test(silence_counts_whatever_the_engine_was),
        cmocka_unit_test(facts_of_the_engine_are_told),
        cmocka_unit_test(only_the_active_one_of_a_group_is_READY),
        cmocka_unit_test(health_judges_who_never_reported),
        cmocka_unit_test(health_is_not_asked_about_who_reports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
