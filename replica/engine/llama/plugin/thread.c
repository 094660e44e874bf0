
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replica/engine/llama/plugin/load.h"
#include "replica/engine/llama/plugin/thread.h"


/* --- the core's thread */

static void
thread_become(core_t *core, core_state_t state)
{
    pthread_mutex_lock(&core->lock);
    core->state = state;
    core->published = core->facts;
    pthread_mutex_unlock(&core->lock);

    core->options.notify(core->options.data);
}


/* Waits until the core is in this state; -1: it is closing. */
static int
thread_await(core_t *core, core_state_t state)
{
    pthread_mutex_lock(&core->lock);

    while (core->state != state && !atomic_load(&core->is_stopping)) {
        pthread_cond_wait(&core->work, &core->lock);
    }

    pthread_mutex_unlock(&core->lock);

    return atomic_load(&core->is_stopping) ? -1 : 0;
}


/* Waits until there is work; -1: the core is closing, or is to sleep and has
   none. */
static int
thread_await_work(core_t *core)
{
    int  has_work;

    pthread_mutex_lock(&core->lock);

    for ( ;; ) {
        has_work = core->ops->has_work(core);

        if (has_work || core->state != CORE_READY
            || atomic_load(&core->is_stopping))
        {
            break;
        }

        pthread_cond_wait(&core->work, &core->lock);
    }

    pthread_mutex_unlock(&core->lock);

    return has_work && !atomic_load(&core->is_stopping) ? 0 : -1;
}


static int
thread_time(core_t *core, int (*step)(core_t *core), uint32_t *ms)
{
    int      rc;
    int64_t  start_us;

    start_us = llama_time_us();
    rc = step(core);
    *ms = (uint32_t) ((llama_time_us() - start_us) / 1000);

    return rc;
}


/* Runs start().  0: the core is LOADING, or will be. */
static int
thread_start(core_t *core)
{
    int  rc;

    if (thread_await(core, CORE_STARTING) != 0) {
        return -1;
    }

    rc = thread_time(core, core->ops->start, &core->facts.start_ms);
    thread_become(core, rc != 0 ? CORE_BROKEN
                                : core->options.is_standby ? CORE_ASLEEP
                                                           : CORE_LOADING);

    return rc;
}


static void *
thread_run(void *data)
{
    int      rc;
    core_t  *core = data;

    rc = thread_start(core);

    while (rc == 0 && thread_await(core, CORE_LOADING) == 0) {
        rc = thread_time(core, core->ops->load, &core->facts.load_ms);
        thread_become(core, rc == 0 ? CORE_READY : CORE_BROKEN);

        while (rc == 0 && thread_await_work(core) == 0) {
            core->ops->work(core);
        }

        load_close(core);
    }

    return NULL;
}


/* --- the replica's thread */

static int
thread_check(const core_ops_t *ops, const core_options_t *o,
    char error[CORE_ERROR_BYTES])
{
    if (o->sequences < 1 || o->sequences > CORE_SEQUENCES_MAX) {
        snprintf(error, CORE_ERROR_BYTES, "%u %s, not from 1 to %d",
                 o->sequences, ops->sequences, CORE_SEQUENCES_MAX);
        return -1;
    }

    if (!o->is_deferred && access(o->file, R_OK) != 0) {
        snprintf(error, CORE_ERROR_BYTES, "cannot open \"%.200s\": %m",
                 o->file);
        return -1;
    }

    return 0;
}


static void
thread_free(core_t *core)
{
    load_close(core);
    llama_backend_free();
    core->ops->done(core);

    if (core->batch.pos != NULL) {
        llama_batch_free(core->batch);
    }

    pthread_mutex_destroy(&core->lock);
    pthread_cond_destroy(&core->work);
    free(core->file);
    free(core->cpu);
    free(core);
}


core_t *
thread_open(const core_ops_t *ops, const core_options_t *options,
    char error[CORE_ERROR_BYTES])
{
    core_t  *core;

    if (thread_check(ops, options, error) != 0) {
        return NULL;
    }

    core = calloc(1, ops->bytes);

    if (core == NULL) {
        snprintf(error, CORE_ERROR_BYTES, "out of memory");
        return NULL;
    }

    core->ops = ops;
    core->options = *options;
    core->state = options->is_deferred ? CORE_WAITING : CORE_STARTING;
    core->file = strdup(options->file);
    core->cpu = options->cpu != NULL ? strdup(options->cpu) : NULL;
    core->libllama.is_stopping = &core->is_stopping;
    pthread_mutex_init(&core->lock, NULL);
    pthread_cond_init(&core->work, NULL);

    if (core->file == NULL || (options->cpu != NULL && core->cpu == NULL)
        || ops->init(core) != 0
        || pthread_create(&core->thread, NULL, thread_run, core) != 0)
    {
        snprintf(error, CORE_ERROR_BYTES, "no memory for a thread");
        thread_free(core);
        return NULL;
    }

    return core;
}


void
thread_close(core_t *core)
{
    pthread_mutex_lock(&core->lock);
    atomic_store(&core->is_stopping, 1);
    pthread_cond_signal(&core->work);
    pthread_mutex_unlock(&core->lock);

    pthread_join(core->thread, NULL);
    thread_free(core);
}


core_state_t
thread_state(core_t *core, core_facts_t *facts)
{
    core_state_t  state;

    pthread_mutex_lock(&core->lock);
    state = core->state;
    *facts = core->published;
    pthread_mutex_unlock(&core->lock);

    return state;
}


void
thread_load(core_t *core, core_load_t *load)
{
    pthread_mutex_lock(&core->lock);
    *load = core->load;
    pthread_mutex_unlock(&core->lock);
}


int
thread_wake(core_t *core)
{
    if (core->state != CORE_WAITING && core->state != CORE_ASLEEP) {
        return -1;
    }

    core->state = core->state == CORE_WAITING ? CORE_STARTING : CORE_LOADING;
    pthread_cond_signal(&core->work);

    return 0;
}


int
thread_sleep(core_t *core)
{
    int  rc;

    pthread_mutex_lock(&core->lock);
    rc = core->state == CORE_READY && core->load.running == 0 ? 0 : -1;

    if (rc == 0) {
        core->state = CORE_ASLEEP;
        pthread_cond_signal(&core->work);
    }

    pthread_mutex_unlock(&core->lock);

    return rc;
}
