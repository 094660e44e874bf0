
/*
 * Options that would have no effect are refused: a run that ignores an option
 * gives a wrong answer.  Our own gateway (--gateway FILE) takes the place of
 * BLIS's, and BLIS's has a queue only with --flow-control.  A new option of
 * either gateway belongs in one of the tables of settings.h that are used here.
 */

#include <stdlib.h>
#include <string.h>

#include "sim/plan_inner.h"


typedef struct {
    sim_settings_t  of;
} plan_settings_t;

static const option_t  plan_blis_table[] = {
    SIM_TEXT("semantics", plan_settings_t, of, semantics, NULL, NULL),
    SIM_BLIS_OPTIONS(plan_settings_t, of),
    SIM_FLOW_OPTIONS(plan_settings_t, of),
    SIM_POOL_OPTIONS(plan_settings_t, of),
    { .name = NULL }
};


static const option_t  plan_queue_table[] = {
    SIM_QUEUE_OPTIONS(plan_settings_t, of),
    { .name = NULL }
};


static int
given_text(const option_t *o, const char *const *text)
{
    return *text != NULL && (o->value == NULL || strcmp(*text, o->value) != 0);
}


static int
given_int(const option_t *o, const int64_t *value, const int64_t *unset)
{
    return *value != (o->value != NULL ? strtoll(o->value, NULL, 10) : *unset);
}


static int
given_double(const option_t *o, const double *value, const double *unset)
{
    return *value != (o->value != NULL ? strtod(o->value, NULL) : *unset);
}


const char *
sim_given(const option_t *table, const void *values, const void *unset)
{
    int              is_given;
    const char      *value, *before;
    const option_t  *o;

    for (o = table; o->name != NULL; o++) {
        value = (const char *) values + o->offset;
        before = (const char *) unset + o->offset;
        is_given = o->kind == OPTION_FLAG ? *(const int *) (const void *) value
                   : o->kind == OPTION_INT
                     ? given_int(o, (const void *) value,
                                 (const void *) before)
                   : o->kind == OPTION_DOUBLE
                     ? given_double(o, (const void *) value,
                                    (const void *) before)
                   : given_text(o, (const void *) value);

        if (is_given) {
            return o->name;
        }
    }

    return NULL;
}


/* The first option of the table that was given; NULL: none. */
static const char *
plan_given(const option_t *table, const sim_settings_t *s)
{
    plan_settings_t  unset, given;

    sim_settings_init(&unset.of);
    given.of = *s;

    return sim_given(table, &given, &unset);
}


int
plan_queue(sim_plan_t *plan, const sim_settings_t *s)
{
    const char  *name;

    name = s->flow_control ? NULL : plan_given(plan_queue_table, s);

    return name == NULL ? 0
           : plan_fail(plan, "--%s is of the gateway's queue, and has no "
                       "effect without it: add --flow-control", name);
}


int
plan_gateway(sim_plan_t *plan, const sim_settings_t *s,
    const bundle_t *bundle)
{
    const char  *name;

    if (s->gateway == NULL) {
        return 0;
    }

    name = plan_given(plan_blis_table, s);

    if (name != NULL) {
        return plan_fail(plan, "--%s is of BLIS's gateway, and has no effect "
                         "with --gateway, whose file says what ours does",
                         name);
    }

    name = bundle->admission != NULL
           && (bundle->admission->policy != NULL
               || bundle->admission->targets.n > 0)
           ? "admission"
           : bundle->routing != NULL ? "routing"
           : bundle->budgets.n > 0 ? "tenant_budgets" : NULL;

    return name == NULL ? 0
           : plan_fail(plan, "%s: %s is of BLIS's gateway, and has no effect "
                       "with --gateway, whose file says what ours does",
                       s->policy_config, name);
}
