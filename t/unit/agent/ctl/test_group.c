
/* llmgwctl group, keyring, drain, events: the tables and lines that they
   print. */

#include "t/unit/agent/ctl/ctl_scene.h"


#define MEMBER(id, group, state, epoch, service, liveness)                    \
    "{'id':'" id "','group':'" group "','group_state':'" state "',"           \
    "'group_epoch':" #epoch ",'service':'" service "','state':'" liveness     \
    "','model_version':'v1'}"


static const ctl_t  plain;


static void
groups_are_listed_by_name(void **state)
{
    assert_string_equal(
        scene_show(ctl_group_list, &plain,
            "{'members':[{'id':'gw'},"
            MEMBER("r3", "g2", "standby", 0, "STARTING", "ALIVE") ","
            MEMBER("r1", "g1", "active", 7, "READY", "ALIVE") ","
            MEMBER("r2", "g1", "active", 6, "DOWN", "DEAD") "]}"),
        "GROUP  ID  STATE    EPOCH  VERSION  SERVICE   AGENT\n"
        "g1     r1  active   7      v1       READY     ALIVE\n"
        "g1     r2  gone     6      v1       DOWN      DEAD\n"
        "g2     r3  standby  -      v1       STARTING  ALIVE\n");
}


static void
two_active_ones_are_a_conflict(void **state)
{
    const ctl_t  json = { .is_json = 1 };
    const char  *answer =
        "{'members':[" MEMBER("r1", "g", "active", 6, "READY", "ALIVE") ","
        MEMBER("r2", "g", "active", 8, "READY", "SUSPECT") ","
        MEMBER("r3", "g", "active", 7, "READY", "ALIVE") "]}";

    assert_non_null(strstr(
        scene_show(ctl_group_list, &plain, answer),
        "group \"g\" has more than one active replica; requests go to "
        "\"r2\"\n"));
    assert_non_null(strstr(
        scene_show(ctl_group_list, &json, answer),
        "{\"groups\":[{\"group\":\"g\",\"active\":\"r2\",\"epoch\":8,"
        "\"conflict\":true,\"members\":["));
}


static void
switch_is_followed_to_its_end(void **state)
{
    const ctl_t  ctl = { .words = { "g" }, .nwords = 1,
                         .options.switch_timeout_ms = 5000 };

    memset(&scene, 0, sizeof(scene));
    scene.lines[0] = "{'event':'switching','group':'g','from':'r1',"
                     "'ms':1500}";
    scene.lines[1] = "{'group':'g','from':'r1','to':'r2','epoch':9,"
                     "'ms':2250}";
    assert_string_equal(
        scene_run(ctl_group_switch, &ctl, CTL_DONE),
        "g: waiting for the successor of r1, 1.5 s\n"
        "g: r2 is active with epoch 9, r1 was; it took 2.250 s\n");
    assert_string_equal(scene.asked, "{\"cmd\":\"group_switch\","
                        "\"group\":\"g\",\"timeout_ms\":5000}");
}


static void
keys_are_shown_by_what_they_do(void **state)
{
    const ctl_t  use = { .words = { "0a0b" }, .nwords = 1 };

    assert_string_equal(
        scene_show(ctl_keyring_list, &plain, "{'keys':[{'id':'0a0b',"
                   "'primary':true},{'id':'0c0d','primary':false}]}"),
        "0a0b  encrypts, decrypts\n0c0d  decrypts\n");
    assert_string_equal(scene.asked, "{\"cmd\":\"keyring_list\"}");

    scene_show(ctl_keyring_use, &use, "{'keys':[]}");
    assert_string_equal(scene.asked,
                        "{\"cmd\":\"keyring_use\",\"id\":\"0a0b\"}");
}


static void
drain_shows_how_many_streams_run(void **state)
{
    const ctl_t  ctl = { .words = { "r1" }, .nwords = 1,
                         .options.drain_timeout_ms = 60000 };

    memset(&scene, 0, sizeof(scene));
    scene.lines[0] = "{'event':'draining','id':'r1','active_requests':3}";
    scene.lines[1] = "{'event':'draining','id':'r1'}";
    scene.lines[2] = "{}";
    assert_string_equal(
        scene_run(ctl_drain, &ctl, CTL_DONE),
        "r1 is draining, 3 running\n"
        "r1 is draining, and does not report what it runs\n"
        "r1 is drained\n");
    assert_string_equal(scene.asked, "{\"cmd\":\"drain\",\"id\":\"r1\","
                        "\"timeout_ms\":60000,\"force\":false}");
}


static void
undrain_names_another_owner(void **state)
{
    const ctl_t  ctl = { .words = { "r1" }, .nwords = 1 };

    assert_string_equal(scene_show(ctl_undrain, &ctl, "{}"),
                        "r1 gets new requests again\n");
    assert_string_equal(
        scene_show(ctl_undrain, &ctl, "{'drain_owner':'update:u7'}"),
        "r1 is still drained by update:u7\n");
}


static void
events_are_lines_of_json(void **state)
{
    memset(&scene, 0, sizeof(scene));
    scene.lines[0] = "{'event':'joined', 'id':'r1'}";
    scene.lines[1] = "{'event':'state', 'to':'DEAD'}";
    scene.lines[2] = "{}";
    assert_string_equal(scene_run(ctl_events, &plain, CTL_DONE),
                        "{\"event\":\"joined\",\"id\":\"r1\"}\n"
                        "{\"event\":\"state\",\"to\":\"DEAD\"}\n");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(groups_are_listed_by_name),
        cmocka_unit_test(two_active_ones_are_a_conflict),
        cmocka_unit_test(switch_is_followed_to_its_end),
        cmocka_unit_test(keys_are_shown_by_what_they_do),
        cmocka_unit_test(drain_shows_how_many_streams_run),
        cmocka_unit_test(undrain_names_another_owner),
        cmocka_unit_test(events_are_lines_of_json)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
