
/*
 * A hash of what ggml's code for the processor computes from fixed numbers.
 */

#ifndef KERNELS_H
#define KERNELS_H

#include <ggml.h>
#include <stdint.h>


/*
 * Computes what a layer does, one operation at a time, with matrices of each
 * type that is set in the mask, and hashes all results.  0, or -1: it could
 * not.
 */
int kernels_hash(const uint8_t types[GGML_TYPE_COUNT], uint64_t *hash);

#endif /* KERNELS_H */
