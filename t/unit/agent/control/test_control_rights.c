
/* Who may do what, and what commands that change something do. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "t/unit/agent/control/control_scene.h"


#define A16    "aaaaaaaaaaaaaaaa"
#define B16    "bbbbbbbbbbbbbbbb"
#define KEY_A  A16 A16 A16 A16
#define KEY_B  B16 B16 B16 B16

#define AGENT   1000                /* scene_init() */
#define OTHER   1001
#define NOBODY  ((uid_t) -1)


static json_t *
ask(control_scene_t *scene, const char *line)
{
    return command_answer(&scene->env, &scene->peer, line, strlen(line));
}


/* The code of a refusal; "ok" where it is none, "" where nothing is said. */
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
        "inject_suspect", "drain", "undrain"
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
                            "no_keyring");
        assert_string_equal(
            code_of(&scene, "{\"cmd\":\"report\",\"replica_start\":1,"
                    "\"pid\":1,\"model_version\":\"v\",\"max_capacity\":1,"
                    "\"active_requests\":0}"), i == 0 ? "ok" : "");
    }

    assert_int_equal(scene.nleaves, 0);
    assert_int_equal(scene.injected[0], '\0');
    scene_done(&scene);
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

        /* Its answer comes at the end. */
        assert_null(ask(&scene, "{\"cmd\":\"leave\"}"));
        assert_int_equal(scene.nleaves, 1);
        assert_true(scene.peer.waits_for_end);
        scene_done(&scene);
    }
}


static void
keyring_commands_tell_ids_and_never_keys(void **state)
{
    int               fd;
    char              path[] = "/tmp/llmgw-test-XXXXXX";
    char              error[KEYRING_ERROR_BYTES];
    char              id_a[16], id_b[16], line[256], *text;
    json_t           *answer;
    control_scene_t   scene;

    scene_init(&scene);
    fd = mkstemp(path);
    dprintf(fd, KEY_A "\n");
    close(fd);
    scene.env.keyring = keyring_create(path, error);
    keyring_id_text(scene.env.keyring, 0, id_a);

    assert_string_equal(code_of(&scene, "{\"cmd\":\"keyring_add\"}"),
                        "bad_request");
    assert_string_equal(code_of(&scene, "{\"cmd\":\"keyring_add\","
                                "\"key\":\"abc\"}"), "bad_key");
    assert_string_equal(code_of(&scene, "{\"cmd\":\"keyring_use\","
                                "\"id\":\"00000000\"}"), "not_found");
    assert_int_equal(scene.nkeys, 0);

    assert_string_equal(code_of(&scene, "{\"cmd\":\"keyring_add\","
                                "\"key\":\"" KEY_B "\"}"), "ok");
    assert_int_equal(scene.nkeys, 1);
    keyring_id_text(scene.env.keyring, 1, id_b);

    snprintf(line, sizeof(line), "{\"cmd\":\"keyring_use\",\"id\":\"%s\"}",
             id_b);
    assert_string_equal(code_of(&scene, line), "ok");
    snprintf(line, sizeof(line), "{\"cmd\":\"keyring_remove\",\"id\":\"%s\"}",
             id_b);
    assert_string_equal(code_of(&scene, line), "in_use");

    answer = ask(&scene, "{\"cmd\":\"keyring_list\"}");
    text = json_dumps(answer, JSON_COMPACT);
    snprintf(line, sizeof(line), "{\"ok\":true,\"keys\":[{\"id\":\"%s\","
             "\"primary\":false},{\"id\":\"%s\",\"primary\":true}]}", id_a,
             id_b);
    assert_string_equal(text, line);
    free(text);
    json_decref(answer);

    answer = ask(&scene, "{\"cmd\":\"status\"}");
    assert_string_equal(json_string_value(json_object_get(answer, "key")),
                        id_b);
    json_decref(answer);

    keyring_destroy(scene.env.keyring);
    unlink(path);
    scene_done(&scene);
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

    /* One at a time. */
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

    scene_done(&scene);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(strangers_read_and_change_nothing),
        cmocka_unit_test(root_and_the_agents_user_change_what_they_like),
        cmocka_unit_test(keyring_commands_tell_ids_and_never_keys),
        cmocka_unit_test(drain_takes_an_id_a_time_and_force),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
