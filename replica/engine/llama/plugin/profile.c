
#include <sched.h>

#include "replica/engine/llama/plugin/profile.h"


#define PROFILE_THREADS_MAX  64


int32_t
profile_threads(uint32_t asked)
{
    int        n;
    cpu_set_t  set;

    if (asked > 0) {
        return (int32_t) asked;
    }

    n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

    return n < PROFILE_THREADS_MAX ? n : PROFILE_THREADS_MAX;
}


struct llama_context *
profile_open_context(struct llama_model *model,
    struct llama_context_params params, int *is_stepwise)
{
    struct llama_context  *context;

    params.kv_unified = false;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    params.type_k = GGML_TYPE_Q8_0;
    params.type_v = GGML_TYPE_Q8_0;
    context = llama_init_from_model(model, params);

    if (context != NULL) {
        return context;
    }

    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.type_k = GGML_TYPE_F16;
    params.type_v = GGML_TYPE_F16;
    context = llama_init_from_model(model, params);

    if (context != NULL) {
        *is_stepwise = 1;
    }

    return context;
}
