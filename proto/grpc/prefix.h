
/*
 * The five bytes before each gRPC message: a flag (1: compressed) and the
 * message's length.
 */

#ifndef LLMGW_GRPC_PREFIX_H
#define LLMGW_GRPC_PREFIX_H

#include <stddef.h>
#include <stdint.h>


#define LLMGW_GRPC_PREFIX_BYTES  5


/* Writes the prefix; returns where the message begins. */
static inline uint8_t *
llmgw_grpc_prefix_write(uint8_t *p, size_t len)
{
    *p++ = 0;
    *p++ = (uint8_t) (len >> 24);
    *p++ = (uint8_t) (len >> 16);
    *p++ = (uint8_t) (len >> 8);
    *p++ = (uint8_t) len;

    return p;
}


/* Returns the message's length; the flag is p[0]. */
static inline size_t
llmgw_grpc_prefix_len(const uint8_t *p)
{
    return ((size_t) p[1] << 24) | ((size_t) p[2] << 16)
           | ((size_t) p[3] << 8) | p[4];
}

#endif /* LLMGW_GRPC_PREFIX_H */
