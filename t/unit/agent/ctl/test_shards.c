
/* llmgwctl shards: the drawing of which layers are covered. */

#include "t/unit/agent/ctl/ctl_scene.h"


#define SHARD(id, first, last, usable, member, more)                          \
    "{'id':'" id "','role':'shard','state':'ALIVE','service':'READY',"        \
    "'draining':false,'active_requests':0,'max_capacity':64" member ","       \
    "'shard':{'name':'" id "','model':'toy','weights':'0123456789abcdef',"    \
    "'numerics':'n1','layers':16,'first':" #first ",'last':" #last ","        \
    "'memory':2147483648,'loaded':true,'usable':" #usable more "}}"


static const ctl_t  plain;


static const char *
show(const ctl_t *ctl, const char *members, const char *status)
{
    memset(&scene, 0, sizeof(scene));
    scene.lines[0] = members;
    scene.lines[1] = status;

    return scene_run(ctl_shards, ctl, CTL_DONE);
}


static void
layers_are_columns_and_gaps_are_named(void **state)
{
    assert_string_equal(
        show(&plain,
             "{'members':[{'id':'gw','role':'gateway'},"
             SHARD("s2", 4, 11, false, ",'waiting':1", "") ","
             SHARD("s1", 0, 7, true, "", ",'zone':'eu-1'") ","
             "{'id':'s3','role':'shard'}]}", "{}"),
        "toy, 16 layers, weights 0123456789ab, numerics n1\n"
        "      0       8\n"
        "  s1  ########........  0-7   0/64 sessions           loaded  "
        "2.0 GiB  eu-1\n"
        "  s2  ....oooooooo....  4-11  0/64 sessions, 1 waits  loaded  "
        "2.0 GiB\n"
        "      11111111........\n"
        "  layers 8-15 have no usable shard\n"
        "s3 reports nothing about its slice\n");
}


static void
trouble_is_told_behind_the_row(void **state)
{
    assert_non_null(strstr(
        show(&plain,
             "{'members':["
             SHARD("s1", 0, 14, false, ",'draining':true", "") ","
             SHARD("s2", 0, 15, false, ",'service':'STALLED'", "") ","
             SHARD("s3", 0, 15, false, ",'state':'DEAD'", "") ","
             SHARD("s4", 0, 14, true, "", "") "]}",
             "{'pipelines':{'shards':[{'member':'s4','excluded_ms':2500,"
             "'excluded_for':'corrupt'},{'member':'s9'}]}}"),
        "GiB  excluded for 2.5 s: corrupt\n"));
    assert_non_null(strstr(scene.said, "GiB  draining\n"));
    assert_non_null(strstr(scene.said, "GiB  STALLED\n"));
    assert_non_null(strstr(scene.said, "GiB  DEAD\n"));
    assert_non_null(strstr(scene.said,
                           "  layer 15 has no usable shard\n"));
}


/* A column of several layers is drawn like the layer that is covered least. */
static void
large_model_has_several_layers_in_a_column(void **state)
{
    const ctl_t  ctl = { .has_colours = 1 };

    show(&ctl,
         "{'members':[" SHARD("s1", 0, 98, true, "", ",'layers':100") ","
         SHARD("s2", 0, 1, true, "", ",'layers':100") "]}", "{}");
    assert_non_null(strstr(scene.said, "toy, 100 layers, 2 a column, "));
    assert_non_null(strstr(scene.said, "      0       16      32      "));
    assert_non_null(strstr(scene.said, "\n      211111111111"));
    assert_non_null(strstr(scene.said, "111.\n"));
    assert_non_null(strstr(scene.said,
                    "  \033[31mlayer 99 has no usable shard\033[0m\n"));
}


static void
models_are_told_apart_and_are_in_order(void **state)
{
    const char  *second;
    const ctl_t  ctl = { .is_json = 1 };

    show(&ctl,
         "{'members':[" SHARD("s1", 0, 15, true, "", ",'numerics':'n2'")
         "," SHARD("s2", 0, 15, true, "", "") "]}", "{}");
    second = strstr(scene.said, "\"numerics\":\"n2\"");
    assert_non_null(second);
    assert_non_null(strstr(scene.said, "\"numerics\":\"n1\""));
    assert_null(strstr(second, "\"numerics\":\"n1\""));
    assert_non_null(strstr(scene.said, "\"gaps\":[]"));
    assert_non_null(strstr(scene.said, "\"silent\":[]}"));
}


static void
no_shards_are_told_as_none(void **state)
{
    assert_string_equal(show(&plain, "{'members':[{'role':'replica'}]}",
                             "{'pipelines':{}}"), "there are no shards\n");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(layers_are_columns_and_gaps_are_named),
        cmocka_unit_test(trouble_is_told_behind_the_row),
        cmocka_unit_test(large_model_has_several_layers_in_a_column),
        cmocka_unit_test(models_are_told_apart_and_are_in_order),
        cmocka_unit_test(no_shards_are_told_as_none)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
