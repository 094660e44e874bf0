
/*
 * Measures how large activations are between the layers of a model, by which a
 * row from a broken host is distinguished from a correct one.
 *
 * The whole model computes fixed tokens, and at each boundary the greatest
 * Euclidean norm of a row is kept.  The first positions are left out: real
 * models have activations there that are hundreds of times greater than all
 * others (Sun et al., "Massive Activations in Large Language Models", 2024).
 * This takes one pass over the weights, so a model larger than the memory is
 * read from disk only once more.
 */

#ifndef NORMS_H
#define NORMS_H

#include <stdatomic.h>

#include "slice/whole.h"


/* Sets whole->norms.  0, or -1 and an error, which is empty if it was
   stopped. */
int norms_measure(whole_t *whole, atomic_int *is_stopping,
    char error[SLICED_ERROR_BYTES]);

#endif /* NORMS_H */
