
/* Which users may do what, and the effects of commands. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "t/unit/agent/control/control_scene.h"


#define AGENT   1000                /* scene_init() */
#define OTHER   1001
#define NOBODY  ((uid_t) -1)


static json_t *
ask(control_scene_t *scene, const char *line)
{
    return command_answer(&scene->env, &scene->peer, line, strlen(line));
}


/* The code of a refusal, "ok" for any other answer, "" for no answer. */
static const char *
code_of(control_scene_t *scene, const char *line)
{
    json_t       *answer;
    static char   code[64];

    answer = ask(scene, line);
    code[0] = '\0';

    if (answer != NULL) {
        snprintf(code, sizeof(code), "%s",
                 json_is_false(json_object_get(answer, "ok"))
                 ? json_string_value(json_object_get(answer, "code"))
                 : "ok");
    }

    json_decref(answer);

    return code;
}


static void
strangers_read_and_change_nothing(void **state)
{
    size_t            i, j;
    control_scene_t   scene;
    const uid_t       strangers[] = { OTHER, NOBODY };
    const char       *changes[] = {
        "leave", "keyring_add", "keyring_use", "keyring_remove",
        "inject_suspect", "drain", "undrain", "group_switch"
    };
    char              line[64];

    scene_init(&scene);

    for (i = 0; i < 2; i++) {
        scene.peer.uid = strangers[i];

        for (j = 0; j < 7; j++) {
            snprintf(line, sizeof(line), "{\"cmd\":\"%s\",\"id\":\"r2\"}",
                     changes[j]);
            assert_string_equal(code_of(&scene, line), "permission_denied");
        }

        assert_string_equal(code_of(&scene, "{\"cmd\":\"members\"}"), "ok");
        assert_string_equal(code_of(&scene, "{\"cmd\":\"status\"}"), "ok");
        assert_string_equal(code_of(&scene, "{\"cmd\":\"events\"}"), "ok");
        assert_string_equal(code_of(&scene, "{\"cmd\":\"keyring_list\"}"),
                            "ok");
        assert_string_equal(
            code_of(&scene, "{\"cmd\":\"report\",\"replica_start\":1,"
                    "\"pid\":1,\"model_version\":\"v\",\"max_capacity\":1,"
                    "\"active_requests\":0}"), i == 0 ? "ok" : "");
    }

    assert_int_equal(scene.nleaves, 0);
    assert_int_equal(scene.injected[0], '\0');
}


static void
root_and_the_agents_user_change_what_they_like(void **state)
{
    size_t            i;
    control_scene_t   scene;
    const uid_t       owners[] = { 0, AGENT };

    for (i = 0; i < 2; i++) {
        scene_init(&scene);
        scene.peer.uid = owners[i];

        assert_string_equal(code_of(&scene, "{\"cmd\":\"inject_suspect\","
                                    "\"id\":\"r2\"}"), "ok");
        assert_string_equal(scene.injected, "r2");
        assert_string_equal(code_of(&scene, "{\"cmd\":\"inject_suspect\","
                                    "\"id\":\"r3\"}"), "not_found");
        assert_string_equal(code_of(&scene, "{\"cmd\":\"inject_suspect\","
                                    "\"id\":7}"), "bad_request");

        /* The answer to "leave" comes when the agent ends. */
        assert_null(ask(&scene, "{\"cmd\":\"leave\"}"));
        assert_int_equal(scene.nleaves, 1);
        assert_true(scene.peer.waits_for_end);
    }
}


static void
keyring_commands_want_a_key_or_an_id(void **state)
{
    control_scene_t  scene;

    scene_init(&scene);
    assert_string_equal(code_of(&scene, "{\"cmd\":\"keyring_add\"}"),
                        "bad_request");
    assert_string_equal(code_of(&scene, "{\"cmd\":\"keyring_add\","
                                "\"id\":\"a\"}"), "bad_request");
    assert_string_equal(code_of(&scene, "{\"cmd\":\"keyring_use\","
                                "\"id\":7}"), "bad_request");
    assert_string_equal(scene.keys, "");

    assert_string_equal(code_of(&scene, "{\"cmd\":\"keyring_add\","
                                "\"key\":\"k\"}"), "ok");
    assert_string_equal(scene.keys, "1 k");
    assert_string_equal(code_of(&scene, "{\"cmd\":\"keyring_use\","
                                "\"id\":\"a\"}"), "ok");
    assert_string_equal(scene.keys, "2 a");
    assert_string_equal(code_of(&scene, "{\"cmd\":\"keyring_remove\","
                                "\"id\":\"b\"}"), "ok");
    assert_string_equal(scene.keys, "3 b");
}


static void
drain_takes_an_id_a_time_and_force(void **state)
{
    control_scene_t  scene;

    scene_init(&scene);
    scene.peer.uid = AGENT;

#define drains(rest, code, what)                                              \
    scene.drained[0] = '\0';                                                  \
    assert_string_equal(code_of(&scene, "{\"cmd\":\"drain\"" rest "}"), code); \
    assert_string_equal(scene.drained, what);

    drains(",\"id\":\"r2\"", "", "r2 60000");
    drains(",\"id\":\"r2\",\"timeout_ms\":0", "", "r2 0");
    drains(",\"id\":\"r2\",\"timeout_ms\":86400000", "", "r2 86400000");
    drains(",\"id\":\"r2\",\"timeout_ms\":86400001", "bad_request", "");
    drains(",\"id\":\"r2\",\"timeout_ms\":-1", "bad_request", "");
    drains(",\"id\":\"r2\",\"timeout_ms\":\"1s\"", "bad_request", "");
    drains(",\"id\":\"r2\",\"force\":true", "", "r2 60000 force");
    drains(",\"id\":\"r2\",\"force\":1", "bad_request", "");
    drains(",\"id\":\"r 2\"", "bad_request", "");
    drains(",\"id\":2", "bad_request", "");
    drains("", "bad_request", "");

    /* A connection may have one such command in progress. */
    scene.peer.job = &scene;
    drains(",\"id\":\"r2\"", "busy", "");
    assert_string_equal(code_of(&scene,
                                "{\"cmd\":\"undrain\",\"id\":\"r2\"}"),
                        "busy");
    scene.peer.job = NULL;
    assert_string_equal(code_of(&scene,
                                "{\"cmd\":\"undrain\",\"id\":\"r2\"}"),
                        "");
    assert_string_equal(scene.drained, "r2 no more");
    assert_string_equal(code_of(&scene, "{\"cmd\":\"undrain\"}"),
                        "bad_request");
#undef drains

}


static void
switch_takes_a_group_and_a_time(void **state)
{
    control_scene_t  scene;

    scene_init(&scene);
    scene.peer.uid = AGENT;

#define switches(rest, code, what)                                            \
    scene.switched[0] = '\0';                                                 \
    assert_string_equal(code_of(&scene, "{\"cmd\":\"group_switch\"" rest "}"), \
                        code);                                                \
    assert_string_equal(scene.switched, what);

    switches(",\"group\":\"g\"", "", "g 60000");
    switches(",\"group\":\"g\",\"timeout_ms\":0", "", "g 0");
    switches(",\"group\":\"g\",\"timeout_ms\":86400000", "", "g 86400000");
    switches(",\"group\":\"g\",\"timeout_ms\":86400001", "bad_request", "");
    switches(",\"group\":\"g\",\"timeout_ms\":1.5", "bad_request", "");
    switches(",\"group\":\".g\"", "bad_request", "");
    switches(",\"group\":\"\"", "bad_request", "");
    switches(",\"group\":1", "bad_request", "");
    switches("", "bad_request", "");

    scene.peer.job = &scene;
    switches(",\"group\":\"g\"", "busy", "");
#undef switches
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(strangers_read_and_change_nothing),
        cmocka_unit_test(root_and_the_agents_user_change_what_they_like),
        cmocka_unit_test(keyring_commands_want_a_key_or_an_id),
        cmocka_unit_test(switch_takes_a_group_and_a_time),
        cmocka_unit_test(drain_takes_an_id_a_time_and_force),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
