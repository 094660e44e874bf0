
#include <stdio.h>
#include <string.h>

#include "replica/engine/llama/plugin/load.h"
#include "replica/engine/llama/plugin/profile.h"


int
load_backend(core_t *core)
{
    core_facts_t  *f;

    f = &core->facts;
    libllama_listen(NULL);
    snprintf(f->library, CORE_NAME_BYTES, "libllama %.40s", llama_version());

    if (backend_load(core->cpu, &core->is_stopping, &core->backend, f->error)
        != 0)
    {
        return -1;
    }

    memcpy(f->cpu, core->backend.variant, CORE_NAME_BYTES);
    llama_backend_init();

    return 0;
}


struct llama_model *
load_model(core_t *core, const char *file, struct llama_model_params params,
    char *const *files, size_t n)
{
    struct llama_model  *model;

    libllama_listen(&core->libllama);
    model = libllama_open(&core->libllama, params, files, n);
    libllama_listen(NULL);

    if (model == NULL) {
        (void) core_fail(core, "cannot load \"%.100s\": %.127s", file,
                         core->libllama.error);
    }

    return model;
}


uint32_t
load_context_tokens(const core_t *core, uint32_t trained)
{
    uint32_t  asked;

    asked = core->options.context > 0 ? core->options.context
                                      : CORE_CONTEXT_DEFAULT;

    return asked < trained ? asked : trained;
}


int
load_context(core_t *core, uint32_t n, uint32_t tokens, uint32_t rows,
    ggml_backend_sched_eval_callback on_tensor)
{
    struct llama_context_params  params;

    params = libllama_context(&core->libllama, n, tokens, rows,
                              core->options.threads);
    params.cb_eval = on_tensor;
    params.cb_eval_user_data = core;

    libllama_listen(&core->libllama);
    core->context = core->options.is_exact
                    ? profile_open_context(core->model, params,
                                           &core->facts.is_stepwise)
                    : llama_init_from_model(core->model, params);
    libllama_listen(NULL);

    return core->context != NULL ? 0 : -1;
}


void
load_close(core_t *core)
{
    llama_free(core->context);
    llama_model_free(core->model);
    core->context = NULL;
    core->model = NULL;
}
