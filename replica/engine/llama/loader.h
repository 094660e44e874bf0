
/*
 * Loads the plugin's file.
 */

#ifndef LOADER_H
#define LOADER_H

#include "common/log.h"
#include "replica/engine/llama/core.h"
#include "replica/engine/llama/shard_core.h"


typedef struct {
    void                  *library;
    const core_plugin_t   *plugin;
    const shard_plugin_t  *shards;
} loader_t;


/* 0, or -1 and one line in the log. */
int loader_open(loader_t *loader, const log_t *log);
void loader_close(loader_t *loader);

#endif /* LOADER_H */
