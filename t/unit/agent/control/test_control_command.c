
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

#define LINE_BYTES  4096


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


/* Figures that the engine has not reported are absent from the answer. */
static void
engine_is_shown_as_far_as_it_is_told(void **state)
{
    size_t            i, at;
    json_t           *answer, *shown, *expected, *figure;
    control_scene_t   scene;

    scene_init(&scene);
    scene.own.models = 2;
    scene.own.models_cut = 3;
    scene.load.engine = (llmgw_engine_load_t) {
        4, 5, 6, LLMGW_ENGINE_ALL, 7, 8, 0
    };

    for (i = 0; i < 2; i++) {
        answer = ask(&scene, i ? "{\"cmd\":\"status\"}"
                               : "{\"cmd\":\"members\"}");
        shown = i ? answer
                  : json_array_get(json_object_get(answer, "members"), 0);
        expected = json_pack("[s, s]", "a", "b c");
        assert_true(json_equal(json_object_get(shown, "models"), expected));
        json_decref(expected);
        expected = json_pack("[O, O, O, O, O, O]",
                             json_object_get(shown, "models_cut"),
                             json_object_get(shown, "running"),
                             json_object_get(shown, "waiting"),
                             json_object_get(shown, "kv_permille"),
                             json_object_get(shown, "kv_free_blocks"),
                             json_object_get(shown, "hit_permille"));
        assert_non_null(expected);

        json_array_foreach(expected, at, figure) {
            assert_int_equal(json_integer_value(figure), 3 + at);
        }

        json_decref(expected);
        json_decref(answer);
    }

    scene.own.models = 0;
    scene.own.models_cut = 0;
    scene.load.engine.reported = LLMGW_ENGINE_WAITING;
    answer = ask(&scene, "{\"cmd\":\"members\"}");
    shown = json_array_get(json_object_get(answer, "members"), 0);
    assert_null(json_object_get(shown, "models"));
    assert_null(json_object_get(shown, "models_cut"));
    assert_null(json_object_get(shown, "running"));
    assert_int_equal(json_integer_value(json_object_get(shown, "waiting")), 5);
    assert_null(json_object_get(shown, "kv_permille"));
    assert_null(json_object_get(shown, "kv_free_blocks"));
    assert_null(json_object_get(shown, "hit_permille"));
    json_decref(answer);
}


static void
shard_is_shown_by_what_it_computes(void **state)
{
    size_t            i;
    json_t           *answer, *shown, *expected;
    control_scene_t   scene;

    scene_init(&scene);
    scene.own.role = LLMGW_ROLE_GATEWAY;
    scene.own.is_shard = 1;
    scene.own.service = LLMGW_SERVICE_READY;
    scene.own.models = 3;
    scene.own.shard = (llmgw_shard_t) {
        .zone = "eu-1", .memory_bytes = 1 << 20, .first = 4, .last = 7,
        .layers = 8, .is_loaded = 1
    };
    expected = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:b, s:s,"
                         " s:b}",
                         "name", "toy:4-7@r1", "model", "toy",
                         "weights", SCENE_WEIGHTS, "numerics", "n1",
                         "first", 4, "last", 7, "layers", 8,
                         "memory", 1 << 20, "loaded", 1, "zone", "eu-1",
                         "usable", 1);

    for (i = 0; i < 2; i++) {
        answer = ask(&scene, i ? "{\"cmd\":\"status\"}"
                               : "{\"cmd\":\"members\"}");
        shown = i ? answer
                  : json_array_get(json_object_get(answer, "members"), 0);

        if (!json_equal(json_object_get(shown, "shard"), expected)) {
            fail_msg("got %s", json_dumps(json_object_get(shown, "shard"), 0));
        }

        assert_null(json_object_get(shown, "models"));
        assert_null(json_object_get(shown, "resume_group"));
        json_decref(answer);
    }

    json_decref(expected);
    memset(&scene.own.shard, 0, sizeof(scene.own.shard));
    answer = ask(&scene, "{\"cmd\":\"members\"}");
    shown = json_array_get(json_object_get(answer, "members"), 0);
    assert_string_equal(json_string_value(json_object_get(shown, "role")),
                        "shard");
    assert_null(json_object_get(shown, "shard"));
    json_decref(answer);
}


static void
pipelines_and_callers_are_shown_in_the_status(void **state)
{
    json_t           *answer;
    control_scene_t   scene;

    scene_init(&scene);
    scene.callers = scene.pipelines = json_pack("{s:i}", "constructs", 3);
    answer = ask(&scene, "{\"cmd\":\"status\"}");
    assert_true(json_equal(json_object_get(answer, "pipelines"),
                           scene.pipelines));
    assert_true(json_equal(json_object_get(answer, "callers"), scene.callers));
    json_decref(answer);
    json_decref(scene.pipelines);
    scene.callers = scene.pipelines = NULL;
    answer = ask(&scene, "{\"cmd\":\"status\"}");
    assert_null(json_object_get(answer, "pipelines"));
    assert_null(json_object_get(answer, "callers"));
    json_decref(answer);
}


static void
group_is_shown_where_there_is_one(void **state)
{
    size_t            i;
    json_t           *answer, *shown;
    control_scene_t   scene;

    scene_init(&scene);
    answer = ask(&scene, "{\"cmd\":\"members\"}");
    shown = json_array_get(json_object_get(answer, "members"), 0);
    assert_null(json_object_get(shown, "group"));
    assert_null(json_object_get(shown, "group_epoch"));
    json_decref(answer);

    strcpy(scene.own.group, "g");
    scene.own.group_state = LLMGW_GROUP_ACTIVE;
    scene.own.group_epoch = 7;
    scene.own.group_lock = 0xabcdef0123ULL;

    for (i = 0; i < 2; i++) {
        answer = ask(&scene, i ? "{\"cmd\":\"status\"}"
                               : "{\"cmd\":\"members\"}");
        shown = i ? answer
                  : json_array_get(json_object_get(answer, "members"), 0);
#define shown(name)  json_string_value(json_object_get(shown, name))
        assert_string_equal(shown("group"), "g");
        assert_string_equal(shown("group_state"), "active");
        assert_string_equal(shown("group_lock"), "000000abcdef0123");
#undef shown
        assert_int_equal(json_integer_value(json_object_get(shown,
                                                            "group_epoch")),
                         7);
        json_decref(answer);
    }
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


/* The report of REPORT, with more fields at its end. */
static void
report_with(char *line, const char *more)
{
    snprintf(line, LINE_BYTES, REPORT, "1", "false");
    line[strlen(line) - 1] = ',';
    strcat(line, more);
    strcat(line, "}");
}


static void
engine_of_a_report_is_read(void **state)
{
    char                 line[LINE_BYTES];
    control_scene_t      scene;
    const report_t      *report;

    scene_init(&scene);
    report = &scene.report;
    report_with(line, "\"state\":\"READY\"");
    json_decref(ask(&scene, line));
    assert_int_equal(report->state, LLMGW_SERVICE_READY);
    assert_int_equal(report->models.bytes, 0);
    assert_int_equal(report->engine.reported, 0);
    assert_string_equal(report->resume_group, "");

    report_with(line, "\"state\":\"STALLED\",\"models\":[\"a b\",\"c\"],"
                      "\"running\":1000000,\"waiting\":0,"
                      "\"kv_permille\":1000,\"kv_free_blocks\":1000000000,"
                      "\"hit_permille\":999,\"resume_group\":\"g.1\"");
    assert_null(ask(&scene, line));
    assert_int_equal(report->state, LLMGW_SERVICE_STALLED);
    assert_int_equal(report->models.bytes, 6);
    assert_memory_equal(report->models.names, "a b\0c", 6);
    assert_int_equal(report->models.cut, 0);
    assert_int_equal(report->engine.reported, LLMGW_ENGINE_ALL);
    assert_int_equal(report->engine.running, 1000000);
    assert_int_equal(report->engine.kv_permille, 1000);
    assert_int_equal(report->engine.kv_free_blocks, 1000000000);
    assert_int_equal(report->engine.hit_permille, 999);
    assert_string_equal(report->resume_group, "g.1");

    /* A report may have one figure without the others, and no models. */
    report_with(line, "\"models\":[],\"waiting\":3");
    assert_null(ask(&scene, line));
    assert_int_equal(report->models.bytes, 0);
    assert_int_equal(report->engine.reported, LLMGW_ENGINE_WAITING);
    assert_int_equal(report->engine.waiting, 3);
}


static void
group_of_a_report_is_read(void **state)
{
    char                   line[LINE_BYTES];
    control_scene_t        scene;
    const report_group_t  *group;

    scene_init(&scene);
    group = &scene.report.group;
    report_with(line, "\"group\":\"g-1\",\"group_state\":\"active\","
                      "\"group_epoch\":1763650000000001,"
                      "\"group_lock\":\"00ff00ff00ff00fe\"");
    json_decref(ask(&scene, line));
    assert_string_equal(group->name, "g-1");
    assert_int_equal(group->state, LLMGW_GROUP_ACTIVE);
    assert_int_equal(group->epoch, 1763650000000001);
    assert_true(group->lock == 0x00ff00ff00ff00feULL);

    /* What a report leaves out is reset: a report is always complete. */
    report_with(line, "\"group\":\"g-1\",\"group_state\":\"standby\"");
    assert_null(ask(&scene, line));
    assert_int_equal(group->state, LLMGW_GROUP_STANDBY);
    assert_int_equal(group->epoch, 0);
    assert_true(group->lock == 0);
    report_with(line, "\"state\":\"READY\"");
    assert_null(ask(&scene, line));
    assert_string_equal(group->name, "");
    assert_int_equal(group->state, LLMGW_GROUP_NONE);
}


/* A report with n names of so many bytes each, all different. */
static void
report_with_names(char *line, size_t n, size_t bytes)
{
    char    more[LINE_BYTES];
    size_t  i, at;

    at = sprintf(more, "\"models\":[");

    for (i = 0; i < n; i++) {
        at += sprintf(more + at, "%s\"%0*zu\"", i ? "," : "", (int) bytes, i);
    }

    sprintf(more + at, "]");
    report_with(line, more);
}


static void
names_that_gossip_does_not_carry_are_counted(void **state)
{
    char                    line[LINE_BYTES];
    control_scene_t         scene;
    const report_models_t  *models;

    scene_init(&scene);
    models = &scene.report.models;
    report_with_names(line, 1, 255);
    json_decref(ask(&scene, line));
    assert_int_equal(models->bytes, 256);
    assert_int_equal(models->cut, 0);

    report_with_names(line, 64, 3);
    assert_null(ask(&scene, line));
    assert_int_equal(models->bytes, 256);
    assert_int_equal(models->cut, 0);

    /* The first names are kept, even if a later one would fit. */
    report_with_names(line, 64, 6);
    assert_null(ask(&scene, line));
    assert_int_equal(models->bytes, 36 * 7);
    assert_int_equal(models->cut, 28);
    assert_string_equal(models->names + 35 * 7, "000035");

    report_with_names(line, 65, 3);
    assert_error(&scene, line, "bad_report");
    report_with_names(line, 1, 256);
    assert_error(&scene, line, "bad_report");
}


#define GROUP(state)  "\"group\":\"g\",\"group_state\":\"" state "\""

static void
wrong_engine_of_a_report_is_refused(void **state)
{
    size_t            i;
    char              line[LINE_BYTES];
    json_t           *answer;
    control_scene_t   scene;
    const char       *wrong[][2] = {
        { "\"state\":\"STOPPED\"", "\"state\" is none of" },
        { "\"state\":\"ready\"", "\"state\" is none of" },
        { "\"state\":1", "\"state\" is none of" },
        { "\"models\":\"a\"", "\"models\" is not a list" },
        { "\"models\":[1]", "\"models\" is not a list" },
        { "\"models\":[\"\"]", "\"models\" is not a list" },
        { "\"models\":[\"a\",\"a\"]", "\"models\" is not a list" },
        { "\"models\":[\"a\\n\"]", "\"models\" is not a list" },
        { "\"models\":[\"\u00e4\"]", "\"models\" is not a list" },
        { "\"running\":-1", "\"running\" is wrong" },
        { "\"running\":1000001", "\"running\" is wrong" },
        { "\"waiting\":1.5", "\"waiting\" is wrong" },
        { "\"kv_permille\":1001", "\"kv_permille\" is wrong" },
        { "\"kv_permille\":null", "\"kv_permille\" is wrong" },
        { "\"kv_free_blocks\":1000000001", "\"kv_free_blocks\" is wrong" },
        { "\"hit_permille\":1001", "\"hit_permille\" is wrong" },
        { "\"resume_group\":\"a b\"", "\"resume_group\" is wrong" },
        { "\"resume_group\":\"\"", "\"resume_group\" is wrong" },
        { "\"group\":\".g\"", "\"group\" is not 1 to 31" },
        { "\"group\":\"\"", "\"group\" is not 1 to 31" },
        { "\"group\":\"01234567890123456789012345678901\"",
          "\"group\" is not 1 to 31" },
        { "\"group\":7", "\"group\" is not 1 to 31" },
        { "\"group\":\"g\"", "\"group_state\" is none of" },
        { GROUP("none"), "\"group_state\" is none of" },
        { GROUP("Active"), "\"group_state\" is none of" },
        { GROUP("active"), "\"group_epoch\" is wrong, or an active" },
        { GROUP("init") ",\"group_epoch\":-1", "\"group_epoch\" is wrong" },
        { GROUP("init") ",\"group_epoch\":\"1\"",
          "\"group_epoch\" is wrong" },
        { GROUP("init") ",\"group_lock\":7", "\"group_lock\" is not 16" },
        { GROUP("init") ",\"group_lock\":\"00ff\"",
          "\"group_lock\" is not 16" },
        { GROUP("init") ",\"group_lock\":\"00FF00ff00ff00ff\"",
          "\"group_lock\" is not 16" },
        { "\"group_state\":\"init\"", "without \"group\"" },
        { "\"group_epoch\":1", "without \"group\"" },
        { "\"group_lock_away\":true", "without \"group\"" },
        { GROUP("init") ",\"group_lock_away\":1",
          "\"group_lock_away\" is not true or false" }
    };

    scene_init(&scene);

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        report_with(line, wrong[i][0]);
        answer = ask(&scene, line);
        assert_non_null(strstr(json_string_value(json_object_get(answer,
                                                                 "error")),
                               wrong[i][1]));
        json_decref(answer);
    }

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
        cmocka_unit_test(engine_is_shown_as_far_as_it_is_told),
        cmocka_unit_test(shard_is_shown_by_what_it_computes),
        cmocka_unit_test(pipelines_and_callers_are_shown_in_the_status),
        cmocka_unit_test(group_is_shown_where_there_is_one),
        cmocka_unit_test(first_report_is_answered_and_later_ones_are_not),
        cmocka_unit_test(wrong_reports_are_refused_and_change_nothing),
        cmocka_unit_test(engine_of_a_report_is_read),
        cmocka_unit_test(group_of_a_report_is_read),
        cmocka_unit_test(names_that_gossip_does_not_carry_are_counted),
        cmocka_unit_test(wrong_engine_of_a_report_is_refused),
        cmocka_unit_test(nonsense_gets_a_code),
        cmocka_unit_test(status_tells_the_agent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
