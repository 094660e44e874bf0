
/*
 * What the shard calls: each function of shard_core.h's table.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replica/engine/llama/plugin/shard/shard_inner.h"


static int
shard_check(const shard_options_t *o, char error[SHARD_ERROR_BYTES])
{
    if (o->sessions < 1 || o->sessions > SHARD_CORE_SESSIONS_MAX) {
        snprintf(error, SHARD_ERROR_BYTES, "%u sessions, not from 1 to %d",
                 o->sessions, SHARD_CORE_SESSIONS_MAX);
        return -1;
    }

    if (access(o->file, R_OK) != 0) {
        snprintf(error, SHARD_ERROR_BYTES, "cannot open \"%.200s\": %m",
                 o->file);
        return -1;
    }

    return 0;
}


static void
shard_free(shard_core_t *core)
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
shard_init_lock(shard_core_t *core)
{
    pthread_condattr_t  attr;

    pthread_mutex_init(&core->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&core->work, &attr);
    pthread_condattr_destroy(&attr);
}


static shard_core_t *
shard_create(const shard_options_t *options)
{
    uint32_t       i;
    shard_core_t  *core;

    core = calloc(1, sizeof(shard_core_t));

    if (core == NULL) {
        return NULL;
    }

    core->options = *options;
    core->last_event = &core->first_event;
    core->file = strdup(options->file);
    core->cpu = options->cpu != NULL ? strdup(options->cpu) : NULL;
    core->places = calloc(options->sessions, sizeof(place_t));
    shard_init_lock(core);

    if (core->file == NULL || core->places == NULL
        || (options->cpu != NULL && core->cpu == NULL))
    {
        shard_free(core);
        return NULL;
    }

    for (i = 0; i < options->sessions; i++) {
        core->places[i].last = &core->places[i].first;
    }

    return core;
}


static shard_core_t *
shard_open(const shard_options_t *options, char error[SHARD_ERROR_BYTES])
{
    shard_core_t  *core;

    if (shard_check(options, error) != 0) {
        return NULL;
    }

    core = shard_create(options);

    if (core == NULL) {
        snprintf(error, SHARD_ERROR_BYTES, "out of memory");
        return NULL;
    }

    if (pthread_create(&core->thread, NULL, loop_run, core) != 0) {
        snprintf(error, SHARD_ERROR_BYTES, "cannot start a thread: %m");
        shard_free(core);
        return NULL;
    }

    return core;
}


static void
shard_close(shard_core_t *core)
{
    pthread_mutex_lock(&core->lock);
    atomic_store(&core->is_stopping, 1);
    pthread_cond_broadcast(&core->work);
    pthread_mutex_unlock(&core->lock);

    pthread_join(core->thread, NULL);
    shard_free(core);
}


static shard_state_t
shard_state(shard_core_t *core, shard_facts_t *facts)
{
    shard_state_t  state;

    pthread_mutex_lock(&core->lock);
    state = core->state;
    *facts = core->told;
    pthread_mutex_unlock(&core->lock);

    return state;
}


static void
shard_load(shard_core_t *core, shard_load_t *load)
{
    pthread_mutex_lock(&core->lock);
    *load = core->load;
    pthread_mutex_unlock(&core->lock);
}


/* From one state to another, if it is in the one and has no sessions. */
static int
shard_go(shard_core_t *core, shard_state_t from, shard_state_t to)
{
    int  rc;

    rc = -1;

    pthread_mutex_lock(&core->lock);

    if (core->state == from && core->load.sessions == 0) {
        core->state = to;
        pthread_cond_signal(&core->work);
        rc = 0;
    }

    pthread_mutex_unlock(&core->lock);

    return rc;
}


static int
shard_wake(shard_core_t *core)
{
    return shard_go(core, SHARD_CORE_ASLEEP, SHARD_CORE_LOADING);
}


static int
shard_sleep(shard_core_t *core)
{
    return shard_go(core, SHARD_CORE_READY, SHARD_CORE_ASLEEP);
}


/* Under the lock: the lowest one, so that places in use have few gaps. */
static place_t *
shard_free_place(shard_core_t *core)
{
    uint32_t  i;

    for (i = 0; i < core->options.sessions; i++) {
        if (!core->places[i].is_used) {
            return &core->places[i];
        }
    }

    return NULL;
}


static int
shard_begin(shard_core_t *core, uint32_t last_layer)
{
    int       rc;
    place_t  *place;

    rc = -1;

    pthread_mutex_lock(&core->lock);

    if (core->state == SHARD_CORE_READY && last_layer >= core->told.first_layer
        && last_layer <= core->told.last_layer
        && (place = shard_free_place(core)) != NULL)
    {
        place->is_used = 1;
        place->session++;
        place->last_layer = last_layer - core->told.first_layer;
        place->next = 0;
        place->status = SHARD_STEP_DONE;
        core->load.sessions++;
        rc = (int) (place - core->places);
    }

    pthread_mutex_unlock(&core->lock);

    return rc;
}


static void
shard_end(shard_core_t *core, uint32_t index)
{
    place_t  *place;

    pthread_mutex_lock(&core->lock);

    if (index < core->options.sessions && core->places[index].is_used) {
        place = &core->places[index];
        queue_cancel(core, place);
        place->is_used = 0;
        place->is_stale = 1;
        place->session++;
        core->load.sessions--;
        pthread_cond_signal(&core->work);
    }

    pthread_mutex_unlock(&core->lock);
}


static void
shard_submit(shard_core_t *core, shard_step_t *step)
{
    memset(&step->own, 0, sizeof(step->own));
    step->took_ns = 0;
    step->out_rows = 0;
    step->is_logits = 0;

    pthread_mutex_lock(&core->lock);

    if (step->place < core->options.sessions
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
shard_take(shard_core_t *core, shard_event_t *event)
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
