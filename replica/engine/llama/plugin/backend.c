
/*
 * ggml's code for the processor.
 *
 * libllama by itself loads every libggml-*.so of the program's folder and of
 * the current one.  Here one file is loaded by its full path, from beside
 * libllama: so a stray file is never run, and which variant computes is known
 * and part of the numerics, since no two give the same bits.
 *
 * A libllama with its backend built in has no such files, and nothing is
 * loaded.
 */

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ggml-backend.h>
#include <llama.h>

#include "replica/engine/llama/plugin/backend.h"
#include "replica/engine/llama/plugin/file.h"
#include "slice/libllama.h"


#define BACKEND_PREFIX  "libggml-cpu-"
#define BACKEND_SUFFIX  ".so"


/* "haswell" of "libggml-cpu-haswell.so"; 0, or -1: another file. */
static int
backend_variant(const char *file, char name[CORE_NAME_BYTES])
{
    size_t  len;

    len = strlen(file);

    if (len <= strlen(BACKEND_PREFIX BACKEND_SUFFIX)
        || len >= CORE_NAME_BYTES
        || strncmp(file, BACKEND_PREFIX, strlen(BACKEND_PREFIX)) != 0
        || strcmp(file + len - strlen(BACKEND_SUFFIX), BACKEND_SUFFIX) != 0)
    {
        return -1;
    }

    len -= strlen(BACKEND_PREFIX BACKEND_SUFFIX);
    memcpy(name, file + strlen(BACKEND_PREFIX), len);
    name[len] = '\0';

    return 0;
}


/* The score that the file computes for this processor; 0: it cannot run
   here. */
static int
backend_score(const char *path)
{
    int    score;
    int  (*ask)(void);
    void  *file;

    file = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (file == NULL) {
        return 0;
    }

    *(void **) &ask = dlsym(file, "ggml_backend_score");
    score = ask != NULL ? ask() : 0;
    dlclose(file);

    return score;
}


/* Finds the variant that was asked for, or the best one, and returns its
   score. */
static int
backend_find(const char *folder, const char *cpu, char best[CORE_NAME_BYTES])
{
    int             score, best_score;
    DIR            *dir;
    char            name[CORE_NAME_BYTES], path[PATH_MAX + NAME_MAX + 2];
    struct dirent  *entry;

    best_score = 0;
    dir = opendir(folder);

    if (dir == NULL) {
        return 0;
    }

    while ((entry = readdir(dir)) != NULL) {
        if (backend_variant(entry->d_name, name) != 0
            || (cpu != NULL && strcmp(cpu, name) != 0))
        {
            continue;
        }

        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        score = backend_score(path);

        if (score > best_score) {
            best_score = score;
            memcpy(best, name, CORE_NAME_BYTES);
        }
    }

    closedir(dir);

    return best_score;
}


/*
 * Reads which code is loaded.  Its file is found by the loaded code, since
 * another core of this process may have loaded it.
 */
static int
backend_read(const atomic_int *is_stopping, backend_t *backend)
{
    char                *slash;
    void                *code;
    Dl_info              info;
    uint64_t             bytes;
    ggml_backend_dev_t   device;

    memset(backend, 0, sizeof(*backend));
    snprintf(backend->variant, CORE_NAME_BYTES, "built-in");
    device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);

    if (device == NULL) {
        return -1;
    }

    code = ggml_backend_reg_get_proc_address(
        ggml_backend_dev_backend_reg(device), "ggml_backend_set_n_threads");

    if (code == NULL || dladdr(code, &info) == 0) {
        return 0;
    }

    slash = strrchr(info.dli_fname, '/');

    if (slash == NULL || backend_variant(slash + 1, backend->variant) != 0) {
        return 0;
    }

    return file_hash(info.dli_fname, is_stopping, &backend->hash, &bytes);
}


/* "0.5.0-dev" counts as 0.5.0, since such suffixes differ within one
   release. */
static int
backend_is_same_version(const char *a, const char *b)
{
    size_t  n;

    n = strcspn(a, "-");

    return n == strcspn(b, "-") && strncmp(a, b, n) == 0;
}


int
backend_load(const char *cpu, const atomic_int *is_stopping,
    backend_t *backend, char error[CORE_ERROR_BYTES])
{
    char  folder[PATH_MAX], path[PATH_MAX + 2 * CORE_NAME_BYTES];
    char  best[CORE_NAME_BYTES];

    if (!backend_is_same_version(llama_version(), LLMGW_LLAMA_VERSION)) {
        snprintf(error, CORE_ERROR_BYTES, "the plugin was built for libllama "
                 "%s, this is %s", LLMGW_LLAMA_VERSION, llama_version());
        return -1;
    }

    if (ggml_backend_reg_count() == 0) {
        if (libllama_folder(folder) != 0
            || backend_find(folder, cpu, best) == 0)
        {
            snprintf(error, CORE_ERROR_BYTES, "no %s%s%s beside libllama "
                     "that this processor can run", BACKEND_PREFIX,
                     cpu != NULL ? cpu : "*", BACKEND_SUFFIX);
            return -1;
        }

        snprintf(path, sizeof(path), "%s/%s%s%s", folder, BACKEND_PREFIX,
                 best, BACKEND_SUFFIX);

        if (ggml_backend_load(path) == NULL) {
            snprintf(error, CORE_ERROR_BYTES, "cannot load %s%s%s",
                     BACKEND_PREFIX, best, BACKEND_SUFFIX);
            return -1;
        }
    }

    if (backend_read(is_stopping, backend) != 0) {
        snprintf(error, CORE_ERROR_BYTES, "cannot read ggml's code for the "
                 "processor");
        return -1;
    }

    return 0;
}
