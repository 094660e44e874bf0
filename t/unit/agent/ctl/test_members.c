
/* llmgwctl members: what stands in each column, and where. */

#include "t/unit/agent/ctl/ctl_scene.h"


#define REPLICA(more)                                                         \
    "{'id':'r1','role':'replica','state':'ALIVE','service':'READY',"          \
    "'model_version':'v1','active_requests':3,'max_capacity':0,"              \
    "'grpc':'10.0.0.1:50051','address':'10.0.0.1:7946','incarnation':2"       \
    more "}"
#define MEMBERS(list)  "{'members':[" list "]}"


static const ctl_t  plain;


/* Checks the replica's row, from that column to its end. */
static void
assert_cells(const char *answer, const char *column, const char *cells)
{
    const char  *heading, *row, *at;

    heading = scene_show(ctl_members, &plain, answer);
    row = strchr(heading, '\n') + 1;
    at = strstr(heading, column);
    assert_true(at != NULL && at < row);
    assert_int_equal(row[at - heading - 1], ' ');
    at = row + (at - heading);

    if (strncmp(at, cells, strlen(cells)) != 0) {
        fail_msg("not \"%s\" in\n%s", cells, scene.said);
    }
}


static void
columns_are_as_wide_as_they_need(void **state)
{
    assert_string_equal(
        scene_show(ctl_members, &plain,
            MEMBERS("{'id':'gateway-1','role':'gateway','state':'ALIVE',"
                    "'address':'10.0.0.9:7946','incarnation':1},"
                    REPLICA(""))),
        "ID         ROLE     STATE  SERVICE  VERSION  MODELS  LOAD  ENGINE  "
        "GRPC            GOSSIP         INC\n"
        "gateway-1  gateway  ALIVE  -        -        -       -     -       "
        "-               10.0.0.9:7946  1\n"
        "r1         replica  ALIVE  READY    v1       -       3     -       "
        "10.0.0.1:50051  10.0.0.1:7946  2\n");
    assert_string_equal(scene.asked, "{\"cmd\":\"members\"}");
}


static void
what_a_member_does_not_say_is_a_dash(void **state)
{
    assert_string_equal(
        scene_show(ctl_members, &plain, MEMBERS("{}")),
        "ID  ROLE  STATE  SERVICE  VERSION  MODELS  LOAD  ENGINE  GRPC  "
        "GOSSIP  INC\n"
        "-   -     -      -        -        -       0     -       -     "
        "-       -\n");
}


static void
cells_tell_the_cause_and_the_owner(void **state)
{
    assert_cells(MEMBERS("{'state':'DEAD','cause':'timeout'}"), "STATE",
                 "DEAD (timeout)  ");
    assert_cells(MEMBERS(REPLICA(",'draining':true")), "SERVICE",
                 "READY, draining  ");
    assert_cells(MEMBERS(REPLICA(",'draining':true,"
                                 "'drain_owner':'update:u7'")),
                 "SERVICE", "READY, draining (update:u7)  ");
}


static void
load_and_engine_are_what_is_reported(void **state)
{
    assert_cells(MEMBERS("{'active_requests':3,'max_capacity':8}"), "LOAD",
                 "3/8  ");
    assert_cells(MEMBERS(REPLICA(",'running':3,'waiting':0,"
                                 "'kv_permille':459,'hit_permille':801")),
                 "ENGINE", "3 running, 0 waiting, KV 45%, hits 80%  ");
    assert_cells(MEMBERS(REPLICA(",'kv_permille':5")), "ENGINE", "KV 0%  ");
}


static void
models_are_the_base_and_how_many_more(void **state)
{
    assert_cells(MEMBERS(REPLICA(",'models':['llama']")), "MODELS",
                 "llama  ");
    assert_cells(MEMBERS(REPLICA(",'models':['llama','sql'],"
                                 "'models_cut':2")),
                 "MODELS", "llama +3  ");
    assert_cells(MEMBERS("{'role':'shard','shard':{'model':'toy',"
                         "'first':4,'last':7,'layers':16}}"),
                 "MODELS", "toy:4-7 of 16  ");
}


static void
groups_have_a_column_where_there_are_any(void **state)
{
    assert_null(strstr(scene_show(ctl_members, &plain, MEMBERS(REPLICA(""))),
                       "GROUP"));
    assert_cells(MEMBERS(REPLICA(",'group':'g1','group_state':'standby'")),
                 "GROUP", "g1 standby  ");
    assert_cells(MEMBERS(REPLICA(",'group':'g1','group_state':'active',"
                                 "'group_epoch':1763650000000001")),
                 "GROUP", "g1 active 1763650000000001  ");
}


/* The escape sequences of colours do not count as width. */
static void
state_has_a_colour_where_they_are_wanted(void **state)
{
    const ctl_t  ctl = { .has_colours = 1 };

    assert_non_null(strstr(
        scene_show(ctl_members, &ctl,
                   MEMBERS("{'state':'ALIVE'},{'state':'SUSPECT'},"
                           "{'state':'DEAD'},{'state':'LEFT'}")),
        "INC\n"
        "-   -     \033[32mALIVE  \033[0m  -        "));
    assert_non_null(strstr(scene.said, "\033[33mSUSPECT\033[0m  "));
    assert_non_null(strstr(scene.said, "\033[31mDEAD   \033[0m  "));
    assert_non_null(strstr(scene.said, "\033[2mLEFT   \033[0m  "));
}


static void
programs_get_the_answer_as_it_is(void **state)
{
    const ctl_t  ctl = { .is_json = 1, .has_colours = 1 };

    assert_string_equal(
        scene_show(ctl_members, &ctl, "{'members':[{'x':[1,null]}]}"),
        "{\"members\":[{\"x\":[1,null]}]}\n");
}


static void
answer_of_something_else_is_told(void **state)
{
    const ctl_t  ctl = { .socket = "/run/other.sock" };

    memset(&scene, 0, sizeof(scene));
    scene.lines[0] = "{'role':'x'}";
    assert_string_equal(
        scene_run(ctl_members, &ctl, CTL_FAILED),
        "llmgwctl: what listens at \"/run/other.sock\" is something else: "
        "its answer has no \"members\"\n");

    scene.status = CTL_UNREACHABLE;
    assert_string_equal(scene_run(ctl_members, &ctl, CTL_UNREACHABLE), "");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(columns_are_as_wide_as_they_need),
        cmocka_unit_test(what_a_member_does_not_say_is_a_dash),
        cmocka_unit_test(cells_tell_the_cause_and_the_owner),
        cmocka_unit_test(load_and_engine_are_what_is_reported),
        cmocka_unit_test(models_are_the_base_and_how_many_more),
        cmocka_unit_test(groups_have_a_column_where_there_are_any),
        cmocka_unit_test(state_has_a_colour_where_they_are_wanted),
        cmocka_unit_test(programs_get_the_answer_as_it_is),
        cmocka_unit_test(answer_of_something_else_is_told)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
