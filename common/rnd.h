
/*
 * Randomness as an argument: a splitmix64 state that its owner seeds, so that
 * the same seed gives the same run of the protocol again.  It chooses which
 * member to ping and when; nothing secret depends on it.
 *
 * Source: Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", OOPSLA 2014.
 */

#ifndef RND_H
#define RND_H

#include <stdint.h>


typedef struct {
    uint64_t  state;
} rnd_t;


static inline uint64_t
rnd_next(rnd_t *rnd)
{
    uint64_t  z;

    rnd->state += 0x9e3779b97f4a7c15ULL;
    z = rnd->state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;

    return z ^ (z >> 31);
}


/*
 * A number of 0 .. n - 1; n > 0.  The bias of the modulo is below 2^-32 for our
 * n.
 */
static inline uint64_t
rnd_below(rnd_t *rnd, uint64_t n)
{
    return rnd_next(rnd) % n;
}

#endif /* RND_H */
