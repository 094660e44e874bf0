
/*
 * Which of ggml's variants for the processor computes.
 */

#ifndef BACKEND_H
#define BACKEND_H

#include <stdatomic.h>
#include <stdint.h>

#include "replica/engine/llama/core.h"


typedef struct {
    char      variant[CORE_NAME_BYTES];     /* "haswell", or "built-in" */
    uint64_t  hash;                         /* of its file; built-in: 0 */
} backend_t;


/*
 * Loads the variant asked for, or the best one, unless this process has one.
 * 0; or -1 and why, also where libllama is not the one of the headers.
 */
int backend_load(const char *cpu, const atomic_int *is_stopping,
    backend_t *backend, char error[CORE_ERROR_BYTES]);

#endif /* BACKEND_H */
