
/* Orders, commands and probes of a rolling update, each with its result. */

#include <stdio.h>
#include <string.h>

#include "jobs/update.h"
#include "swim/order/drain.h"


/* Every action ends here. */
static void
update_task_result(update_task_t *task, const char *error)
{
    rollout_result(task->update->rollout, task->step, error,
                   jobs_now_us(task->update->jobs));
    task->update->is_due = 1;
}


/* --- orders */

/* order->id is filled in. */
static order_rc_t
update_task_give(update_task_t *task, order_verb_t verb, order_t *order)
{
    rollout_t  *rollout;

    rollout = task->update->rollout;

    memset(order, 0, sizeof(order_t));
    order->verb = verb;
    strcpy(order->target_id, rollout->steps[task->step].id);
    strcpy(order->owner, rollout->owner);

    if (verb == ORDER_RESTART) {
        strcpy(order->version, rollout->to);
    }

    if (verb == ORDER_SWITCH) {
        strcpy(order->group, rollout->steps[task->step].group);
        order->group_epoch = rollout->steps[task->step].group_epoch;
    }

    return node_order(task->update->jobs->node, order);
}


/*
 * A lease ends when its agent restarts: then an UNDRAIN has nothing left to
 * do, and a DRAIN is ordered again when the step sees the new epoch.  A SWITCH
 * is given again to the new epoch, and to one that has not heard yet of the
 * standby; where its target is not active any more, that takes over without it.
 */
static void
update_task_ordered(update_task_t *task, order_rc_t rc)
{
    const rollout_step_t  *step;

    step = &task->update->rollout->steps[task->step];

    if (step->doing == ROLLOUT_SWITCH
        && (rc == ORDER_ERESTARTED || rc == ORDER_ENOSTANDBY))
    {
        rollout_put_back(task->update->rollout, task->step);
        return;
    }

    if (step->doing == ROLLOUT_SWITCH && rc == ORDER_ENOTACTIVE) {
        rc = ORDER_DONE;
    }

    if (rc == ORDER_ERESTARTED && (step->doing == ROLLOUT_UNDRAIN
                                   || step->doing == ROLLOUT_DRAIN))
    {
        rc = ORDER_DONE;
    }

    update_task_result(task, rc == ORDER_DONE ? NULL : order_rc_text(rc));
}


/* -1: not now, too many orders are under way. */
static int
update_task_order(update_task_t *task, order_verb_t verb)
{
    order_t     order;
    order_rc_t  rc;

    rc = update_task_give(task, verb, &order);

    switch (rc) {
    case ORDER_PENDING:
        task->order_id = order.id;
        return 0;

    case ORDER_EMANY:
        rollout_put_back(task->update->rollout, task->step);
        return -1;

    default:
        update_task_ordered(task, rc);
        return 0;
    }
}


/* -1: likewise. */
static int
update_task_renew(update_task_t *task)
{
    order_t     order;
    rollout_t  *rollout;

    rollout = task->update->rollout;

    switch (update_task_give(task, ORDER_DRAIN, &order)) {
    case ORDER_PENDING:
        task->renewal_id = order.id;
        return 0;

    case ORDER_EMANY:
        rollout_put_back_renewal(rollout, task->step,
                                 jobs_now_us(task->update->jobs));
        return -1;

    default:
        rollout_renewed(rollout, task->step);
        return 0;
    }
}


int
update_settle(update_t *update, uint64_t order_id, order_rc_t rc)
{
    size_t         i;
    update_task_t  *task;

    for (i = 0; i < update->rollout->nsteps; i++) {
        task = &update->tasks[i];

        if (task->order_id == order_id) {
            task->order_id = 0;
            update_task_ordered(task, rc);
            return 1;
        }

        if (task->renewal_id == order_id) {
            task->renewal_id = 0;
            rollout_renewed(update->rollout, i);
            update->is_due = 1;
            return 1;
        }
    }

    return 0;
}


/* --- commands */

static void
update_task_ran(void *data, const char *error)
{
    update_task_t  *task = data;

    task->runner = NULL;
    update_task_result(task, error);
}


static const char *
update_task_grpc(const update_task_t *task, const char *id)
{
    llmgw_roster_t         roster;
    const llmgw_member_t  *member;

    roster = jobs_roster(task->update->jobs);
    member = llmgw_roster_find(&roster, id);

    return member ? member->grpc : "";
}


static void
update_task_run(update_task_t *task, const char *command)
{
    char             error[RUNNER_ERROR_BYTES];
    char             id[sizeof("LLMGW_ID=") + LLMGW_MEMBERS_NAME_BYTES];
    char             version[sizeof("LLMGW_VERSION=")
                             + LLMGW_MEMBERS_NAME_BYTES];
    char             grpc[sizeof("LLMGW_GRPC=")
                          + LLMGW_MEMBERS_ADDRESS_BYTES];
    rollout_t       *rollout;
    runner_spec_t    spec;
    const char      *member;
    const char      *env[4] = { id, version, grpc, NULL };

    rollout = task->update->rollout;
    member = rollout->steps[task->step].id;
    snprintf(id, sizeof(id), "LLMGW_ID=%s", member);
    snprintf(version, sizeof(version), "LLMGW_VERSION=%s", rollout->to);
    snprintf(grpc, sizeof(grpc), "LLMGW_GRPC=%s",
             update_task_grpc(task, member));

    spec.command = command;
    spec.env = env;
    spec.timeout_ms = rollout->rejoin_timeout_us / 1000;

    task->runner = runner_start(task->update->jobs->loop, &spec,
                                update_task_ran, task, error);
    if (task->runner == NULL) {
        update_task_result(task, error);
    }
}


/* --- the probe */

static void
update_task_tried(void *data, const char *error)
{
    update_task_t  *task = data;

    task->trial = NULL;
    update_task_result(task, error);
}


static void
update_task_try(update_task_t *task)
{
    char                  error[TRIAL_ERROR_BYTES];
    const char           *member;
    update_t       *update;
    grpc_conn_options_t   options;

    update = task->update;
    member = rollout_probed(&update->rollout->steps[task->step]);
    options = *update->jobs->conn;
    options.names = member;
    task->trial = trial_start(update->jobs->loop,
                              update_task_grpc(task, member), &options,
                              update->id,
                              update->rollout->rejoin_timeout_us / 1000,
                              update_task_tried, task, error);
    if (task->trial == NULL) {
        update_task_result(task, error);
    }
}


/* --- all of them */

/* -1: not now. */
static int
update_task_do(update_task_t *task, rollout_action_t action)
{
    switch (action) {
    case ROLLOUT_DRAIN:
        return update_task_order(task, ORDER_DRAIN);
    case ROLLOUT_UNDRAIN:
        return update_task_order(task, ORDER_UNDRAIN);
    case ROLLOUT_SWITCH:
        return update_task_order(task, ORDER_SWITCH);
    case ROLLOUT_RESTART:
        return update_task_order(task, ORDER_RESTART);
    case ROLLOUT_STOP:
        update_task_run(task, task->update->stop);
        break;
    case ROLLOUT_START:
        update_task_run(task, task->update->start);
        break;
    case ROLLOUT_PROBE:
        update_task_try(task);
        break;
    case ROLLOUT_NOTHING:
        break;
    }

    return 0;
}


/* What does not fit now is tried again at the next tick. */
void
update_act(update_t *update)
{
    size_t            i;
    rollout_action_t  action;

    while (rollout_renew(update->rollout, &i,
                         jobs_now_us(update->jobs)))
    {
        if (update_task_renew(&update->tasks[i]) != 0) {
            return;
        }
    }

    for ( ;; ) {
        action = rollout_next(update->rollout, &i);

        if (action == ROLLOUT_NOTHING
            || update_task_do(&update->tasks[i], action) != 0)
        {
            return;
        }
    }
}


void
update_forget(update_t *update)
{
    size_t         i;
    update_task_t  *task;

    for (i = 0; i < update->rollout->nsteps; i++) {
        task = &update->tasks[i];

        if (task->order_id != 0) {
            node_forget_order(update->jobs->node, task->order_id);
        }

        if (task->renewal_id != 0) {
            node_forget_order(update->jobs->node, task->renewal_id);
        }

        if (task->runner != NULL) {
            runner_destroy(task->runner);
        }

        if (task->trial != NULL) {
            trial_destroy(task->trial);
        }

        task->order_id = 0;
        task->renewal_id = 0;
        task->runner = NULL;
        task->trial = NULL;
    }
}
