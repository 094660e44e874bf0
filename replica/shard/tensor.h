
/*
 * A tensor on its way: rows of numbers, cut into chunks, in fp32 or fp16.
 *
 * Both ends of Shard.Forward speak of fp32 rows in memory; the wire's dtype
 * is known only here (half.h rounds).  A number that fp16 cannot hold
 * becomes an infinity on the wire: a sender asks tensor_fits() before.
 *
 * Chunks have SHARD_CHUNK_BYTES but the last one, which has the rest, so
 * that their number follows from the shape and nothing needs to be believed.
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


/* Bytes on the wire; at most SHARD_TENSOR_BYTES or it has to be refused. */
uint64_t tensor_bytes(uint32_t rows, uint32_t width, tensor_dtype_t dtype);

/* 0 for no bytes. */
uint32_t tensor_chunks(uint64_t bytes);

/* Of chunk number `chunk`, which is one of them. */
size_t tensor_chunk_bytes(uint64_t bytes, uint32_t chunk);


/*
 * What the chunk's bytes on the wire are: `from` is the whole tensor's
 * numbers, `to` has tensor_chunk_bytes() of room, aligned for its numbers.
 */
void tensor_write(uint8_t *to, const float *from, uint64_t bytes,
    uint32_t chunk, tensor_dtype_t dtype);

/* The other way; `to` is the whole tensor's numbers, data a whole chunk. */
void tensor_read(float *to, const uint8_t *data, uint64_t bytes,
    uint32_t chunk, tensor_dtype_t dtype);

/* Every number is finite, also once it has been rounded to the dtype. */
int tensor_fits(const float *numbers, size_t count, tensor_dtype_t dtype);

#endif /* SHARD_TENSOR_H */
