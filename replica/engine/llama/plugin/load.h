
/*
 * What every core has of libllama: the code for the processor, a model, and a
 * context in which results are exact where the options want it (profile.h).
 */

#ifndef LOAD_H
#define LOAD_H

#include "replica/engine/llama/plugin/thread.h"


/* Loads the backend, and sets the facts that name it.  0, or -1 and
   facts.error. */
int load_backend(core_t *core);

/* Loads a model of n files, called `file` in messages, with the given
   parameters.  NULL: see facts.error. */
struct llama_model *load_model(core_t *core, const char *file,
    struct llama_model_params params, char *const *files, size_t n);

/* Tokens of a sequence's context: by the options or CORE_CONTEXT_DEFAULT, at
   most `trained`. */
uint32_t load_context_tokens(const core_t *core, uint32_t trained);

/*
 * Opens core->context for n sequences of `tokens` each and calls of at most
 * `rows`; sets facts.is_stepwise.  on_tensor, if not NULL, sees the tensors of
 * calls.  0, or -1: libllama.error may say why.
 */
int load_context(core_t *core, uint32_t n, uint32_t tokens, uint32_t rows,
    ggml_backend_sched_eval_callback on_tensor);

/* Frees the context and the model, if they are there. */
void load_close(core_t *core);

#endif /* LOAD_H */
