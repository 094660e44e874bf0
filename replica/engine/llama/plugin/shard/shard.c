
/*
 * What the shard calls: each function of shard_core.h's table.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replica/engine/llama/plugin/shard/shard_inner.h"


static int
shard_check(const core_options_t *o, char error[CORE_ERROR_BYTES])
{
    if (o->sequences < 1 || o->sequences > CORE_SEQUENCES_MAX) {
        snprintf(error, CORE_ERROR_BYTES, "%u sessions, not from 1 to %d",
                 o->sequences, CORE_SEQUENCES_MAX);
        return -1;
    }

    if (access(o->file, R_OK) != 0) {
        snprintf(error, CORE_ERROR_BYTES, "cannot open \"%.200s\": %m",
                 o->file);
        return -1;
    }

    return 0;
}


static void
shard_free(core_t *core)
{
    pthread_mutex_destroy(&core->lock);
    pthread_cond_destroy(&core->work);
    free(core->places);
    free(core->file);
    free(core->cpu);
    free(core);
}


/* Times are of the clock that is never set. */
static void
shard_init_lock(core_t *core)
{
    pthread_condattr_t  attr;

    pthread_mutex_init(&core->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&core->work, &attr);
    pthread_condattr_destroy(&attr);
}


static core_t *
shard_create(const core_options_t *options)
{
    uint32_t  i;
    core_t   *core;

    core = calloc(1, sizeof(core_t));

    if (core == NULL) {
        return NULL;
    }

    core->options = *options;
    core->last_event = &core->first_event;
    core->file = strdup(options->file);
    core->cpu = options->cpu != NULL ? strdup(options->cpu) : NULL;
    core->places = calloc(options->sequences, sizeof(place_t));
    shard_init_lock(core);

    if (core->file == NULL || core->places == NULL
        || (options->cpu != NULL && core->cpu == NULL))
    {
        shard_free(core);
        return NULL;
    }

    for (i = 0; i < options->sequences; i++) {
        core->places[i].last = &core->places[i].first;
    }

    return core;
}


static core_t *
shard_open(const core_options_t *options, char error[CORE_ERROR_BYTES])
{
    core_t  *core;

    if (shard_check(options, error) != 0) {
        return NULL;
    }

    core = shard_create(options);

    if (core == NULL) {
        snprintf(error, CORE_ERROR_BYTES, "out of memory");
        return NULL;
    }

    if (pthread_create(&core->thread, NULL, loop_run, core) != 0) {
        snprintf(error, CORE_ERROR_BYTES, "cannot start a thread: %m");
        shard_free(core);
        return NULL;
    }

    return core;
}


static void
shard_close(core_t *core)
{
    pthread_mutex_lock(&core->lock);
    atomic_store(&core->is_stopping, 1);
    pthread_cond_broadcast(&core->work);
    pthread_mutex_unlock(&core->lock);

    pthread_join(core->thread, NULL);
    shard_free(core);
}


static core_state_t
shard_state(core_t *core, core_facts_t *facts)
{
    core_state_t  state;

    pthread_mutex_lock(&core->lock);
    state = core->state;
    *facts = core->told;
    pthread_mutex_unlock(&core->lock);

    return state;
}


static void
shard_load(core_t *core, core_load_t *load)
{
    pthread_mutex_lock(&core->lock);
    *load = core->load;
    pthread_mutex_unlock(&core->lock);
}


/* From one state to another, if it is in the one and has no sessions. */
static int
shard_go(core_t *core, core_state_t from, core_state_t to)
{
    int  rc;

    rc = -1;

    pthread_mutex_lock(&core->lock);

    if (core->state == from && core->load.running == 0) {
        core->state = to;
        pthread_cond_signal(&core->work);
        rc = 0;
    }

    pthread_mutex_unlock(&core->lock);

    return rc;
}


static int
shard_wake(core_t *core)
{
    return shard_go(core, CORE_ASLEEP, CORE_LOADING);
}


static int
shard_sleep(core_t *core)
{
    return shard_go(core, CORE_READY, CORE_ASLEEP);
}


/* Under the lock: the lowest one, so that places in use have few gaps. */
static place_t *
shard_free_place(core_t *core)
{
    uint32_t  i;

    for (i = 0; i < core->options.sequences; i++) {
        if (!core->places[i].is_used) {
            return &core->places[i];
        }
    }

    return NULL;
}


static int
shard_begin(core_t *core, uint32_t last_layer)
{
    int       rc;
    place_t  *place;

    rc = -1;

    pthread_mutex_lock(&core->lock);

    if (core->state == CORE_READY && last_layer >= core->told.first_layer
        && last_layer <= core->told.last_layer
        && (place = shard_free_place(core)) != NULL)
    {
        place->is_used = 1;
        place->session++;
        place->last_layer = last_layer - core->told.first_layer;
        place->next = 0;
        place->status = SHARD_STEP_DONE;
        core->load.running++;
        rc = (int) (place - core->places);
    }

    pthread_mutex_unlock(&core->lock);

    return rc;
}


static void
shard_end(core_t *core, uint32_t index)
{
    place_t  *place;

    pthread_mutex_lock(&core->lock);

    if (index < core->options.sequences && core->places[index].is_used) {
        place = &core->places[index];
        queue_cancel(core, place);
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
    memset(&step->own, 0, sizeof(step->own));
    step->took_ns = 0;
    step->out_rows = 0;
    step->is_logits = 0;

    pthread_mutex_lock(&core->lock);

    if (step->place < core->options.sequences
        && core->places[step->place].is_used)
    {
        queue_add(core, step);

    } else {
        core->load.waiting++;
        queue_done(core, step, SHARD_STEP_BAD_SHAPE);
    }

    pthread_cond_signal(&core->work);
    pthread_mutex_unlock(&core->lock);
}


static int
shard_take(core_t *core, shard_event_t *event)
{
    int  rc;

    pthread_mutex_lock(&core->lock);
    rc = queue_take(core, event);
    pthread_mutex_unlock(&core->lock);

    return rc;
}


static const shard_plugin_t  shard_table = {
    .abi = SHARD_ABI,
    .open = shard_open,
    .close = shard_close,
    .state = shard_state,
    .load = shard_load,
    .wake = shard_wake,
    .sleep = shard_sleep,
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
