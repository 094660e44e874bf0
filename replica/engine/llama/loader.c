
/*
 * Finding the plugin, and the messages if it is absent.
 */

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "replica/engine/llama/loader.h"


#define LOADER_PLUGIN  "llmgw-engine-llama.so"


/* The plugin's path: beside the program, or where `make install` puts it. */
static int
loader_find(char path[PATH_MAX])
{
    size_t    i;
    char      folder[PATH_MAX - 64], *slash;
    ssize_t   n;

    static const char *const  places[] = { "", "../lib/llmgw/" };

    n = readlink("/proc/self/exe", folder, sizeof(folder) - 1);

    if (n <= 0) {
        return -1;
    }

    folder[n] = '\0';
    slash = strrchr(folder, '/');
    slash[1] = '\0';

    for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(path, PATH_MAX, "%s%s" LOADER_PLUGIN, folder, places[i]);

        if (access(path, R_OK) == 0) {
            return 0;
        }
    }

    return -1;
}


/* Reads the plugin's two tables.  0, or -1: it is not of this version. */
static int
loader_read(loader_t *l)
{
    const core_plugin_t   *(*core)(void);
    const shard_plugin_t  *(*shards)(void);

    *(void **) &core = dlsym(l->library, CORE_SYMBOL);
    *(void **) &shards = dlsym(l->library, SHARD_SYMBOL);

    if (core == NULL || core()->abi != CORE_ABI
        || shards == NULL || shards()->abi != SHARD_ABI)
    {
        return -1;
    }

    l->plugin = core();
    l->shards = shards();

    return 0;
}


int
loader_open(loader_t *l, const log_t *log)
{
    char  path[PATH_MAX];

    if (loader_find(path) != 0) {
        log_write(log, LOG_ERROR, "no " LOADER_PLUGIN " beside this program: "
                  "\"make llama\" fetches libllama, \"make build\" builds the "
                  "plugin (docs/engines.md)");
        return -1;
    }

    l->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (l->library == NULL) {
        log_write(log, LOG_ERROR, "cannot load the plugin: %s", dlerror());
        return -1;
    }

    if (loader_read(l) != 0) {
        log_write(log, LOG_ERROR, "\"%s\" is of another version", path);
        return -1;
    }

    return 0;
}


void
loader_close(loader_t *l)
{
    if (l->library != NULL) {
        dlclose(l->library);
    }
}
