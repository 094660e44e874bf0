
/* Admission rules: what each refuses. */

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


typedef struct {
    llmgw_rule_t          rule;
    llmgw_rule_request_t  request;
} scene_t;


static void
scene_init(scene_t *scene, const char *name)
{
    memset(scene, 0, sizeof(*scene));
    assert_int_equal(llmgw_rule_kind(name, strlen(name), &scene->rule.kind),
                     0);
}


static llmgw_rule_code_t
ask(scene_t *scene, int32_t priority)
{
    scene->request.priority = priority;

    return llmgw_rule_admit(&scene->rule, &scene->request);
}


static void
classes_are_built_in_and_overridden(void **state)
{
    size_t           i;
    uint32_t         at;
    llmgw_classes_t  classes;

    static const struct {
        const char  *name;
        int32_t      priority;
    } want[] = {
        { "critical", 4 }, { "standard", 3 }, { "batch", -1 },
        { "sheddable", -2 }, { "background", -3 }, { "gold", 100 }
    };

    llmgw_classes_init(&classes);
    assert_int_equal(llmgw_classes_set(&classes, "gold", 4, 100), 0);

    for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        at = llmgw_classes_index(&classes, want[i].name,
                                 strlen(want[i].name));
        assert_int_equal(at, i);
        assert_int_equal(classes.classes[at].priority, want[i].priority);
    }

    assert_int_equal(llmgw_classes_set(&classes, "standard", 8, -100), 0);
    assert_int_equal(classes.classes[1].priority, -100);
    assert_int_equal(classes.n, 6);

    assert_int_equal(llmgw_classes_index(&classes, "", 0), LLMGW_CLASSES_MAX);
    assert_int_equal(llmgw_classes_index(&classes, "Critical", 8),
                     LLMGW_CLASSES_MAX);
    assert_int_equal(llmgw_classes_index(&classes, "crit", 4),
                     LLMGW_CLASSES_MAX);
    assert_int_equal(llmgw_classes_index(&classes, "criticals", 9),
                     LLMGW_CLASSES_MAX);
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
    assert_int_equal(ask(&scene, -3), LLMGW_RULE_ADMITTED);
    scene_init(&scene, "always_admit");
    assert_int_equal(ask(&scene, -3), LLMGW_RULE_ADMITTED);

    scene_init(&scene, "reject-all");
    assert_int_equal(ask(&scene, 4), LLMGW_RULE_REJECTED);

    assert_int_equal(llmgw_rule_kind("never", 5, &scene.rule.kind), -1);
    assert_int_equal(llmgw_rule_kind("tier-shed", 9, &scene.rule.kind), -1);
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
    assert_int_equal(ask(&scene, 4), LLMGW_RULE_NO_TOKENS);
    scene.request.tokens = 60;
    assert_int_equal(ask(&scene, 4), LLMGW_RULE_ADMITTED);
    assert_int_equal(ask(&scene, 4), LLMGW_RULE_NO_TOKENS);
    assert_true(bucket.tokens == 40);

    scene.request.now_us = 159;
    assert_int_equal(ask(&scene, 4), LLMGW_RULE_NO_TOKENS);
    scene.request.now_us = 160;
    assert_int_equal(ask(&scene, 4), LLMGW_RULE_ADMITTED);

    /* it gains up to its capacity, and nothing if the clock went back */
    scene.request.now_us = 10000000;
    scene.request.tokens = 100;
    assert_int_equal(ask(&scene, 4), LLMGW_RULE_ADMITTED);
    scene.request.tokens = 1;
    scene.request.now_us = 9000000;
    assert_int_equal(ask(&scene, 4), LLMGW_RULE_NO_TOKENS);
    scene.request.now_us = 10000007;
    assert_int_equal(ask(&scene, 4), LLMGW_RULE_NO_TOKENS);
    scene.request.now_us = 10000008;
    assert_int_equal(ask(&scene, 4), LLMGW_RULE_ADMITTED);

    scene.request.tokens = 0;
    assert_int_equal(ask(&scene, 4), LLMGW_RULE_ADMITTED);
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
tenant_over_its_budget_loses_what_may_be_shed(void **state)
{
    scene_t         scene;
    llmgw_bucket_t  bucket;
    llmgw_tenant_t  tenant = { 0 };

    scene_init(&scene, "token-bucket");
    scene.rule.bucket = &bucket;
    assert_int_equal(llmgw_bucket_init(&bucket, 5, 1, 0), 0);
    scene.rule.capacity = 12;
    scene.request.tenant = &tenant;

    tenant.in_flight = 100;
    assert_int_equal(ask(&scene, -1), LLMGW_RULE_ADMITTED);

    assert_int_equal(llmgw_tenant_init(&tenant, 0.25), 0);
    tenant.in_flight = 3;
    assert_int_equal(ask(&scene, -1), LLMGW_RULE_ADMITTED);
    tenant.in_flight++;
    assert_int_equal(ask(&scene, 3), LLMGW_RULE_ADMITTED);

    /* the budget comes first: no token is taken */
    scene.request.tokens = 5;
    assert_int_equal(ask(&scene, -1), LLMGW_RULE_TENANT_BUDGET);
    assert_int_equal(ask(&scene, 3), LLMGW_RULE_ADMITTED);

    tenant.in_flight--;
    scene.request.tokens = 0;
    assert_int_equal(ask(&scene, -1), LLMGW_RULE_ADMITTED);
}


static void
budgets_are_fractions(void **state)
{
    llmgw_tenant_t  tenant = { 0 };

    assert_int_equal(llmgw_tenant_init(&tenant, -0.1), -1);
    assert_int_equal(llmgw_tenant_init(&tenant, 1.1), -1);
    assert_int_equal(llmgw_tenant_init(&tenant, NAN), -1);
    assert_false(tenant.has_budget);

    /* a budget of 0 lets one request through: it counts when it is sent */
    assert_int_equal(llmgw_tenant_init(&tenant, 0), 0);
    assert_false(llmgw_tenant_is_over(&tenant, 0));
    tenant.in_flight = 1;
    assert_true(llmgw_tenant_is_over(&tenant, 0));

    /* a capacity below 1 counts as 1 */
    assert_int_equal(llmgw_tenant_init(&tenant, 1), 0);
    tenant.in_flight = 1;
    assert_false(llmgw_tenant_is_over(&tenant, -3));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(classes_are_built_in_and_overridden),
        cmocka_unit_test(overrides_have_limits),
        cmocka_unit_test(always_and_never),
        cmocka_unit_test(token_bucket_fills_with_time),
        cmocka_unit_test(bucket_of_no_sense_is_refused),
        cmocka_unit_test(tenant_over_its_budget_loses_what_may_be_shed),
        cmocka_unit_test(budgets_are_fractions)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
