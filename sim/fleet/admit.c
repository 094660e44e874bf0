
/*
 * A request arrives, and is admitted or refused by a rule; then it is
 * routed, or waits in the gateway's queue if there is one.
 *
 * With a queue, the queue replaces the rule, as in BLIS; budgets of tenants are
 * checked before either.
 */

#include <stdlib.h>

#include "sim/fleet/fleet_inner.h"


static int
admit_init_tenants(fleet_t *f)
{
    size_t                 i;
    work_names_t          *names = &f->work->names;
    const work_name_t     *name;
    const fleet_nameds_t  *budgets = &f->config->admission.budgets;

    for (i = 0; i < budgets->n; i++) {
        (void) work_name(names, budgets->list[i].name,
                         strlen(budgets->list[i].name));
    }

    f->ntenants = names->n;
    f->tenants = fleet_alloc(f, f->ntenants, sizeof(llmgw_tenant_t));

    if (f->tenants == NULL) {
        return -1;
    }

    for (i = 0; i < budgets->n; i++) {
        name = work_name(names, budgets->list[i].name,
                         strlen(budgets->list[i].name));

        if (llmgw_tenant_init(&f->tenants[name->id], budgets->list[i].value)
            != 0)
        {
            fleet_fail(f, "a tenant's budget is not from 0 to 1");
            return -1;
        }
    }

    return 0;
}


int
admit_init(fleet_t *f)
{
    const char               *name = f->config->model_name;
    const fleet_admission_t  *conf = &f->config->admission;

    f->model_name = work_name(&f->work->names, name, strlen(name));

    if (!f->config->flow.is_on) {
        f->rule = conf->rule;
    }

    f->rule.core.bucket = &f->bucket;
    f->rule.core.capacity = (int64_t) f->config->replicas
                            * f->config->model.max_seqs;

    if (llmgw_bucket_init(&f->bucket, conf->bucket_capacity,
                          conf->bucket_rate, 0)
        != 0)
    {
        fleet_fail(f, "a token bucket's capacity and rate are above 0");
        return -1;
    }

    return conf->has_budgets && admit_init_tenants(f) != 0 ? -1
           : fleet_grow(f);
}


/*
 * The tenant of a request; NULL if it has no budget, so that its requests are
 * not counted.
 */
static llmgw_tenant_t *
admit_tenant(fleet_t *f, const work_request_t *w)
{
    uint32_t  id;

    id = w->tenant->id;

    return id != 0 && id < f->ntenants && f->tenants[id].has_budget
           ? &f->tenants[id] : NULL;
}


/* Counts a request, or half of one, that is sent to a replica. */
void
admit_sent(fleet_t *f, const work_request_t *w)
{
    llmgw_tenant_t  *tenant = admit_tenant(f, w);

    if (tenant != NULL) {
        tenant->in_flight++;
    }
}


/*
 * BLIS ends some requests twice (with disaggregation), so the count stops at 0.
 */
void
admit_ended(fleet_t *f, const work_request_t *w)
{
    llmgw_tenant_t  *tenant = admit_tenant(f, w);

    if (tenant != NULL && tenant->in_flight != 0) {
        tenant->in_flight--;
    }
}


int32_t
admit_priority(const fleet_t *f, const work_request_t *w)
{
    return fleet_priority(&f->config->admission.classes, w->slo_class->text,
                          w->slo_class->len);
}


void
admit_arrive(fleet_t *f, uint32_t index)
{
    const work_request_t  *w;

    w = work_at(f->work, index);
    f->result->classes[w->slo_class->id].injected++;
    fleet_outcome(f, index)->status = FLEET_IN_GATEWAY;
    fleet_schedule(f, f->loop.clock_us + f->config->admission.latency_us,
                   FLEET_EVENT_ADMISSION, index, 0);
}


static void
admit_refuse(fleet_t *f, const work_request_t *w, const char *reason)
{
    record_admission(f, w, 0, reason);
    f->result->rejected_admission++;
    fleet_shed(f, w);
    fleet_over(f, fleet_request(f, w->index), FLEET_REJECTED_ADMISSION,
               work_arena_text(&f->memory->texts, reason, strlen(reason)));
}


void
admit_decide(fleet_t *f, uint32_t index)
{
    char                   reason[FLEET_REASON_BYTES];
    fleet_choice_t         choice;
    llmgw_rule_request_t   request;
    const work_request_t  *w;

    w = work_at(f->work, index);
    choice = view_read(f, w, 0);
    request = (llmgw_rule_request_t) {
        .priority = admit_priority(f, w),
        .tokens = w->input_tokens,
        .now_us = f->loop.clock_us,
        .tenant = admit_tenant(f, w)
    };

    if (!fleet_rule_admits(&f->rule, &request, w->slo_class->text,
                           choice.list, choice.n, reason))
    {
        admit_refuse(f, w, reason);

    } else if (f->flow != NULL) {
        queue_enter(f, index);

    } else {
        record_admission(f, w, 1, "");
        fleet_schedule(f, f->loop.clock_us + f->config->routing.latency_us,
                       FLEET_EVENT_ROUTING, index, 0);
    }
}
