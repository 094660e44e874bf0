
/*
 * Chunks of a tensor, in either dtype.
 */

#include <string.h>

#include "replica/shard/half.h"
#include "replica/shard/tensor.h"


/* The least values that the dtype cannot hold: infinity, and 65,520, which
   would be rounded to a half's infinity. */
#define TENSOR_FLOAT_OVER  0x7f800000u
#define TENSOR_HALF_OVER   0x477ff000u


static size_t
tensor_number_bytes(tensor_dtype_t dtype)
{
    return dtype == TENSOR_FP16 ? sizeof(uint16_t) : sizeof(float);
}


uint64_t
tensor_bytes(uint32_t rows, uint32_t width, tensor_dtype_t dtype)
{
    uint64_t  numbers;

    numbers = (uint64_t) rows * width;

    return numbers > SHARD_TENSOR_BYTES ? UINT64_MAX
           : numbers * tensor_number_bytes(dtype);
}


uint32_t
tensor_chunks(uint64_t bytes)
{
    return (uint32_t) (bytes / SHARD_CHUNK_BYTES
                       + (bytes % SHARD_CHUNK_BYTES != 0));
}


size_t
tensor_chunk_bytes(uint64_t bytes, uint32_t chunk)
{
    uint64_t  rest;

    rest = bytes - (uint64_t) chunk * SHARD_CHUNK_BYTES;

    return rest < SHARD_CHUNK_BYTES ? rest : SHARD_CHUNK_BYTES;
}


void
tensor_write(uint8_t *to, const float *from, uint64_t bytes, uint32_t chunk,
    tensor_dtype_t dtype)
{
    size_t  size;

    size = tensor_chunk_bytes(bytes, chunk);
    from += (size_t) chunk * (SHARD_CHUNK_BYTES / tensor_number_bytes(dtype));

    if (dtype == TENSOR_FP32) {
        memcpy(to, from, size);

    } else {
        (void) half_encode((uint16_t *) (void *) to, from,
                           size / sizeof(uint16_t));
    }
}


void
tensor_read(float *to, const uint8_t *data, uint64_t bytes, uint32_t chunk,
    tensor_dtype_t dtype)
{
    size_t  size;

    size = tensor_chunk_bytes(bytes, chunk);
    to += (size_t) chunk * (SHARD_CHUNK_BYTES / tensor_number_bytes(dtype));

    if (dtype == TENSOR_FP32) {
        memcpy(to, data, size);

    } else {
        half_decode(to, (const uint16_t *) (const void *) data,
                    size / sizeof(uint16_t));
    }
}


static uint32_t
tensor_bits(float number)
{
    uint32_t  bits;

    memcpy(&bits, &number, sizeof(bits));

    return bits;
}


int
tensor_fits(const float *numbers, size_t count, tensor_dtype_t dtype)
{
    size_t    i;
    uint32_t  bad, over;

    over = dtype == TENSOR_FP16 ? TENSOR_HALF_OVER : TENSOR_FLOAT_OVER;
    bad = 0;

    for (i = 0; i < count; i++) {           /* no branch: it is vectorised */
        bad |= (tensor_bits(numbers[i]) & 0x7fffffff) >= over;
    }

    return !bad;
}


#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire's numbers are little-endian: convert them here"
#endif
