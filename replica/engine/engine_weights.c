
#include <stdlib.h>
#include <string.h>

#include "replica/engine/engine_weights.h"


static void
held_become(engine_t *engine, engine_state_t state)
{
    engine->facts.state = state;
    engine_told(engine);
}


static void
held_on_loaded(void *data)
{
    weights_sleep(((engine_t *) data)->weights);
}


static void
held_on_asleep(void *data)
{
    held_become(data, ENGINE_ASLEEP);
}


static void
held_on_awake(void *data)
{
    held_become(data, ENGINE_READY);
}


void
held_fail(void *data)
{
    engine_t  *engine;

    engine = data;
    engine->is_broken = 1;
    held_become(engine, ENGINE_DOWN);
    ev_break(engine->loop, EVBREAK_ALL);
}


/* text: the list, which becomes its items. */
static int
held_open_files(engine_t *engine, const engine_options_t *o, char *text)
{
    char                 *rest;
    size_t                n;
    const char           *files[WEIGHTS_DEVICES_MAX];
    weights_callbacks_t   callbacks = {
        .on_ready = o->is_standby ? held_on_loaded : held_on_awake,
        .on_asleep = held_on_asleep,
        .on_awake = held_on_awake,
        .on_failed = held_fail
    };

    n = 0;

    while ((rest = strsep(&text, ",")) != NULL) {
        files[n++] = rest;
    }

    held_become(engine, ENGINE_STARTING);
    engine->weights = weights_open(engine->loop, engine->log, &o->weights,
                                   files, 1, &callbacks, engine);

    return engine->weights != NULL && !engine->is_broken ? 0 : -1;
}


int
held_open(engine_t *engine, const engine_options_t *o)
{
    int    rc;
    char  *text;

    if (o->weights.sockets == NULL) {
        held_become(engine, o->is_standby ? ENGINE_ASLEEP : ENGINE_READY);
        return 0;
    }

    text = strdup(o->weights_files);

    if (text == NULL) {
        log_write(engine->log, LOG_ERROR, "out of memory");
        return -1;
    }

    rc = held_open_files(engine, o, text);
    free(text);

    return rc;
}


void
held_wake(engine_t *engine)
{
    if (engine->weights == NULL) {
        held_become(engine, ENGINE_READY);
        return;
    }

    held_become(engine, ENGINE_STARTING);
    weights_wake(engine->weights);
}


void
held_close(engine_t *engine)
{
    if (engine->weights != NULL) {
        weights_close(engine->weights);
        engine->weights = NULL;
    }
}
