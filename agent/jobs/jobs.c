
#include "jobs/job.h"
#include "jobs/update.h"


/* The precision of jobs' timeouts. */
#define JOBS_TICK_S  0.1


const command_jobs_t  jobs_commands = {
    .on_drain = job_drain,
    .on_undrain = job_undrain,
    .on_switch = switch_begin,
    .on_update = update_start,
    .on_abort = update_abort,
    .on_show_update = update_status
};


/* The timer only wakes the loop. */
static void
jobs_tick(struct ev_loop *loop, ev_timer *tick, int events)
{
    jobs_changed(tick->data);
}


void
jobs_init(jobs_t *jobs)
{
    ev_init(&jobs->tick, jobs_tick);
    jobs->tick.repeat = JOBS_TICK_S;
    jobs->tick.data = jobs;
}


void
jobs_wake(jobs_t *jobs)
{
    if (!ev_is_active(&jobs->tick)) {
        ev_timer_again(jobs->loop, &jobs->tick);
    }
}


void
jobs_done(jobs_t *jobs)
{
    ev_timer_stop(jobs->loop, &jobs->tick);

    if (jobs->update != NULL) {
        update_destroy(jobs->update);
        jobs->update = NULL;
    }
}


void
jobs_changed(jobs_t *jobs)
{
    if (jobs->update != NULL) {
        jobs->update->is_due = 1;
    }
}


void
jobs_look(jobs_t *jobs)
{
    job_t  *job, *next;

    for (job = jobs->list; job != NULL; job = next) {
        next = job->next;
        job_look(job);
    }

    if (jobs_is_updating(jobs) && jobs->update->is_due) {
        update_proceed(jobs->update);
    }

    if (jobs->list == NULL && !jobs_is_updating(jobs)) {
        ev_timer_stop(jobs->loop, &jobs->tick);
    }
}


/* The id of an order is known to the update or the job that gave it. */
void
jobs_ordered(jobs_t *jobs, uint64_t order_id, order_rc_t rc)
{
    job_t  *job;

    if (jobs_is_updating(jobs) && update_settle(jobs->update, order_id, rc)) {
        return;
    }

    for (job = jobs->list; job != NULL; job = job->next) {
        if (job->order_id == order_id) {
            job_settle(job, rc);
            return;
        }
    }
}


void
jobs_leave(jobs_t *jobs)
{
    jobs->is_leaving = 1;

    if (jobs_is_updating(jobs)) {
        update_stop(jobs->update);
    }
}


int
jobs_is_updating(const jobs_t *jobs)
{
    return jobs->update != NULL && jobs->update->is_running;
}


uint64_t
jobs_now_us(const jobs_t *jobs)
{
    return clock_mono_us(jobs->clock);
}


json_int_t
jobs_wall_ms(const jobs_t *jobs)
{
    return (json_int_t) (clock_wall_us(jobs->clock) / 1000);
}


llmgw_roster_t
jobs_roster(const jobs_t *jobs)
{
    return publish_roster(jobs->publish);
}


const table_t *
jobs_table(const jobs_t *jobs)
{
    return swim_table(node_swim(jobs->node));
}


member_t *
jobs_member(const jobs_t *jobs, const char *id)
{
    return table_find(jobs_table(jobs), id);
}
