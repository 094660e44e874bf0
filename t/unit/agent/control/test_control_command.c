
/* Lines on the control socket and their answers. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "t/unit/agent/control/control_scene.h"


#define REPORT  "{\"cmd\":\"report\",\"replica_start\":1763650000000,"        \
                "\"pid\":123,\"model_version\":\"v1\",\"max_capacity\":4,"    \
                "\"active_requests\":%s,\"draining\":%s}"


static json_t *
ask(control_scene_t *scene, const char *line)
{
    return command_answer(&scene->env, &scene->peer, line, strlen(line));
}


static void
assert_error(control_scene_t *scene, const char *line, const char *code)
{
    json_t  *answer;

    answer = ask(scene, line);
    assert_non_null(answer);
    assert_true(json_is_false(json_object_get(answer, "ok")));
    assert_true(json_is_string(json_object_get(answer, "error")));
    assert_string_equal(json_string_value(json_object_get(answer, "code")),
                        code);
    json_decref(answer);
}


static void
members_have_the_fields_that_were_agreed(void **state)
{
    size_t            i;
    json_t           *answer, *member, *expected;
    const char       *name;
    control_scene_t   scene;

    scene_init(&scene);
    answer = ask(&scene, "{\"cmd\":\"members\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    assert_int_equal(json_array_size(json_object_get(answer, "members")), 1);
    member = json_array_get(json_object_get(answer, "members"), 0);

    expected = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:b, s:s, s:i, s:i, s:i}",
        "id", "r1", "address", "127.0.0.1:21001", "grpc", "127.0.0.1:11001",
        "role", "replica", "state", "ALIVE", "service", "STARTING",
        "epoch", 9, "incarnation", 0, "draining", 0, "model_version", "",
        "active_requests", 0, "max_capacity", 0, "replica_start", 0);

    json_t  *value;
    i = 0;

    json_object_foreach(expected, name, value) {
        assert_true(json_equal(json_object_get(member, name), value));
        i++;
    }

    assert_int_equal(i, 13);
    assert_null(json_object_get(member, "cause"));

    json_decref(expected);
    json_decref(answer);
}


static void
assert_state(llmgw_service_t service, const char *state, const char *cause)
{
    json_t           *answer, *member;
    control_scene_t   scene;

    scene_init(&scene);
    scene.own.service = service;

    answer = ask(&scene, "{\"cmd\":\"members\"}");
    member = json_array_get(json_object_get(answer, "members"), 0);
    assert_string_equal(json_string_value(json_object_get(member, "state")),
                        state);

    if (cause != NULL) {
        assert_string_equal(
            json_string_value(json_object_get(member, "cause")), cause);

    } else {
        assert_null(json_object_get(member, "cause"));
    }

    json_decref(answer);
}


static void
state_shows_what_the_replica_came_to(void **state)
{
    assert_state(LLMGW_SERVICE_READY, "ALIVE", NULL);
    assert_state(LLMGW_SERVICE_STALLED, "ALIVE", NULL);
    assert_state(LLMGW_SERVICE_DOWN, "DEAD", "down");
    assert_state(LLMGW_SERVICE_STOPPED, "LEFT", NULL);
}


static void
first_report_is_answered_and_later_ones_are_not(void **state)
{
    char              line[512];
    json_t           *answer;
    control_scene_t   scene;

    scene_init(&scene);
    snprintf(line, sizeof(line), REPORT, "1", "false");
    answer = ask(&scene, line);
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);

    snprintf(line, sizeof(line), REPORT, "2", "true,\"goodbye\":true");
    assert_null(ask(&scene, line));
    assert_int_equal(scene.nreports, 2);
    assert_int_equal(scene.report.active_requests, 2);
    assert_int_equal(scene.report.max_capacity, 4);
    assert_true(scene.report.replica_start_ms == 1763650000000ULL);
    assert_true(scene.report.draining);
    assert_true(scene.report.goodbye);

    scene.is_busy = 1;
    assert_error(&scene, line, "busy");
}


static void
wrong_reports_are_refused_and_change_nothing(void **state)
{
    size_t            i;
    char              line[512];
    control_scene_t   scene;
    const char       *wrong[][2] = {
        { "-1", "false" }, { "2147483648", "false" }, { "1.5", "false" },
        { "\"1\"", "false" }, { "null", "false" }, { "1", "1" },
        { "1", "false,\"goodbye\":\"yes\"" }
    };

    scene_init(&scene);

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        snprintf(line, sizeof(line), REPORT, wrong[i][0], wrong[i][1]);
        assert_error(&scene, line, "bad_report");
    }

    assert_error(&scene, "{\"cmd\":\"report\"}", "bad_report");
    assert_int_equal(scene.nreports, 0);
}


static void
nonsense_gets_a_code(void **state)
{
    control_scene_t  scene;

    scene_init(&scene);
    assert_error(&scene, "", "bad_json");
    assert_error(&scene, "members", "bad_json");
    assert_error(&scene, "[]", "bad_json");
    assert_error(&scene, "{\"cmd\":\"members\"} x", "bad_json");
    assert_error(&scene, "{\"cmd\":\"a\",\"cmd\":\"b\"}", "bad_json");
    assert_error(&scene, "{}", "bad_request");
    assert_error(&scene, "{\"cmd\":1}", "bad_request");
    assert_error(&scene, "{\"cmd\":\"frobnicate\"}", "unknown_command");
}


static void
status_tells_the_agent(void **state)
{
    json_t           *answer, *counters;
    control_scene_t   scene;

    scene_init(&scene);
    scene.counters.datagrams_received = 1;
    scene.counters.dropped[PACKET_EMAGIC] = 1;
    answer = ask(&scene, "{\"cmd\":\"status\"}");

    assert_true(json_is_true(json_object_get(answer, "ok")));
    assert_string_equal(json_string_value(json_object_get(answer, "id")),
                        "r1");
    assert_int_equal(
        json_integer_value(json_object_get(answer, "uptime_ms")), 4000);
    counters = json_object_get(answer, "counters");
    assert_int_equal(
        json_integer_value(json_object_get(counters, "datagrams_received")),
        1);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(counters,
                                                           "dropped"),
                                           "magic")), 1);
    json_decref(answer);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(members_have_the_fields_that_were_agreed),
        cmocka_unit_test(state_shows_what_the_replica_came_to),
        cmocka_unit_test(first_report_is_answered_and_later_ones_are_not),
        cmocka_unit_test(wrong_reports_are_refused_and_change_nothing),
        cmocka_unit_test(nonsense_gets_a_code),
        cmocka_unit_test(status_tells_the_agent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
