
/*
 * Private to kind.c and forward.c.
 */

#ifndef SHARD_KIND_INNER_H
#define SHARD_KIND_INNER_H

#include "replica/engine/engine.h"
#include "replica/engine/llama/loader.h"
#include "replica/shard/options.h"
#include "replica/shard/serve/serve.h"
#include "replica/shard/shard_tls.h"


typedef struct {
    engine_t                *engine;
    const shards_options_t  *options;
    loader_t                 loader;
    const shard_plugin_t    *plugin;
    tls_endpoint_t               tls;
    shard_key_t             *key;       /* NULL: none */
    core_t                  *core;      /* the serve's, once there is one */
    serve_t                 *serve;     /* NULL: none yet */
    ev_async                 notified;
    ev_timer                 tick;
    int                      is_loaded;
} kind_t;

/* To be called before calls of serve.h: passes on the time and whether this
   replica is draining. */
void kind_enter(kind_t *kind);

/* To be called after them: updates the engine's facts. */
void kind_leave(kind_t *kind);

extern const engine_stream_t  forward_stream;

#endif /* SHARD_KIND_INNER_H */
