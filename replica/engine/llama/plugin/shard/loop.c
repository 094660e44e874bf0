
/*
 * The core's thread.
 *
 *   load_facts() --> ASLEEP --wake()--> LOADING --load_model()--> READY
 *                      ^                                            |
 *                      +-- load_free() <-- sleep(), no sessions ----+
 *
 * Either load may end in BROKEN instead, in which the thread ends.  wake() and
 * sleep() change the state at once and the thread follows: one that was told
 * to sleep and to wake before it looked loads anew.
 */

#include "replica/engine/llama/plugin/shard/shard_inner.h"


static void
loop_tell(core_t *core, core_state_t state)
{
    pthread_mutex_lock(&core->lock);
    core->state = state;
    core->told = core->facts;
    pthread_mutex_unlock(&core->lock);

    core->options.notify(core->options.data);
}


/* Until it is to load; -1: the core is closing. */
static int
loop_await(core_t *core)
{
    pthread_mutex_lock(&core->lock);

    while (core->state != CORE_LOADING
           && !atomic_load(&core->is_stopping))
    {
        pthread_cond_wait(&core->work, &core->lock);
    }

    pthread_mutex_unlock(&core->lock);

    return atomic_load(&core->is_stopping) ? -1 : 0;
}


/* Under the lock: whether a turn would find anything to do. */
static int
loop_has_work(const core_t *core)
{
    uint32_t  i;

    for (i = 0; i < core->options.sequences; i++) {
        if (core->places[i].first != NULL || core->places[i].is_stale) {
            return 1;
        }
    }

    return 0;
}


/* Until there may be something to do; -1: it closes, or is to sleep. */
static int
loop_wait(core_t *core)
{
    int  rc;

    pthread_mutex_lock(&core->lock);

    while (core->state == CORE_READY && !atomic_load(&core->is_stopping)
           && !core->has_news && !loop_has_work(core))
    {
        pthread_cond_wait(&core->work, &core->lock);
    }

    rc = core->state == CORE_READY && !atomic_load(&core->is_stopping)
         ? 0 : -1;
    pthread_mutex_unlock(&core->lock);

    /* Of steps that ended without a call: refused, or cancelled. */

    queue_notify(core);

    return rc;
}


static void
loop_serve(core_t *core)
{
    while (loop_wait(core) == 0) {
        turn_run(core);
    }
}


void *
loop_run(void *data)
{
    int      rc;
    core_t  *core;

    core = data;
    rc = load_facts(core);
    loop_tell(core, rc != 0 ? CORE_BROKEN
                            : core->options.is_standby ? CORE_ASLEEP
                                                    : CORE_LOADING);

    while (rc == 0 && loop_await(core) == 0) {
        rc = load_model(core);
        loop_tell(core, rc == 0 ? CORE_READY : CORE_BROKEN);

        if (rc == 0) {
            loop_serve(core);
        }

        load_free(core);
    }

    load_done(core);

    return NULL;
}
