
/*
 * Finding the plugin, and what to say where it is not.
 */

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "replica/engine/llama/loader.h"


#define LOADER_PLUGIN  "llmgw-engine-llama.so"


/* Beside the program, or where `make install` puts it. */
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


int
loader_open(loader_t *l, const log_t *log)
{
    char  path[PATH_MAX];

    const core_plugin_t  *(*table)(void);

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

    *(void **) &table = dlsym(l->library, CORE_SYMBOL);
    l->plugin = table != NULL ? table() : NULL;

    if (l->plugin == NULL || l->plugin->abi != CORE_ABI) {
        log_write(log, LOG_ERROR, "\"%s\" is of another version", path);
        l->plugin = NULL;
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
