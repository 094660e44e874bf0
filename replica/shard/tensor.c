
/*
 * Chunks of a tensor, and IEEE 754's binary16.
 *
 * fp16 is off unless an operator asks for it, so its conversion is plain
 * integer work and needs nothing of the processor.
 */

#include <string.h>

#include "replica/shard/tensor.h"


#define TENSOR_FLOAT_INF   0x7f800000u
#define TENSOR_HALF_INF    0x7c00u

/* The least float that rounds to a half's infinity: 65520. */
#define TENSOR_HALF_OVER   0x477ff000u

/* The least normal half, 2^-14. */
#define TENSOR_HALF_LEAST  0x38800000u


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


static uint32_t
tensor_bits(float number)
{
    uint32_t  bits;

    memcpy(&bits, &number, sizeof(bits));

    return bits;
}


/* `bits` >> shift, to the nearest, ties to even. */
static uint32_t
tensor_shift(uint32_t bits, uint32_t shift)
{
    uint32_t  half, rest, result;

    result = bits >> shift;
    rest = bits & ((1u << shift) - 1);
    half = 1u << (shift - 1);

    return result + (rest > half || (rest == half && (result & 1)));
}


uint16_t
tensor_half(float number)
{
    uint32_t  bits, exponent, sign;

    bits = tensor_bits(number);
    sign = (bits >> 16) & 0x8000;
    bits &= 0x7fffffff;

    if (bits > TENSOR_FLOAT_INF) {
        return (uint16_t) (sign | TENSOR_HALF_INF | 0x200);     /* NaN */
    }

    if (bits >= TENSOR_HALF_OVER) {
        return (uint16_t) (sign | TENSOR_HALF_INF);
    }

    if (bits >= TENSOR_HALF_LEAST) {
        return (uint16_t) (sign | tensor_shift(bits - (112u << 23), 13));
    }

    exponent = bits >> 23;

    if (exponent < 102) {                   /* below half of the least one */
        return (uint16_t) sign;
    }

    return (uint16_t) (sign | tensor_shift((bits & 0x7fffff) | 0x800000,
                                           126 - exponent));
}


float
tensor_float(uint16_t half)
{
    float     number;
    uint32_t  bits, magnitude;

    magnitude = half & 0x7fff;

    if (magnitude < 0x400) {                /* zero or subnormal: exact */
        number = (float) magnitude * 0x1p-24f;

    } else {
        bits = (magnitude << 13)
               + (magnitude >= TENSOR_HALF_INF ? 224u << 23 : 112u << 23);
        memcpy(&number, &bits, sizeof(number));
    }

    return half & 0x8000 ? -number : number;
}


void
tensor_write(uint8_t *to, const float *from, uint64_t bytes, uint32_t chunk,
    tensor_dtype_t dtype)
{
    size_t    i, size;
    uint16_t  half;

    size = tensor_chunk_bytes(bytes, chunk);
    from += (size_t) chunk * (SHARD_CHUNK_BYTES / tensor_number_bytes(dtype));

    if (dtype == TENSOR_FP32) {
        memcpy(to, from, size);
        return;
    }

    for (i = 0; i < size / sizeof(half); i++) {
        half = tensor_half(from[i]);
        memcpy(to + i * sizeof(half), &half, sizeof(half));
    }
}


void
tensor_read(float *to, const uint8_t *data, uint64_t bytes, uint32_t chunk,
    tensor_dtype_t dtype)
{
    size_t    i, size;
    uint16_t  half;

    size = tensor_chunk_bytes(bytes, chunk);
    to += (size_t) chunk * (SHARD_CHUNK_BYTES / tensor_number_bytes(dtype));

    if (dtype == TENSOR_FP32) {
        memcpy(to, data, size);
        return;
    }

    for (i = 0; i < size / sizeof(half); i++) {
        memcpy(&half, data + i * sizeof(half), sizeof(half));
        to[i] = tensor_float(half);
    }
}


int
tensor_fits(const float *numbers, size_t count, tensor_dtype_t dtype)
{
    size_t    i;
    uint32_t  bad, over;

    over = dtype == TENSOR_FP16 ? TENSOR_HALF_OVER : TENSOR_FLOAT_INF;
    bad = 0;

    for (i = 0; i < count; i++) {           /* no branch: it is vectorised */
        bad |= (tensor_bits(numbers[i]) & 0x7fffffff) >= over;
    }

    return !bad;
}


#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire's numbers are little-endian: convert them here"
#endif
