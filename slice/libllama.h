
/*
 * libllama as the plugin and llmgw-slice use it: on the processor, with a flag
 * that stops it, and without output except why a call failed.
 */

#ifndef LIBLLAMA_H
#define LIBLLAMA_H

#include <limits.h>
#include <llama.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>


#define LIBLLAMA_ERROR_BYTES  256

typedef struct {
    const atomic_int  *is_stopping;     /* set: loading and computing end */
    char               error[LIBLLAMA_ERROR_BYTES];     /* "": none */
} libllama_t;


/* The folder of libllama's own file, and of ggml's code for processors.  0, or
   -1. */
int libllama_folder(char folder[PATH_MAX]);

/*
 * From now on the first error that libllama logs is stored in l->error, and
 * nothing is printed; NULL: all messages are dropped.  libllama has one log for
 * the process: if two threads use it at once, one may get the other's error.
 */
void libllama_listen(libllama_t *l);

/*
 * Loads a model of n files with the given parameters; the processor, mmap and
 * the flag are set here.  NULL: see l->error.
 */
struct llama_model *libllama_open(libllama_t *l,
    struct llama_model_params params, char *const *files, size_t n);

/* Parameters of a context for n sequences of `tokens` each and calls of at most
   `rows`; threads: 0: one for each processor. */
struct llama_context_params libllama_context(libllama_t *l, uint32_t n,
    uint32_t tokens, uint32_t rows, uint32_t threads);

#endif /* LIBLLAMA_H */
