
/*
 * The list of events.  A step is in it once, even if it has two events: take()
 * reports that it started, then, perhaps at once, that it is done.
 */

#include "replica/engine/llama/plugin/shard/shard_inner.h"


void
queue_event(shard_t *s, shard_step_t *step)
{
    s->has_news = 1;

    if (step->own.is_listed) {
        return;
    }

    step->own.is_listed = 1;
    step->own.next_event = NULL;
    *s->last_event = step;
    s->last_event = &step->own.next_event;
}


static void
queue_unlist(shard_t *s, shard_step_t *step)
{
    s->first_event = step->own.next_event;
    step->own.is_listed = 0;

    if (s->first_event == NULL) {
        s->last_event = &s->first_event;
    }
}


int
queue_take(shard_t *s, shard_event_t *event)
{
    shard_step_t  *step;

    step = s->first_event;

    if (step == NULL) {
        return -1;
    }

    event->step = step;

    if (step->own.is_started && !step->own.is_reported) {
        event->kind = SHARD_EVENT_STARTED;
        step->own.is_reported = 1;

        if (!step->own.is_done) {
            queue_unlist(s, step);
        }

        return 0;
    }

    event->kind = SHARD_EVENT_DONE;
    queue_unlist(s, step);

    return 0;
}


void
queue_add(shard_t *s, shard_step_t *step)
{
    place_t  *place;

    place = &s->places[step->place];
    step->own.session = place->session;
    *place->last = step;
    place->last = &step->own.next;
    s->core.load.waiting++;
}


void
queue_done(shard_t *s, shard_step_t *step, shard_status_t status)
{
    if (!step->own.is_started) {
        s->core.load.waiting--;
    }

    step->status = status;
    step->own.is_done = 1;
    s->core.load.steps++;
    queue_event(s, step);
}


void
queue_pop(shard_t *s, shard_step_t *step, shard_status_t status)
{
    place_t  *place;

    place = &s->places[step->place];
    place->first = step->own.next;

    if (place->first == NULL) {
        place->last = &place->first;
    }

    if (status != SHARD_STEP_DONE) {
        place->status = status;
    }

    queue_done(s, step, status);
}


void
queue_cancel(shard_t *s, place_t *place)
{
    shard_step_t  *step, *next;

    for (step = place->first; step != NULL; step = next) {
        next = step->own.next;

        if (!step->own.is_running) {
            queue_done(s, step, SHARD_STEP_CANCELLED);
        }
    }

    place->first = NULL;
    place->last = &place->first;
}


void
queue_notify(shard_t *s)
{
    int  has_news;

    pthread_mutex_lock(&s->core.lock);
    has_news = s->has_news;
    s->has_news = 0;
    pthread_mutex_unlock(&s->core.lock);

    if (has_news) {
        s->core.options.notify(s->core.options.data);
    }
}
