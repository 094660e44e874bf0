
/* llmgwctl rolling-update: the request that it sends, the lines of its steps,
   and the table that a terminal gets in their place. */

#include "ctl/update_view.h"
#include "t/unit/agent/ctl/ctl_scene.h"


#define BEGIN(attached)                                                       \
    "{'event':'update','attached':" #attached ",'update':{'id':'u7',"         \
    "'to':'v2','done':0,'total':2,'steps':["                                  \
    "{'id':'r1','from':'v1','step':'waiting'},"                               \
    "{'id':'r10','from':'v1','step':'waiting'}]}}"
#define STEP(id, step, more)                                                  \
    "{'event':'step','id':'" id "','from':'v1','step':'" step "'" more "}"
#define END(state, done)                                                      \
    "{'update':{'state':'" state "','done':" #done ",'total':2,"              \
    "'to':'v2','steps':[]}}"


static void
assert_usage(ctl_options_t options, const char *said)
{
    const ctl_t  ctl = { .options = options };

    memset(&scene, 0, sizeof(scene));
    assert_string_equal(scene_run(ctl_update, &ctl, CTL_USAGE), said);
    assert_string_equal(scene.asked, "");
}


static void
options_become_the_request(void **state)
{
    const ctl_t  ctl = { .options = {
        .to = "v2", .members = "r1,r2", .start = "up", .stop = "down",
        .min_available = "3", .drain_timeout_ms = 1, .is_dry = 1,
        .rejoin_timeout_ms = 2, .max_unavailable = 4
    } };
    const ctl_t  abort_it = { .options = { .is_abort = 1 } };

    scene_show(ctl_update, &ctl, "{}");
    assert_string_equal(scene.asked,
        "{\"cmd\":\"rolling_update\",\"to\":\"v2\",\"dry_run\":true,"
        "\"drain_timeout_ms\":1,\"rejoin_timeout_ms\":2,"
        "\"max_unavailable\":4,\"stop\":\"down\",\"start\":\"up\","
        "\"members\":[\"r1\",\"r2\"],\"min_available\":3}");

    scene_show(ctl_update, &abort_it, "{}");
    assert_string_equal(scene.asked, "{\"cmd\":\"update_abort\"}");
}


static void
wrong_options_are_not_sent(void **state)
{
    assert_usage((ctl_options_t) { .is_dry = 1 },
                 "usage: --to or --abort is required -\n");
    assert_usage((ctl_options_t) { .to = "v2", .stop = "x" },
                 "usage: --stop needs --start -\n");
    assert_usage((ctl_options_t) { .to = "v2", .members = "r1,,r2" },
                 "usage: --members: ids and commas, not r1,,r2\n");
    assert_usage((ctl_options_t) { .to = "v2", .min_available = "2x" },
                 "usage: --min-available: 0 .. 65536, not 2x\n");
    assert_usage((ctl_options_t) { .to = "v2", .min_available = "65537" },
                 "usage: --min-available: 0 .. 65536, not 65537\n");
    assert_usage((ctl_options_t) { .to = "v2", .start = "\xff" },
                 "usage: a command that is not UTF-8: start\n");
}


static void
steps_are_lines_where_nothing_can_be_redrawn(void **state)
{
    const ctl_t  ctl = { .options = { .to = "v2" } };

    memset(&scene, 0, sizeof(scene));
    scene.lines[0] = BEGIN(true);
    scene.lines[1] = STEP("r1", "drain", ",'active_requests':3,'ms':4200");
    scene.lines[2] = STEP("r1", "rejoin", ",'streams_left':2");
    scene.lines[3] = STEP("r1", "done", ",'ms':9000,'done':1");
    scene.lines[4] = STEP("r10", "failed", ",'failed_at':'start',"
                          "'error':'exit 3'");
    scene.lines[5] = STEP("r1", "drain", ",'failed_at':'start',"
                          "'error':'exit 3'");
    scene.lines[6] = END("failed", 1);
    scene.status = CTL_FAILED;
    assert_string_equal(
        scene_run(ctl_update, &ctl, CTL_FAILED),
        "update u7 to v2 is running already\n"
        "r1: drain, 3 running, 4 s\n"
        "r1: rejoin, drain timed out with 2 running\n"
        "r1: done\n"
        "r10: failed at start: exit 3\n"
        "r1: drain, failed at start: exit 3\n"
        "failed: 1 of 2 have version v2\n");
}


/* Two events and the end, as on a terminal. */
static int
draw(const ctl_t *ctl)
{
    int                i;
    json_t            *line;
    ctl_update_view_t  view;

    ctl_update_view_init(&view, ctl->has_colours);
    view.is_live = 1;

    for (i = 0; i < 2; i++) {
        line = scene_line();
        ctl_update_view_event(&view, line);
        json_decref(line);
    }

    ctl_update_view_end(&view, NULL);
    ctl_update_view_done(&view);

    return CTL_DONE;
}


static void
table_is_drawn_over_the_last_one(void **state)
{
    const ctl_t  ctl = { .has_colours = 0 };

    memset(&scene, 0, sizeof(scene));
    scene.lines[0] = BEGIN(false);
    scene.lines[1] = STEP("r1", "done", ",'done':1");
    assert_string_equal(
        scene_run(draw, &ctl, CTL_DONE),
        "update u7 to v2\n"
        "\033[Kto v2  [------------------------]  0 of 2\n"
        "\033[K  r1   v1  waiting\n"
        "\033[K  r10  v1  waiting\n\033[J"
        "\033[3A"
        "\033[Kto v2  [############------------]  1 of 2\n"
        "\033[K  r1   v1  done\n"
        "\033[K  r10  v1  waiting\n\033[J");
}


static void
table_has_colours_by_step(void **state)
{
    const ctl_t  ctl = { .has_colours = 1 };

    memset(&scene, 0, sizeof(scene));
    scene.lines[0] = BEGIN(false);
    scene.lines[1] = STEP("r1", "failed", ",'error':'x','failed_at':'y'");
    scene_run(draw, &ctl, CTL_DONE);
    assert_non_null(strstr(scene.said, "\033[K\033[1mto v2"));
    assert_non_null(strstr(scene.said, "\033[K\033[2m  r10  v1  waiting"
                                       "\033[0m\n"));
    assert_non_null(strstr(scene.said, "\033[K\033[31m  r1   v1  failed at y:"
                                       " x\033[0m\n"));
}


static void
plan_tells_what_would_be_done(void **state)
{
    const ctl_t  ctl = { .options = { .to = "v2", .is_dry = 1 } };

    assert_string_equal(
        scene_show(ctl_update, &ctl,
                   "{'plan':{'to':'v2','max_unavailable':1,"
                   "'min_available':2,'steps':["
                   "{'id':'r1','from':'v1','by':'orders','ready':true},"
                   "{'id':'r10','from':'v1','by':'orders'},"
                   "{'id':'r2','from':'v10','by':'switch','group':'g1'}]}}"),
        "to v2, 1 at once, 2 stay routable\n"
        "  r1   v1   orders\n"
        "  r10  v1   orders, not READY\n"
        "  r2   v10  switch, of group g1\n");
}


/* A refusal has the id of the running update where an answer has an object. */
static void
refusal_has_no_end(void **state)
{
    const ctl_t  ctl = { .options = { .to = "v2" } };

    memset(&scene, 0, sizeof(scene));
    scene.lines[0] = "{'code':'update_running','update':'u6'}";
    scene.status = CTL_REFUSED;
    assert_string_equal(scene_run(ctl_update, &ctl, CTL_REFUSED), "");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(options_become_the_request),
        cmocka_unit_test(wrong_options_are_not_sent),
        cmocka_unit_test(steps_are_lines_where_nothing_can_be_redrawn),
        cmocka_unit_test(table_is_drawn_over_the_last_one),
        cmocka_unit_test(table_has_colours_by_step),
        cmocka_unit_test(plan_tells_what_would_be_done),
        cmocka_unit_test(refusal_has_no_end)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
