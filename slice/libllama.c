
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slice/libllama.h"


#define LIBLLAMA_THREADS_MAX  64


int
libllama_folder(char folder[PATH_MAX])
{
    Dl_info  info;

    if (dladdr((void *) llama_version, &info) == 0
        || realpath(info.dli_fname, folder) == NULL)
    {
        return -1;
    }

    *strrchr(folder, '/') = '\0';

    return 0;
}


static void
libllama_on_log(enum ggml_log_level level, const char *text, void *data)
{
    libllama_t  *l = data;

    if (l != NULL && level == GGML_LOG_LEVEL_ERROR && l->error[0] == '\0') {
        snprintf(l->error, sizeof(l->error), "%.*s",
                 (int) strcspn(text, "\n"), text);
    }
}


void
libllama_listen(libllama_t *l)
{
    if (l != NULL) {
        l->error[0] = '\0';
    }

    llama_log_set(libllama_on_log, l);
}


/* Replaces libllama's own callback, which prints dots. */
static bool
libllama_on_progress(float progress, void *data)
{
    const libllama_t  *l = data;

    return !atomic_load(l->is_stopping);
}


static bool
libllama_on_abort(void *data)
{
    const libllama_t  *l = data;

    return atomic_load(l->is_stopping);
}


struct llama_model *
libllama_open(libllama_t *l, struct llama_model_params params,
    char *const *files, size_t n)
{
    params.load_mode = LLAMA_LOAD_MODE_MMAP;
    params.n_gpu_layers = 0;
    params.progress_callback = libllama_on_progress;
    params.progress_callback_user_data = l;

    return llama_model_load_from_splits((const char **) files, n, params);
}


static int32_t
libllama_threads(uint32_t asked)
{
    int        n;
    cpu_set_t  set;

    if (asked > 0) {
        return (int32_t) asked;
    }

    n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

    return n < LIBLLAMA_THREADS_MAX ? n : LIBLLAMA_THREADS_MAX;
}


struct llama_context_params
libllama_context(libllama_t *l, uint32_t n, uint32_t tokens, uint32_t rows,
    uint32_t threads)
{
    struct llama_context_params  params;

    params = llama_context_default_params();
    params.n_ctx = tokens * n;
    params.n_batch = rows;
    params.n_ubatch = rows;
    params.n_seq_max = n;
    params.n_threads = libllama_threads(threads);
    params.n_threads_batch = params.n_threads;
    params.abort_callback = libllama_on_abort;
    params.abort_callback_data = l;

    return params;
}
