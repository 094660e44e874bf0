
/*
 * What the shard calls: the table of shard_core.h, and what its core does in
 * each state.
 */

#include <stdlib.h>
#include <string.h>

#include "replica/engine/llama/plugin/shard/shard_inner.h"


static int
shard_init(core_t *core)
{
    uint32_t  i;
    shard_t  *s;

    s = shard_of(core);
    s->last_event = &s->first_event;
    s->places = calloc(core->options.sequences, sizeof(place_t));

    for (i = 0; s->places != NULL && i < core->options.sequences; i++) {
        s->places[i].last = &s->places[i].first;
    }

    return s->places != NULL ? 0 : -1;
}


static int
shard_has_work(core_t *core)
{
    uint32_t  i;
    shard_t  *s;

    s = shard_of(core);

    for (i = 0; i < core->options.sequences; i++) {
        if (s->places[i].first != NULL || s->places[i].is_stale) {
            return 1;
        }
    }

    return s->has_news;
}


static void
shard_work(core_t *core)
{
    shard_t  *s;

    s = shard_of(core);

    /* For steps that ended without a call: refused, or cancelled. */

    queue_notify(s);
    turn_run(s);
}


static void
shard_done(core_t *core)
{
    shard_t  *s;

    s = shard_of(core);
    slice_done(s);
    free(s->places);
}


static const core_ops_t  shard_ops = {
    .bytes = sizeof(shard_t),
    .sequences = "sessions",
    .init = shard_init,
    .start = slice_start,
    .load = slice_load,
    .has_work = shard_has_work,
    .work = shard_work,
    .done = shard_done
};


static core_t *
shard_open(const core_options_t *options, char error[CORE_ERROR_BYTES])
{
    return thread_open(&shard_ops, options, error);
}


static int
shard_wake(core_t *core)
{
    int  rc;

    pthread_mutex_lock(&core->lock);
    rc = thread_wake(core);
    pthread_mutex_unlock(&core->lock);

    return rc;
}


/* Under the lock: the lowest free place, so that places in use have few
   gaps. */
static place_t *
shard_free_place(shard_t *s)
{
    uint32_t  i;

    for (i = 0; i < s->core.options.sequences; i++) {
        if (!s->places[i].is_used) {
            return &s->places[i];
        }
    }

    return NULL;
}


static int
shard_begin(core_t *core, uint32_t last_layer)
{
    int        rc;
    place_t   *place;
    shard_t   *s;
    uint32_t   first;

    rc = -1;
    s = shard_of(core);

    pthread_mutex_lock(&core->lock);

    first = core->published.first_layer;

    if (core->state == CORE_READY && last_layer >= first
        && last_layer <= core->published.last_layer
        && (place = shard_free_place(s)) != NULL)
    {
        place->is_used = 1;
        place->session++;
        place->last_layer = last_layer - first;
        place->next = 0;
        place->status = SHARD_STEP_DONE;
        core->load.running++;
        rc = (int) (place - s->places);
    }

    pthread_mutex_unlock(&core->lock);

    return rc;
}


static void
shard_end(core_t *core, uint32_t index)
{
    place_t  *place;
    shard_t  *s;

    s = shard_of(core);

    pthread_mutex_lock(&core->lock);

    if (index < core->options.sequences && s->places[index].is_used) {
        place = &s->places[index];
        queue_cancel(s, place);
        place->is_used = 0;
        place->is_stale = 1;
        place->session++;
        core->load.running--;
        pthread_cond_signal(&core->work);
    }

    pthread_mutex_unlock(&core->lock);
}


static void
shard_submit(core_t *core, shard_step_t *step)
{
    shard_t  *s;

    s = shard_of(core);
    memset(&step->own, 0, sizeof(step->own));
    step->took_ns = 0;
    step->out_rows = 0;
    step->is_logits = 0;

    pthread_mutex_lock(&core->lock);

    if (step->place < core->options.sequences
        && s->places[step->place].is_used)
    {
        queue_add(s, step);

    } else {
        core->load.waiting++;
        queue_done(s, step, SHARD_STEP_BAD_SHAPE);
    }

    pthread_cond_signal(&core->work);
    pthread_mutex_unlock(&core->lock);
}


static int
shard_take(core_t *core, shard_event_t *event)
{
    int  rc;

    pthread_mutex_lock(&core->lock);
    rc = queue_take(shard_of(core), event);
    pthread_mutex_unlock(&core->lock);

    return rc;
}


static const shard_plugin_t  shard_table = {
    .abi = SHARD_ABI,
    .open = shard_open,
    .close = thread_close,
    .state = thread_state,
    .load = thread_load,
    .wake = shard_wake,
    .sleep = thread_sleep,
    .begin = shard_begin,
    .end = shard_end,
    .submit = shard_submit,
    .take = shard_take
};


__attribute__((visibility("default")))
const shard_plugin_t *
llmgw_shard_llama(void)
{
    return &shard_table;
}
