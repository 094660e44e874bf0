
/*
 * IEEE 754 half precision, in which hidden states are sent if they are to take
 * half the bytes.
 *
 * Any half is exactly one float.  A float becomes the nearest half, of two
 * equally near ones the even; a float that is too small for a normal half
 * becomes a subnormal one.  A float that would become an infinity is refused.
 */

#ifndef HALF_H
#define HALF_H

#include <stddef.h>
#include <stdint.h>


/* 0, or -1: one of them is NaN, or 65,520 or more in either direction.  All
   are written in any case. */
int half_encode(uint16_t *out, const float *in, size_t n);

void half_decode(float *out, const uint16_t *in, size_t n);

#endif /* HALF_H */
