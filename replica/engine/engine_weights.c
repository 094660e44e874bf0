
#include <stdlib.h>
#include <string.h>

#include "replica/engine/engine_weights.h"


static void
engine_weights_become(engine_t *engine, engine_state_t state)
{
    engine->facts.state = state;
    engine_publish(engine);
}


static void
engine_weights_on_loaded(void *data)
{
    weights_sleep(((engine_t *) data)->weights);
}


static void
engine_weights_on_asleep(void *data)
{
    engine_weights_become(data, ENGINE_ASLEEP);
}


static void
engine_weights_on_awake(void *data)
{
    engine_weights_become(data, ENGINE_READY);
}


/* text: the list of files, which is split in place. */
static int
engine_weights_open_files(engine_t *engine, const engine_options_t *o,
    char *text)
{
    char                 *rest;
    size_t                n;
    const char           *files[WEIGHTS_DEVICES_MAX];
    weights_callbacks_t   callbacks = {
        .on_ready = o->is_standby ? engine_weights_on_loaded
                                  : engine_weights_on_awake,
        .on_asleep = engine_weights_on_asleep,
        .on_awake = engine_weights_on_awake,
        .on_failed = engine_fail
    };

    n = 0;

    while ((rest = strsep(&text, ",")) != NULL) {
        files[n++] = rest;
    }

    engine_weights_become(engine, ENGINE_STARTING);
    engine->weights = weights_open(engine->loop, engine->log, &o->weights,
                                   files, 1, &callbacks, engine);

    return engine->weights != NULL && !engine->is_broken ? 0 : -1;
}


int
engine_weights_open(engine_t *engine, const engine_options_t *o)
{
    int    rc;
    char  *text;

    if (o->weights.sockets == NULL) {
        engine_weights_become(engine, o->is_standby ? ENGINE_ASLEEP
                                                    : ENGINE_READY);
        return 0;
    }

    text = strdup(o->weights_files);

    if (text == NULL) {
        log_write(engine->log, LOG_ERROR, "out of memory");
        return -1;
    }

    rc = engine_weights_open_files(engine, o, text);
    free(text);

    return rc;
}


void
engine_weights_wake(engine_t *engine)
{
    if (engine->weights == NULL) {
        engine_weights_become(engine, ENGINE_READY);
        return;
    }

    engine_weights_become(engine, ENGINE_STARTING);
    weights_wake(engine->weights);
}


void
engine_weights_close(engine_t *engine)
{
    if (engine->weights != NULL) {
        weights_close(engine->weights);
        engine->weights = NULL;
    }
}
