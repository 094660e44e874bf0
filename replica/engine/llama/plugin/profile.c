
#include "replica/engine/llama/plugin/profile.h"


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
