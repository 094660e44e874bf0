
/*
 * Lots: each of several candidates draws one, made of its number and one random
 * number, and the lowest wins.  All have the same chance, however many they
 * are, and their number need not be known before (splitmix64; Steele, Lea,
 * Flood, 2014).
 */

#ifndef LLMGW_DRAW_H
#define LLMGW_DRAW_H

#include <stdint.h>


static inline uint64_t
llmgw_draw(uint64_t random, uint32_t number)
{
    uint64_t  x;

    x = random + ((uint64_t) number + 1) * 0x9e3779b97f4a7c15ull;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;

    return x ^ x >> 31;
}

#endif /* LLMGW_DRAW_H */
