
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
 * Loads the variant `cpu`, or the best one if it is NULL, unless this process
 * has loaded one already.  0, or -1 and an error, also if libllama is of
 * another version than the headers.
 */
int backend_load(const char *cpu, const atomic_int *is_stopping,
    backend_t *backend, char error[CORE_ERROR_BYTES]);

#endif /* BACKEND_H */
