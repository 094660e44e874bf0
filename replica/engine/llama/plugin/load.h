
/*
 * What every core has of libllama: the code for the processor, a model, and a
 * context in which results are exact where the options want it (profile.h).
 */

#ifndef LOAD_H
#define LOAD_H

#include "replica/engine/llama/plugin/thread.h"


/* Sets backend, and the facts that say which.  0, or -1 and facts.error. */
int load_backend(core_t *core);

/* A model in n files, which messages call `file`, by the parameters that are
   set.  NULL: see facts.error. */
struct llama_model *load_model(core_t *core, const char *file,
    struct llama_model_params params, char *const *files, size_t n);

/* Of a sequence: as many as were asked for, at most what the model knows. */
uint32_t load_context_tokens(const core_t *core, uint32_t trained);

/*
 * Opens core->context: n sequences of so many tokens, calls of at most so many
 * rows, whose tensors on_tensor sees, if it is not NULL; sets
 * facts.is_stepwise.  0, or -1: libllama.error may say why.
 */
int load_context(core_t *core, uint32_t n, uint32_t tokens, uint32_t rows,
    ggml_backend_sched_eval_callback on_tensor);

/* Frees the context and the model, if they are there. */
void load_close(core_t *core);

#endif /* LOAD_H */
