
/* Admission rules that the simulator adds, and the names of refusals. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/fleet/config.h"


#define NREPLICAS  3

typedef struct {
    fleet_rule_t          rule;
    llmgw_rule_request_t  request;
    llmgw_candidate_t     candidates[NREPLICAS];
    uint32_t              n;
    char                  reason[FLEET_REASON_BYTES];
} scene_t;


static void
scene_init(scene_t *scene, const char *name)
{
    memset(scene, 0, sizeof(*scene));
    assert_int_equal(fleet_rule_find(&scene->rule, name, strlen(name)), 0);
    scene->n = NREPLICAS;
}


/* The reason of the refusal; "" if the request is admitted. */
static const char *
ask(scene_t *scene, const char *class_name)
{
    int              is_admitted;
    llmgw_classes_t  classes;

    llmgw_classes_init(&classes);
    scene->request.priority = fleet_priority(&classes, class_name,
                                             strlen(class_name));

    is_admitted = fleet_rule_admits(&scene->rule, &scene->request, class_name,
                                    scene->candidates, scene->n,
                                    scene->reason);
    assert_int_equal(is_admitted, scene->reason[0] == '\0');

    return scene->reason;
}


static void
refusals_have_their_words(void **state)
{
    scene_t         scene;
    llmgw_bucket_t  bucket;
    llmgw_tenant_t  tenant = { .has_budget = 1, .in_flight = 1 };

    scene_init(&scene, "always_admit");
    assert_string_equal(ask(&scene, "batch"), "");

    scene_init(&scene, "reject-all");
    assert_string_equal(ask(&scene, "critical"), "reject-all");

    scene_init(&scene, "token-bucket");
    assert_int_equal(llmgw_bucket_init(&bucket, 1, 1, 0), 0);
    scene.rule.core.bucket = &bucket;
    scene.request.tokens = 2;
    assert_string_equal(ask(&scene, "critical"), "insufficient tokens");

    /* a tenant's budget comes before any rule */
    scene_init(&scene, "tier-shed");
    scene.rule.min_priority = 3;
    scene.candidates[0].in_flight = 1;
    scene.request.tenant = &tenant;
    assert_string_equal(ask(&scene, "batch"), "tenant-budget-shed");

    assert_int_equal(fleet_rule_find(&scene.rule, "never", 5), -1);
    assert_int_equal(fleet_rule_find(&scene.rule, "", 0), -1);
}


static void
tier_shed_protects_the_important_where_one_replica_is_loaded(void **state)
{
    scene_t  scene;

    scene_init(&scene, "tier-shed");
    scene.rule.overload = 6;
    scene.rule.min_priority = 3;
    scene.candidates[1].queue_depth = 1;
    scene.candidates[1].batch_size = 2;
    scene.candidates[1].in_flight = 3;

    assert_string_equal(ask(&scene, "batch"), "");

    scene.candidates[1].in_flight = 4;
    assert_string_equal(ask(&scene, "batch"),
                        "tier-shed: class=batch priority=-1 < min=3 load=7");
    assert_string_equal(ask(&scene, "standard"), "");
    assert_string_equal(ask(&scene, ""), "");

    scene.rule.min_priority = 4;
    assert_string_equal(ask(&scene, ""),
                        "tier-shed: class= priority=3 < min=4 load=7");
    assert_string_equal(ask(&scene, "critical"), "");

    scene.n = 0;
    assert_string_equal(ask(&scene, "batch"), "");
}


/*
 * Saturation is the mean of max(2/5, 0.2/0.8), max(10/5, 0) and max(0,
 * 0.48/0.8), which is 1.
 */
static void
gaie_legacy_sheds_where_the_mean_is_full(void **state)
{
    scene_t  scene;

    scene_init(&scene, "gaie_legacy");
    scene.rule.queue_depth = 5;
    scene.rule.kv_utilization = 0.8;
    scene.candidates[0].queue_depth = 2;
    scene.candidates[0].kv_utilization = 0.2;
    scene.candidates[1].queue_depth = 10;
    scene.candidates[2].kv_utilization = 0.47;

    assert_string_equal(ask(&scene, "batch"), "");

    scene.candidates[2].kv_utilization = 0.6;
    assert_string_equal(ask(&scene, "batch"),
                        "gaie-saturated: class=batch saturation=1.05");
    assert_string_equal(ask(&scene, "standard"), "");

    scene.n = 0;
    assert_string_equal(ask(&scene, "sheddable"),
                        "gaie-saturated: class=sheddable saturation=1.00");
}


static void
classes_have_their_priorities(void **state)
{
    size_t           i;
    llmgw_classes_t  classes;

    static const struct {
        const char  *name;
        int          priority;
        int          engine;
    } want[] = {
        { "critical", 4, 0 }, { "standard", 3, 1 }, { "batch", -1, 5 },
        { "sheddable", -2, 6 }, { "background", -3, 7 }, { "", 3, 1 },
        { "Critical", 3, 1 }, { "crit", 3, 1 }, { "criticals", 3, 1 }
    };

    llmgw_classes_init(&classes);

    for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        assert_int_equal(fleet_priority(&classes, want[i].name,
                                        strlen(want[i].name)),
                         want[i].priority);
        assert_int_equal(fleet_engine_priority(&classes, want[i].priority),
                         want[i].engine);
    }
}


static void
overrides_move_classes_and_the_highest(void **state)
{
    llmgw_classes_t  classes;

    llmgw_classes_init(&classes);
    assert_int_equal(llmgw_classes_set(&classes, "gold", 4, 100), 0);
    assert_int_equal(fleet_priority(&classes, "gold", 4), 100);
    assert_int_equal(fleet_engine_priority(&classes, 4), 96);

    /* no named tenant is above the default */
    assert_int_equal(llmgw_classes_set(&classes, "gold", 4, -100), 0);
    assert_int_equal(llmgw_classes_set(&classes, "critical", 8, -5), 0);
    assert_int_equal(llmgw_classes_set(&classes, "standard", 8, 0), 0);
    assert_int_equal(fleet_engine_priority(&classes, LLMGW_CLASS_DEFAULT), 0);
    assert_int_equal(fleet_priority(&classes, "standard", 8), 0);
    assert_int_equal(fleet_priority(&classes, "", 0), 3);
}


static void
reason_is_cut_and_ended(void **state)
{
    char     name[300];
    scene_t  scene;

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';

    scene_init(&scene, "tier-shed");
    scene.rule.min_priority = 4;
    scene.candidates[0].in_flight = 1;
    assert_int_equal(strlen(ask(&scene, name)), FLEET_REASON_BYTES - 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(refusals_have_their_words),
        cmocka_unit_test(
            tier_shed_protects_the_important_where_one_replica_is_loaded),
        cmocka_unit_test(gaie_legacy_sheds_where_the_mean_is_full),
        cmocka_unit_test(classes_have_their_priorities),
        cmocka_unit_test(overrides_move_classes_and_the_highest),
        cmocka_unit_test(reason_is_cut_and_ended)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
