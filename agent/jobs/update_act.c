
/*
 * Carries out a rolling update's actions, by orders, commands and probes, and
 * returns each result to it.
 */

#include <stdio.h>
#include <string.h>

#include "jobs/update.h"
#include "swim/order/drain.h"


/* Each action ends by this call, or is put back. */
static void
update_result(update_task_t *task, rollout_action_t action, const char *error)
{
    rollout_result(task->update->rollout, task->step, action, error,
                   jobs_now_us(task->update->jobs));
    task->update->is_due = 1;
}


/* --- orders */

static order_verb_t
update_verb(rollout_action_t action)
{
    switch (action) {
    case ROLLOUT_UNDRAIN:
        return ORDER_UNDRAIN;
    case ROLLOUT_SWITCH:
        return ORDER_SWITCH;
    case ROLLOUT_RESTART:
        return ORDER_RESTART;
    default:
        return ORDER_DRAIN;     /* DRAIN, RENEW */
    }
}


/* Gives an order; order->id is set. */
static order_rc_t
update_give(const update_task_t *task, rollout_action_t action,
    order_t *order)
{
    const rollout_t       *rollout;
    const rollout_step_t  *step;

    rollout = task->update->rollout;
    step = &rollout->steps[task->step];

    memset(order, 0, sizeof(order_t));
    order->verb = update_verb(action);
    strcpy(order->target_id, step->id);
    strcpy(order->owner, rollout->owner);

    if (order->verb == ORDER_RESTART) {
        strcpy(order->version, rollout->to);

    } else if (order->verb == ORDER_SWITCH) {
        strcpy(order->group, step->group);
        order->group_epoch = step->group_epoch;
    }

    return node_order(task->update->jobs->node, order);
}


/*
 * A lease ends when its agent restarts: then an UNDRAIN has nothing left to do,
 * and a DRAIN is ordered again when the step sees the new epoch.  A SWITCH is
 * given again to the new epoch, and to a target that does not know the standby
 * yet; if its target is no longer active, the standby takes over without the
 * order.
 */
static void
update_ordered(update_task_t *task, rollout_action_t action, order_rc_t rc)
{
    int  is_done;

    is_done = rc == ORDER_DONE;

    if (action == ROLLOUT_SWITCH) {

        if (rc == ORDER_ERESTARTED || rc == ORDER_ENOSTANDBY) {
            rollout_put_back(task->update->rollout, task->step, action);
            return;
        }

        is_done |= rc == ORDER_ENOTACTIVE;

    } else if (action != ROLLOUT_RESTART) {
        is_done |= rc == ORDER_ERESTARTED;
    }

    update_result(task, action, is_done ? NULL : order_rc_text(rc));
}


/* Gives an order.  -1: not now, since too many orders are under way. */
static int
update_order(update_task_t *task, rollout_action_t action)
{
    order_t     order;
    order_rc_t  rc;

    rc = update_give(task, action, &order);

    switch (rc) {
    case ORDER_PENDING:
        *(action == ROLLOUT_RENEW ? &task->renewal_id : &task->order_id)
            = order.id;
        return 0;

    case ORDER_EMANY:
        rollout_put_back(task->update->rollout, task->step, action);
        return -1;

    default:
        update_ordered(task, action, rc);
        return 0;
    }
}


int
update_settle(update_t *update, uint64_t order_id, order_rc_t rc)
{
    size_t          i;
    update_task_t  *task;

    for (i = 0; i < update->rollout->nsteps; i++) {
        task = &update->tasks[i];

        if (task->order_id == order_id) {
            task->order_id = 0;
            update_ordered(task, update->rollout->steps[i].doing, rc);
            return 1;
        }

        if (task->renewal_id == order_id) {
            task->renewal_id = 0;
            update_ordered(task, ROLLOUT_RENEW, rc);
            return 1;
        }
    }

    return 0;
}


/* --- commands and probes */

/* A command or a probe has ended. */
static void
update_ended(void *data, const char *error)
{
    update_task_t  *task = data;

    task->runner = NULL;
    task->trial = NULL;
    update_result(task, task->update->rollout->steps[task->step].doing, error);
}


static const char *
update_grpc(const update_t *update, const char *id)
{
    llmgw_roster_t         roster;
    const llmgw_member_t  *member;

    roster = jobs_roster(update->jobs);
    member = llmgw_roster_find(&roster, id);

    return member ? member->grpc : "";
}


static void
update_run(update_task_t *task, const char *command)
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
             update_grpc(task->update, member));

    spec.command = command;
    spec.env = env;
    spec.timeout_ms = rollout->rejoin_timeout_us / 1000;

    task->runner = runner_start(task->update->jobs->loop, &spec, update_ended,
                                task, error);
    if (task->runner == NULL) {
        update_ended(task, error);
    }
}


static void
update_probe(update_task_t *task)
{
    char                  error[TRIAL_ERROR_BYTES];
    update_t             *update;
    const char           *member;
    grpc_conn_options_t   options;

    update = task->update;
    member = rollout_probed(&update->rollout->steps[task->step]);
    options = *update->jobs->conn;
    options.names = member;
    task->trial = trial_start(update->jobs->loop, update_grpc(update, member),
                              &options, update->id,
                              update->rollout->rejoin_timeout_us / 1000,
                              update_ended, task, error);
    if (task->trial == NULL) {
        update_ended(task, error);
    }
}


/* --- all actions */

/* Begins an action.  -1: not possible now. */
static int
update_do(update_task_t *task, rollout_action_t action)
{
    switch (action) {
    case ROLLOUT_STOP:
        update_run(task, task->update->stop);
        return 0;
    case ROLLOUT_START:
        update_run(task, task->update->start);
        return 0;
    case ROLLOUT_PROBE:
        update_probe(task);
        return 0;
    default:
        return update_order(task, action);
    }
}


/* An action that is not possible now is tried again at the next tick. */
void
update_act(update_t *update)
{
    size_t            i;
    rollout_action_t  action;

    do {
        action = rollout_next(update->rollout, &i, jobs_now_us(update->jobs));
    } while (action != ROLLOUT_NOTHING
             && update_do(&update->tasks[i], action) == 0);
}


void
update_forget(update_t *update)
{
    size_t          i;
    update_task_t  *task;

    for (i = 0; i < update->rollout->nsteps; i++) {
        task = &update->tasks[i];
        node_forget_order(update->jobs->node, task->order_id);
        node_forget_order(update->jobs->node, task->renewal_id);

        if (task->runner != NULL) {
            runner_destroy(task->runner);
        }

        if (task->trial != NULL) {
            trial_destroy(task->trial);
        }

        *task = (update_task_t) { .update = update, .step = i };
    }
}
