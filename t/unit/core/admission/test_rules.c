
/* Admission rules: what each refuses, and in which words. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/admission/classes.h"
#include "core/admission/rules.h"


#define NREPLICAS  3

typedef struct {
    llmgw_rule_t          rule;
    llmgw_rule_request_t  request;
    llmgw_rule_verdict_t  verdict;
    llmgw_candidate_t     candidates[NREPLICAS];
    char                  reason[LLMGW_RULE_REASON_BYTES];
} scene_t;


static void
scene_init(scene_t *scene, const char *name)
{
    memset(scene, 0, sizeof(*scene));
    assert_int_equal(llmgw_rule_kind(name, strlen(name), &scene->rule.kind),
                     0);

    scene->request.candidates = scene->candidates;
    scene->request.n = NREPLICAS;
}


/* The reason, "" if admitted. */
static const char *
ask(scene_t *scene, const char *class_name)
{
    llmgw_classes_t  classes;

    llmgw_classes_init(&classes);
    scene->request.priority = llmgw_classes_priority(&classes, class_name,
                                                     strlen(class_name));

    scene->verdict = llmgw_rule_admit(&scene->rule, &scene->request);
    llmgw_rule_reason(&scene->verdict, class_name, strlen(class_name),
                      scene->reason);

    assert_int_equal(scene->verdict.code == LLMGW_RULE_ADMITTED,
                     scene->reason[0] == '\0');

    return scene->reason;
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
        assert_int_equal(llmgw_classes_priority(&classes, want[i].name,
                                                strlen(want[i].name)),
                         want[i].priority);
        assert_int_equal(llmgw_classes_engine_priority(&classes,
                             want[i].priority), want[i].engine);
    }
}


static void
overrides_move_classes_and_the_highest(void **state)
{
    llmgw_classes_t  classes;

    llmgw_classes_init(&classes);
    assert_int_equal(llmgw_classes_set(&classes, "gold", 4, 100), 0);
    assert_int_equal(llmgw_classes_priority(&classes, "gold", 4), 100);
    assert_int_equal(llmgw_classes_engine_priority(&classes, 4), 96);

    /* nobody named is above the default */
    assert_int_equal(llmgw_classes_set(&classes, "gold", 4, -100), 0);
    assert_int_equal(llmgw_classes_set(&classes, "critical", 8, -5), 0);
    assert_int_equal(llmgw_classes_set(&classes, "standard", 8, 0), 0);
    assert_int_equal(classes.highest, LLMGW_CLASS_DEFAULT);
    assert_int_equal(llmgw_classes_priority(&classes, "standard", 8), 0);
    assert_int_equal(llmgw_classes_priority(&classes, "", 0), 3);
}


static void
overrides_have_limits(void **state)
{
    char             name[LLMGW_CLASS_NAME_BYTES + 1];
    uint32_t         i;
    llmgw_classes_t  classes;

    llmgw_classes_init(&classes);
    assert_int_equal(llmgw_classes_set(&classes, "a", 1, 101),
                     LLMGW_CLASSES_RANGE);
    assert_int_equal(llmgw_classes_set(&classes, "a", 1, -101),
                     LLMGW_CLASSES_RANGE);

    memset(name, 'x', sizeof(name));
    assert_int_equal(llmgw_classes_set(&classes, name, sizeof(name), 1),
                     LLMGW_CLASSES_LONG);
    assert_int_equal(llmgw_classes_set(&classes, name, sizeof(name) - 1, 1),
                     LLMGW_CLASSES_OK);

    for (i = classes.n; i < LLMGW_CLASSES_MAX; i++) {
        name[0] = (char) ('a' + i);
        assert_int_equal(llmgw_classes_set(&classes, name, 2, 1),
                         LLMGW_CLASSES_OK);
    }

    assert_int_equal(llmgw_classes_set(&classes, "new", 3, 1),
                     LLMGW_CLASSES_FULL);
    assert_int_equal(llmgw_classes_set(&classes, "batch", 5, 1),
                     LLMGW_CLASSES_OK);
}


static void
always_and_never(void **state)
{
    scene_t  scene;

    scene_init(&scene, "always");
    assert_string_equal(ask(&scene, "background"), "");
    scene_init(&scene, "always_admit");
    assert_string_equal(ask(&scene, "background"), "");

    scene_init(&scene, "reject-all");
    assert_string_equal(ask(&scene, "critical"), "reject-all");

    assert_int_equal(llmgw_rule_kind("never", 5, &scene.rule.kind), -1);
}


/* Capacity 100, an eighth of a token a microsecond. */
static void
token_bucket_fills_with_time(void **state)
{
    scene_t         scene;
    llmgw_bucket_t  bucket;

    scene_init(&scene, "token-bucket");
    scene.rule.bucket = &bucket;
    assert_int_equal(llmgw_bucket_init(&bucket, 100, 125000, 0), 0);

    scene.request.tokens = 101;
    assert_string_equal(ask(&scene, "critical"), "insufficient tokens");
    scene.request.tokens = 60;
    assert_string_equal(ask(&scene, "critical"), "");
    assert_string_equal(ask(&scene, "critical"), "insufficient tokens");
    assert_true(bucket.tokens == 40);

    scene.request.now_us = 159;
    assert_string_equal(ask(&scene, "critical"), "insufficient tokens");
    scene.request.now_us = 160;
    assert_string_equal(ask(&scene, "critical"), "");

    /* no more than its capacity, and nothing by a clock that went back */
    scene.request.now_us = 10000000;
    scene.request.tokens = 100;
    assert_string_equal(ask(&scene, "critical"), "");
    scene.request.tokens = 1;
    scene.request.now_us = 9000000;
    assert_string_equal(ask(&scene, "critical"), "insufficient tokens");
    scene.request.now_us = 10000007;
    assert_string_equal(ask(&scene, "critical"), "insufficient tokens");
    scene.request.now_us = 10000008;
    assert_string_equal(ask(&scene, "critical"), "");

    scene.request.tokens = 0;
    assert_string_equal(ask(&scene, "critical"), "");
}


static void
bucket_of_no_sense_is_refused(void **state)
{
    llmgw_bucket_t  bucket;

    assert_int_equal(llmgw_bucket_init(&bucket, 0, 1, 0), -1);
    assert_int_equal(llmgw_bucket_init(&bucket, 1, 0, 0), -1);
    assert_int_equal(llmgw_bucket_init(&bucket, -1, 1, 0), -1);
    assert_int_equal(llmgw_bucket_init(&bucket, NAN, 1, 0), -1);
    assert_int_equal(llmgw_bucket_init(&bucket, 1, INFINITY, 0), -1);
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

    scene.request.n = 0;
    assert_string_equal(ask(&scene, "batch"), "");
}


/* max(2/5, 0.2/0.8), max(10/5, 0), max(0, 0.48/0.8): their mean is 1. */
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

    scene.request.n = 0;
    assert_string_equal(ask(&scene, "sheddable"),
                        "gaie-saturated: class=sheddable saturation=1.00");
}


static void
tenant_over_its_budget_loses_what_may_be_shed(void **state)
{
    uint32_t        i;
    scene_t         scene;
    llmgw_bucket_t  bucket;
    llmgw_tenant_t  tenant = { 0 };

    scene_init(&scene, "token-bucket");
    scene.rule.bucket = &bucket;
    assert_int_equal(llmgw_bucket_init(&bucket, 5, 1, 0), 0);
    scene.rule.capacity = 12;
    scene.request.tenant = &tenant;

    for (i = 0; i < 100; i++) {
        llmgw_tenant_begin(&tenant);
    }

    assert_string_equal(ask(&scene, "batch"), "");

    assert_int_equal(llmgw_tenant_init(&tenant, 0.25), 0);

    for (i = 0; i < 3; i++) {
        llmgw_tenant_begin(&tenant);
    }

    assert_string_equal(ask(&scene, "batch"), "");
    llmgw_tenant_begin(&tenant);
    assert_string_equal(ask(&scene, "standard"), "");

    /* the budget comes first: no token is taken */
    scene.request.tokens = 5;
    assert_string_equal(ask(&scene, "batch"), "tenant-budget-shed");
    assert_string_equal(ask(&scene, "standard"), "");

    llmgw_tenant_end(&tenant);
    scene.request.tokens = 0;
    assert_string_equal(ask(&scene, "batch"), "");
}


static void
budgets_are_fractions(void **state)
{
    llmgw_tenant_t  tenant = { 0 };

    assert_int_equal(llmgw_tenant_init(&tenant, -0.1), -1);
    assert_int_equal(llmgw_tenant_init(&tenant, 1.1), -1);
    assert_int_equal(llmgw_tenant_init(&tenant, NAN), -1);
    assert_false(tenant.has_budget);

    /* a budget of nothing lets one through, since it counts when sent */
    assert_int_equal(llmgw_tenant_init(&tenant, 0), 0);
    assert_false(llmgw_tenant_is_over(&tenant, 0));
    llmgw_tenant_begin(&tenant);
    assert_true(llmgw_tenant_is_over(&tenant, 0));

    /* a capacity below 1 counts as 1 */
    assert_int_equal(llmgw_tenant_init(&tenant, 1), 0);
    llmgw_tenant_begin(&tenant);
    assert_false(llmgw_tenant_is_over(&tenant, -3));

    llmgw_tenant_end(&tenant);
    llmgw_tenant_end(&tenant);
    assert_int_equal(tenant.in_flight, 0);
}


static void
reason_is_cut_and_ended(void **state)
{
    char                  name[300], reason[LLMGW_RULE_REASON_BYTES];
    llmgw_rule_verdict_t  verdict = { .code = LLMGW_RULE_TIER };

    memset(name, 'x', sizeof(name));
    llmgw_rule_reason(&verdict, name, sizeof(name), reason);
    assert_int_equal(strlen(reason), LLMGW_RULE_REASON_BYTES - 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(classes_have_their_priorities),
        cmocka_unit_test(overrides_move_classes_and_the_highest),
        cmocka_unit_test(overrides_have_limits),
        cmocka_unit_test(always_and_never),
        cmocka_unit_test(token_bucket_fills_with_time),
        cmocka_unit_test(bucket_of_no_sense_is_refused),
        cmocka_unit_test(
            tier_shed_protects_the_important_where_one_replica_is_loaded),
        cmocka_unit_test(gaie_legacy_sheds_where_the_mean_is_full),
        cmocka_unit_test(tenant_over_its_budget_loses_what_may_be_shed),
        cmocka_unit_test(budgets_are_fractions),
        cmocka_unit_test(reason_is_cut_and_ended)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
