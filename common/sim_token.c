
/*
 * Tokens of the simulated engine.
 *
 * A token is a function of its prompt's hash and its index and of nothing
 * else: no replica, no start, no attempt goes into it.  So any replica
 * continues a stream that another began, byte for byte, and a lost, doubled or
 * foreign token shows in the text.
 *
 * A word is two or three syllables of a consonant and a vowel, and perhaps a
 * closing consonant; its letters are cut from the bits of a mixed number.
 * Words at even indexes begin with another set of consonants than those at
 * odd ones: neighbours differ, so that a doubled token cannot pass for the
 * next.
 */

#include "common/sim_token.h"


/* FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/ */
#define SIM_TOKEN_FNV_BASIS  0xcbf29ce484222325ULL
#define SIM_TOKEN_FNV_PRIME  0x100000001b3ULL


static const char  sim_token_heads[] = "bdfghjklmnprstvz";
static const char  sim_token_vowels[] = "aeiou";
static const char  sim_token_finals[] = "lmnrst";


uint64_t
sim_token_hash(const uint8_t *prompt, size_t len)
{
    size_t    i;
    uint64_t  h;

    h = SIM_TOKEN_FNV_BASIS;

    for (i = 0; i < len; i++) {
        h = (h ^ prompt[i]) * SIM_TOKEN_FNV_PRIME;
    }

    return h;
}


/* The output function of splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t
sim_token_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;

    return x ^ (x >> 31);
}


/* Takes the last digit of a number in that base off. */
static unsigned
sim_token_cut(uint64_t *x, unsigned base)
{
    unsigned  digit;

    digit = (unsigned) (*x % base);
    *x /= base;

    return digit;
}


size_t
sim_token(uint64_t prompt_hash, int32_t index, char token[SIM_TOKEN_BYTES])
{
    char      *p;
    unsigned   syllables;
    uint64_t   x;

    x = sim_token_mix(prompt_hash ^ sim_token_mix((uint64_t) index));
    p = token;

    *p++ = ' ';
    *p++ = sim_token_heads[sim_token_cut(&x, 8) * 2
                           + (unsigned) (index & 1)];
    *p++ = sim_token_vowels[sim_token_cut(&x, 5)];

    for (syllables = 1 + sim_token_cut(&x, 2); syllables > 0; syllables--) {
        *p++ = sim_token_heads[sim_token_cut(&x, 16)];
        *p++ = sim_token_vowels[sim_token_cut(&x, 5)];
    }

    if (sim_token_cut(&x, 2)) {
        *p++ = sim_token_finals[sim_token_cut(&x, 6)];
    }

    *p = '\0';

    return (size_t) (p - token);
}
