
/*
 * A tensor on the wire: rows of numbers, cut into chunks, in fp32 or fp16.
 *
 * Both ends of Shard.Forward have fp32 rows in memory; the wire's dtype is
 * known only here (half.h rounds).  A number that fp16 cannot hold becomes an
 * infinity on the wire, so a sender calls tensor_fits() before.
 *
 * Each chunk has SHARD_CHUNK_BYTES, and the last one has the rest.  So the
 * number of chunks follows from the shape, and no peer's number is trusted.
 */

#ifndef SHARD_TENSOR_H
#define SHARD_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "replica/shard/limits.h"


typedef enum {
    TENSOR_FP32 = 0,
    TENSOR_FP16 = 1
} tensor_dtype_t;


/* Bytes on the wire; the caller refuses a tensor of more than
   SHARD_TENSOR_BYTES. */
uint64_t tensor_bytes(uint32_t rows, uint32_t width, tensor_dtype_t dtype);

/* Number of chunks; 0 for no bytes. */
uint32_t tensor_chunks(uint64_t bytes);

/* Bytes of chunk number `chunk`, which exists. */
size_t tensor_chunk_bytes(uint64_t bytes, uint32_t chunk);


/*
 * Writes a chunk's bytes as they are on the wire.  `from` is the whole tensor's
 * numbers; `to` has tensor_chunk_bytes() of room, aligned for its numbers.
 */
void tensor_write(uint8_t *to, const float *from, uint64_t bytes,
    uint32_t chunk, tensor_dtype_t dtype);

/* Reads a whole chunk from data; `to` is the whole tensor's numbers. */
void tensor_read(float *to, const uint8_t *data, uint64_t bytes,
    uint32_t chunk, tensor_dtype_t dtype);

/* Whether every number is finite, also after rounding to the dtype. */
int tensor_fits(const float *numbers, size_t count, tensor_dtype_t dtype);

#endif /* SHARD_TENSOR_H */
