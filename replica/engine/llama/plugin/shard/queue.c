
/*
 * Steps on their way back.  A step stands in the list of events once, however
 * much there is to tell of it: take() tells that it started, then, perhaps at
 * once, that it is done.
 */

#include "replica/engine/llama/plugin/shard/shard_inner.h"


void
queue_event(core_t *core, shard_step_t *step)
{
    core->has_news = 1;

    if (step->own.is_listed) {
        return;
    }

    step->own.is_listed = 1;
    step->own.next_event = NULL;
    *core->last_event = step;
    core->last_event = &step->own.next_event;
}


static void
queue_unlist(core_t *core, shard_step_t *step)
{
    core->first_event = step->own.next_event;
    step->own.is_listed = 0;

    if (core->first_event == NULL) {
        core->last_event = &core->first_event;
    }
}


int
queue_take(core_t *core, shard_event_t *event)
{
    shard_step_t  *step;

    step = core->first_event;

    if (step == NULL) {
        return -1;
    }

    event->step = step;

    if (step->own.is_started && !step->own.is_told) {
        event->kind = SHARD_EVENT_STARTED;
        step->own.is_told = 1;

        if (!step->own.is_done) {
            queue_unlist(core, step);
        }

        return 0;
    }

    event->kind = SHARD_EVENT_DONE;
    queue_unlist(core, step);

    return 0;
}


void
queue_add(core_t *core, shard_step_t *step)
{
    place_t  *place;

    place = &core->places[step->place];
    step->own.session = place->session;
    *place->last = step;
    place->last = &step->own.next;
    core->load.waiting++;
}


void
queue_done(core_t *core, shard_step_t *step, shard_status_t status)
{
    if (!step->own.is_started) {
        core->load.waiting--;
    }

    step->status = status;
    step->own.is_done = 1;
    core->load.steps++;
    queue_event(core, step);
}


void
queue_pop(core_t *core, shard_step_t *step, shard_status_t status)
{
    place_t  *place;

    place = &core->places[step->place];
    place->first = step->own.next;

    if (place->first == NULL) {
        place->last = &place->first;
    }

    if (status != SHARD_STEP_DONE) {
        place->status = status;
    }

    queue_done(core, step, status);
}


void
queue_cancel(core_t *core, place_t *place)
{
    shard_step_t  *step, *next;

    for (step = place->first; step != NULL; step = next) {
        next = step->own.next;

        if (!step->own.is_running) {
            queue_done(core, step, SHARD_STEP_CANCELLED);
        }
    }

    place->first = NULL;
    place->last = &place->first;
}


void
queue_notify(core_t *core)
{
    int  has_news;

    pthread_mutex_lock(&core->lock);
    has_news = core->has_news;
    core->has_news = 0;
    pthread_mutex_unlock(&core->lock);

    if (has_news) {
        core->options.notify(core->options.data);
    }
}
