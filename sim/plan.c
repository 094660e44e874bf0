
/*
 * Makes a plan from settings: the gateway's half; plan_model.c has the
 * replicas' half.  A flag that was given comes before the policy bundle, and
 * the bundle before the default.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy/name.h"
#include "sim/bundle.h"
#include "sim/fleet/policy/scorers.h"
#include "sim/plan_inner.h"
#include "sim/work/request.h"


int
plan_fail(sim_plan_t *plan, const char *format, ...)
{
    va_list  args;

    va_start(args, format);
    vsnprintf(plan->error, sizeof(plan->error), format, args);
    va_end(args);

    return -1;
}


static int
plan_unknown(sim_plan_t *plan, const char *what, const char *name)
{
    return plan_fail(plan, "unknown %s \"%s\", see --help", what, name);
}


void
sim_settings_init(sim_settings_t *settings)
{
    memset(settings, 0, sizeof(sim_settings_t));
    settings->seed = SIM_SEED_UNSET;
    settings->horizon_us = SIM_UNSET;
    settings->total_blocks = SIM_UNSET;
    settings->max_model_len = SIM_UNSET;
    settings->bucket_capacity = SIM_UNSET;
    settings->bucket_rate = SIM_UNSET;
    settings->snapshot_us = SIM_UNSET;
    settings->cache_us = SIM_UNSET;
}


int64_t
sim_seed(const sim_settings_t *settings)
{
    return settings->seed != SIM_SEED_UNSET ? settings->seed : 42;
}


/* --- numbers that may be unset, and numbers by name */

static void
plan_number(double *field, double given)
{
    if (given != SIM_UNSET) {
        *field = given;
    }
}


/* With --semantics page, facts are fresh unless an age was given. */
static void
plan_age(int64_t *field, int64_t given, int is_page)
{
    if (given != SIM_UNSET) {
        *field = given;

    } else if (is_page) {
        *field = 0;
    }
}


static fleet_nameds_t
plan_numbers(sim_plan_t *plan, const work_yaml_numbers_t *numbers)
{
    size_t          i;
    fleet_named_t  *list;

    list = work_arena_alloc(&plan->arena,
                            (numbers->n + 1) * sizeof(fleet_named_t));

    for (i = 0; i < numbers->n; i++) {
        list[i].name = numbers->items[i].name;
        list[i].value = numbers->items[i].value;
    }

    return (fleet_nameds_t) { list, numbers->n };
}


/* Reads us by class, "critical=100000,standard=500000". */
static int
plan_targets(sim_plan_t *plan, const char *text, fleet_nameds_t *targets)
{
    size_t          n;
    char           *copy, *part, *equals, *end, *rest;
    long long       us;
    fleet_named_t  *list;

    n = 0;
    copy = work_arena_text(&plan->arena, text, strlen(text));
    list = work_arena_alloc(&plan->arena,
                            (strlen(text) + 1) * sizeof(fleet_named_t));

    for (part = strtok_r(copy, ",", &rest); part != NULL;
         part = strtok_r(NULL, ",", &rest))
    {
        part += strspn(part, " ");
        equals = strchr(part, '=');

        if (equals == NULL || equals == part) {
            return plan_fail(plan, "--slo-targets: \"%s\" is not CLASS=US",
                             part);
        }

        *equals = '\0';
        us = strtoll(equals + 1, &end, 10);

        if (end == equals + 1 || *end != '\0' || us <= 0
            || us > WORK_MAX_US)
        {
            return plan_fail(plan, "--slo-targets: %s needs a number of "
                             "microseconds above 0, not \"%s\"", part,
                             equals + 1);
        }

        list[n++] = (fleet_named_t) { part, (double) us };
    }

    *targets = (fleet_nameds_t) { list, n };

    return 0;
}


/* --- admission */

static int
plan_classes(sim_plan_t *plan, const work_yaml_numbers_t *priorities)
{
    size_t                     i;
    const work_yaml_number_t  *p;

    for (i = 0; i < priorities->n; i++) {
        p = &priorities->items[i];

        if (p->value != (double) (int32_t) p->value
            || llmgw_classes_set(&plan->fleet.admission.classes, p->name,
                                 strlen(p->name), (int32_t) p->value)
               != LLMGW_CLASSES_OK)
        {
            return plan_fail(plan, "slo_priorities: \"%s\" cannot be %g",
                             p->name, p->value);
        }
    }

    return 0;
}


static int
plan_admission_bundle(sim_plan_t *plan, const sim_settings_t *s,
    const bundle_admission_t *b)
{
    fleet_admission_t  *a = &plan->fleet.admission;

    if (b->has_bucket_capacity && s->bucket_capacity == SIM_UNSET) {
        a->bucket_capacity = b->bucket_capacity;
    }

    if (b->has_bucket_rate && s->bucket_rate == SIM_UNSET) {
        a->bucket_rate = b->bucket_rate;
    }

    if (b->has_tier_threshold) {
        a->rule.overload = b->tier_threshold;
    }

    if (b->has_tier_min_priority) {
        a->rule.min_priority = (int32_t) b->tier_min_priority;

    } else if (b->policy != NULL && strcmp(b->policy, "tier-shed") == 0) {
        a->rule.min_priority = LLMGW_CLASS_DEFAULT;
    }

    if (b->has_gaie_queue_depth) {
        a->rule.queue_depth = b->gaie_queue_depth;
    }

    if (b->has_gaie_kv_utilization) {
        a->rule.kv_utilization = b->gaie_kv_utilization;
    }

    if (s->targets == NULL && b->targets.n > 0) {
        plan->fleet.flow.targets = plan_numbers(plan, &b->targets);
    }

    return plan_classes(plan, &b->priorities);
}


static int
plan_admission(sim_plan_t *plan, const sim_settings_t *s,
    const bundle_t *bundle)
{
    const char          *name = s->admission;
    fleet_admission_t   *a = &plan->fleet.admission;
    bundle_admission_t  *b = bundle->admission;

    plan_number(&a->bucket_capacity, s->bucket_capacity);
    plan_number(&a->bucket_rate, s->bucket_rate);
    a->latency_us = s->admission_latency_us;

    if (b != NULL) {
        name = name == NULL ? b->policy : name;

        if (plan_admission_bundle(plan, s, b) != 0) {
            return -1;
        }
    }

    if (bundle->budgets.n > 0) {
        a->has_budgets = 1;
        a->budgets = plan_numbers(plan, &bundle->budgets);
    }

    a->rule_name = name == NULL ? a->rule_name : name;

    if (fleet_rule_find(&a->rule, a->rule_name, strlen(a->rule_name)) != 0) {
        return plan_unknown(plan, "admission policy", a->rule_name);
    }

    if (a->bucket_capacity <= 0 || a->bucket_rate <= 0) {
        return plan_fail(plan, "a token bucket's capacity and rate are above "
                         "0");
    }

    /*
     * BLIS accepts both without a message; its command lines should run here.
     */
    if (s->flow_control && (a->rule.kind != FLEET_RULE_CORE
                            || a->rule.core.kind != LLMGW_RULE_ALWAYS))
    {
        fprintf(stderr, "llmgw-sim: the admission policy %s has no effect: "
                "--flow-control replaces admission by its queue\n",
                a->rule_name);
    }

    return 0;
}


/* --- routing */

static int
plan_weighted(sim_plan_t *plan, const char *option, const char *text,
    fleet_policy_t *policy)
{
    char  error[256];

    policy->ranker.policy = LLMGW_RANK_WEIGHTED;

    if (llmgw_weighted_parse(&policy->ranker.weighted, fleet_scorers, text,
                             strlen(text), error, sizeof(error))
        != 0)
    {
        return plan_fail(plan, "%s: %s", option, error);
    }

    return 0;
}


/* The scorers of a bundle, as the value of an option. */
static const char *
plan_bundle_scorers(sim_plan_t *plan, const bundle_routing_t *b)
{
    char                   *text;
    size_t                  i, len, size;
    const bundle_scorer_t  *scorers = b->scorers.items;

    for (i = 0, size = 1; i < b->scorers.n; i++) {
        size += 32 + (scorers[i].name != NULL ? strlen(scorers[i].name) : 0);
    }

    text = work_arena_alloc(&plan->arena, size);

    for (i = 0, len = 0; i < b->scorers.n; i++) {
        len += (size_t) snprintf(text + len, size - len, "%s%s:%.17g",
                                 i > 0 ? "," : "",
                                 scorers[i].name != NULL ? scorers[i].name
                                                         : "",
                                 scorers[i].weight);
    }

    return text;
}


static int
plan_pool_scorers(sim_plan_t *plan, const sim_settings_t *s)
{
    fleet_routing_t  *r = &plan->fleet.routing;

    r->has_prefill = s->prefill_scorers != NULL;
    r->has_decode = s->decode_scorers != NULL;

    if (r->has_prefill
        && plan_weighted(plan, "--prefill-routing-scorers",
                         s->prefill_scorers, &r->prefill)
           != 0)
    {
        return -1;
    }

    return r->has_decode ? plan_weighted(plan, "--decode-routing-scorers",
                                         s->decode_scorers, &r->decode)
                         : 0;
}


static int
plan_routing(sim_plan_t *plan, const sim_settings_t *s,
    const bundle_t *bundle)
{
    const char              *name = s->routing, *scorers = s->scorers;
    const char              *where = "--routing-scorers";
    fleet_routing_t         *r = &plan->fleet.routing;
    const bundle_routing_t  *b = bundle->routing;

    r->latency_us = s->routing_latency_us;
    plan_age(&r->snapshot_us, s->snapshot_us, plan_is_page(s));
    plan_age(&r->cache_us, s->cache_us, plan_is_page(s));

    if (b != NULL) {
        name = name == NULL ? b->policy : name;

        if (scorers == NULL && b->scorers.n > 0) {
            scorers = plan_bundle_scorers(plan, b);
            where = s->policy_config;
        }
    }

    r->policy_name = name == NULL ? r->policy_name : name;

    if (fleet_policy_find(&r->policy, r->policy_name, strlen(r->policy_name))
        != 0)
    {
        return plan_unknown(plan, "routing policy", r->policy_name);
    }

    if (r->policy.ranker.policy == LLMGW_RANK_WEIGHTED) {
        scorers = scorers != NULL ? scorers
                  : plan_is_page(s) ? "blis" : "llm-d";

        if (plan_weighted(plan, where, scorers, &r->policy) != 0) {
            return -1;
        }
    }

    return plan_pool_scorers(plan, s);
}


/* --- the gateway's queue */

static int
plan_flow_names(sim_plan_t *plan, const sim_settings_t *s)
{
    int            kind;
    const char    *name;
    fleet_flow_t  *f = &plan->fleet.flow;

    static const char *const  detectors[] = {
        [LLMGW_SATURATION_NEVER] = "never",
        [LLMGW_SATURATION_UTILIZATION] = "utilization",
        [LLMGW_SATURATION_CONCURRENCY] = "concurrency"
    };

    name = s->detector != NULL ? s->detector : "never";
    kind = llmgw_name_find(detectors, 3, name, strlen(name));

    if (kind == -1) {
        return plan_unknown(plan, "saturation detector", name);
    }

    f->saturation.kind = (llmgw_saturation_kind_t) kind;
    name = s->order != NULL ? s->order
           : plan_is_page(s) ? "priority" : "fifo";

    if (llmgw_flow_order(name, strlen(name), &f->queue.order) != 0) {
        return plan_unknown(plan, "dispatch order", name);
    }

    name = s->fairness != NULL ? s->fairness : "global-strict";

    if (llmgw_flow_fairness(name, strlen(name), &f->queue.fairness) != 0) {
        return plan_unknown(plan, "fairness policy", name);
    }

    return s->targets != NULL ? plan_targets(plan, s->targets, &f->targets)
                              : 0;
}


static int
plan_flow(sim_plan_t *plan, const sim_settings_t *s)
{
    fleet_flow_t  *f = &plan->fleet.flow;

    f->is_on = s->flow_control;
    f->queue.size = (uint32_t) s->queue_size;
    f->queue.band_size = (uint32_t) s->band_size;
    f->queue.usage_limit = s->usage_limit;
    f->queue.has_shedding = s->shedding;
    f->saturation.queue_depth = s->queue_threshold;
    f->saturation.kv_utilization = s->kv_threshold;
    f->saturation.max_concurrency = s->max_concurrency;
    f->ttl_us = s->ttl_us;
    f->tick_us = s->tick_us > 0 ? s->tick_us : f->tick_us;
    f->evicts = s->evicts;

    if (s->queue_size > UINT32_MAX || s->band_size > UINT32_MAX) {
        return plan_fail(plan, "a queue holds at most %u requests",
                         UINT32_MAX);
    }

    if (f->is_on && (s->queue_threshold <= 0 || s->kv_threshold <= 0)) {
        return plan_fail(plan, "--queue-depth-threshold and "
                         "--kv-cache-util-threshold are above 0");
    }

    return plan_flow_names(plan, s);
}


/* --- semantics: which generation of BLIS */

int
plan_is_page(const sim_settings_t *s)
{
    return s->semantics != NULL && strcmp(s->semantics, "page") == 0;
}


static int
plan_choice(sim_plan_t *plan, const char *option, const char *given,
    const char *zero, const char *one, int *value)
{
    if (given == NULL) {
        return 0;
    }

    if (strcmp(given, zero) != 0 && strcmp(given, one) != 0) {
        return plan_fail(plan, "%s: \"%s\" is not %s or %s", option, given,
                         zero, one);
    }

    *value = strcmp(given, one) == 0;

    return 0;
}


/*
 * With --semantics page the page's rules are the defaults; options that were
 * given override them.
 */
static int
plan_semantics(sim_plan_t *plan, const sim_settings_t *s)
{
    int              page = 0, signal, dispatch;
    fleet_config_t  *fleet = &plan->fleet;

    if (plan_choice(plan, "--semantics", s->semantics, "newest", "page",
                    &page)
        != 0)
    {
        return -1;
    }

    signal = dispatch = page;

    if (plan_choice(plan, "--queue-depth-signal", s->signal, "queue",
                    "effective", &signal)
        != 0
        || plan_choice(plan, "--dispatch", s->dispatch, "tick", "completion",
                       &dispatch)
           != 0)
    {
        return -1;
    }

    fleet->routing.signal = signal ? FLEET_SIGNAL_EFFECTIVE
                                   : FLEET_SIGNAL_QUEUE;
    fleet->flow.dispatch = dispatch ? FLEET_DISPATCH_COMPLETION
                                    : FLEET_DISPATCH_TICK;

    if (page) {
        fleet->flow.queue.has_shedding = 1;
    }

    return 0;
}


/* --- */

static int
plan_bundle(sim_plan_t *plan, const sim_settings_t *s, bundle_t *bundle)
{
    work_error_t  error;

    if (s->policy_config == NULL) {
        return 0;
    }

    if (bundle_read(bundle, s->policy_config, &plan->arena, &error) != 0) {
        return plan_fail(plan, "%s", error.text);
    }

    return 0;
}


int
sim_plan_make(sim_plan_t *plan, const sim_settings_t *s)
{
    bundle_t  bundle;

    memset(plan, 0, sizeof(sim_plan_t));
    memset(&bundle, 0, sizeof(bundle_t));
    fleet_config_init(&plan->fleet);

    plan->fleet.seed = (uint64_t) sim_seed(s);
    plan->fleet.checks = s->check;
    plan->fleet.horizon_us = s->horizon_us == SIM_UNSET ? INT64_MAX
                                                        : s->horizon_us;

    if (s->replicas > FLEET_REPLICAS_MAX) {
        return plan_fail(plan, "--num-instances: at most %d",
                         FLEET_REPLICAS_MAX);
    }

    plan->fleet.replicas = (uint32_t) s->replicas;

    if (plan_bundle(plan, s, &bundle) != 0
        || plan_gateway(plan, s, &bundle) != 0
        || plan_admission(plan, s, &bundle) != 0
        || plan_routing(plan, s, &bundle) != 0
        || plan_queue(plan, s) != 0
        || plan_flow(plan, s) != 0
        || plan_semantics(plan, s) != 0
        || plan_model(plan, s, bundle.scheduler,
                      bundle.preemption != NULL ? bundle.preemption->policy
                                                : NULL)
           != 0
        || plan_pools(plan, s) != 0
        || fleet_config_check(&plan->fleet, plan->error, sizeof(plan->error))
           != 0)
    {
        return -1;
    }

    return 0;
}


void
sim_plan_done(sim_plan_t *plan)
{
    work_arena_done(&plan->arena);
}
