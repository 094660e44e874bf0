
/* A line on the control socket that asks for a rolling update. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "t/unit/agent/control/control_scene.h"


/* What was passed to the driver; "": nothing. */
static void
assert_updated(const char *line, const char *updated)
{
    json_t           *answer;
    control_scene_t   scene;

    scene_init(&scene);
    answer = command_answer(&scene.env, &scene.peer, line, strlen(line));
    assert_string_equal(scene.updated, updated);

    if (updated[0] == '\0') {
        assert_string_equal(json_string_value(json_object_get(answer,
                                                              "code")),
                            "bad_request");
    }

    json_decref(answer);
}


static void
what_is_not_said_has_its_default(void **state)
{
    assert_updated("{\"cmd\":\"rolling_update\",\"to\":\"v2\"}",
                   "v2 -,0 - - 60000 60000 1 -1");
}


static void
all_of_it_arrives(void **state)
{
    assert_updated("{\"cmd\":\"rolling_update\",\"to\":\"v2\","
                   "\"members\":[\"r1\",\"r2\"],\"stop\":\"a\","
                   "\"start\":\"b\",\"drain_timeout_ms\":0,"
                   "\"rejoin_timeout_ms\":1,\"max_unavailable\":65536,"
                   "\"min_available\":0,\"dry_run\":true}",
                   "v2 r2,2 a b 0 1 65536 0 dry");
}


static void
what_is_wrong_is_refused(void **state)
{
    static const char *const  fields[] = {
        "\"to\":null", "\"to\":\"\"", "\"to\":\"a b\"", "\"to\":2",
        "\"members\":[]", "\"members\":{}", "\"members\":[1]",
        "\"members\":[\"\"]", "\"members\":\"r1\"",
        "\"stop\":\"a\"", "\"stop\":1,\"start\":\"b\"",
        "\"stop\":\"\",\"start\":\"b\"", "\"start\":\"\"", "\"start\":false",
        "\"drain_timeout_ms\":-1", "\"drain_timeout_ms\":86400001",
        "\"drain_timeout_ms\":1.5", "\"rejoin_timeout_ms\":0",
        "\"max_unavailable\":0", "\"max_unavailable\":65537",
        "\"min_available\":-1", "\"min_available\":\"1\"", "\"dry_run\":1"
    };

    char    line[256];
    size_t  i;

    assert_updated("{\"cmd\":\"rolling_update\"}", "");

    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        snprintf(line, sizeof(line), "{\"cmd\":\"rolling_update\",%s%s}",
                 strncmp(fields[i], "\"to\"", 4) == 0 ? ""
                 : "\"to\":\"v2\",", fields[i]);
        assert_updated(line, "");
    }
}


static void
only_the_owner_may(void **state)
{
    size_t            i;
    json_t           *answer;
    control_scene_t   scene;

    static const char *const  lines[] = {
        "{\"cmd\":\"rolling_update\",\"to\":\"v2\"}",
        "{\"cmd\":\"update_abort\"}"
    };

    scene_init(&scene);
    scene.env.uid = 1000;
    scene.peer.uid = 1001;

    for (i = 0; i < 2; i++) {
        answer = command_answer(&scene.env, &scene.peer, lines[i],
                                strlen(lines[i]));
        assert_string_equal(json_string_value(json_object_get(answer,
                                                              "code")),
                            "permission_denied");
        json_decref(answer);
    }

    assert_string_equal(scene.updated, "");
    assert_int_equal(scene.naborts, 0);

    scene.peer.uid = 1000;
    json_decref(command_answer(&scene.env, &scene.peer, lines[1],
                               strlen(lines[1])));
    assert_int_equal(scene.naborts, 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(what_is_not_said_has_its_default),
        cmocka_unit_test(all_of_it_arrives),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(only_the_owner_may)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
