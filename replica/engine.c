
/*
 * The simulated engine.
 *
 * A token is a function of its prompt's hash and its index and of nothing
 * else: no replica, no start, no attempt goes into it.  So any replica goes
 * on with a stream that another began, byte for byte, and a lost, doubled or
 * foreign token shows in the text.
 *
 * A word is two or three syllables of a consonant and a vowel, and perhaps a
 * closing consonant; its letters are cut from the bits of a mixed number.
 * Words at even indexes begin with another set of consonants than those at
 * odd ones: neighbours differ, so that a doubled token cannot pass for the
 * next.
 */

#include "engine.h"


/* FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/ */
#define ENGINE_FNV_BASIS  0xcbf29ce484222325ULL
#define ENGINE_FNV_PRIME  0x100000001b3ULL


static const char  engine_consonants[] = "bdfghjklmnprstvz";
static const char  engine_vowels[] = "aeiou";
static const char  engine_finals[] = "lmnrst";


uint64_t
engine_prompt_hash(const uint8_t *prompt, size_t len)
{
    size_t    i;
    uint64_t  h;

    h = ENGINE_FNV_BASIS;

    for (i = 0; i < len; i++) {
        h = (h ^ prompt[i]) * ENGINE_FNV_PRIME;
    }

    return h;
}


/* The output function of splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t
engine_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;

    return x ^ (x >> 31);
}


/* Cuts the next digit of a base off a number. */
static unsigned
engine_cut(uint64_t *x, unsigned base)
{
    unsigned  digit;

    digit = (unsigned) (*x % base);
    *x /= base;

    return digit;
}


size_t
engine_token(uint64_t prompt_hash, int32_t index,
    char token[ENGINE_TOKEN_BYTES])
{
    char      *p;
    unsigned   syllables;
    uint64_t   x;

    x = engine_mix(prompt_hash ^ engine_mix((uint64_t) index));
    p = token;

    *p++ = ' ';
    *p++ = engine_consonants[engine_cut(&x, 8) * 2 + (unsigned) (index & 1)];
    *p++ = engine_vowels[engine_cut(&x, 5)];

    for (syllables = 1 + engine_cut(&x, 2); syllables > 0; syllables--) {
        *p++ = engine_consonants[engine_cut(&x, 16)];
        *p++ = engine_vowels[engine_cut(&x, 5)];
    }

    if (engine_cut(&x, 2)) {
        *p++ = engine_finals[engine_cut(&x, 6)];
    }

    *p = '\0';

    return (size_t) (p - token);
}


int
engine_is_draining(const engine_t *e)
{
    return e->is_draining || e->is_stopping;
}


engine_admission_t
engine_admit(engine_t *e, double chance)
{
    if (engine_is_draining(e)) {
        return ENGINE_DRAINING;
    }

    if (e->faults.reject_all || chance < e->faults.error_rate) {
        e->stats.failed++;
        return ENGINE_REJECTED;
    }

    if (e->max_capacity > 0 && e->stats.active >= e->max_capacity) {
        return ENGINE_FULL;
    }

    e->stats.active++;
    e->stats.started++;

    return ENGINE_ADMITTED;
}


void
engine_release(engine_t *e, engine_end_t end)
{
    e->stats.active--;

    switch (end) {

    case ENGINE_FINISHED:
        e->stats.finished++;
        break;

    case ENGINE_CANCELLED:
        e->stats.cancelled++;
        break;

    default:
        e->stats.failed++;
    }
}


uint64_t
engine_delay_us(const engine_t *e, int is_first)
{
    int32_t  ms;

    ms = e->faults.token_delay_ms;

    if (is_first && e->faults.first_token_delay_ms > 0) {
        ms = e->faults.first_token_delay_ms;
    }

    return (uint64_t) ms * 1000;
}


uint64_t
engine_pace_us(uint64_t due_us, uint64_t now_us, uint64_t delay_us)
{
    uint64_t  bound_us;

    if (delay_us == 0) {
        return now_us;
    }

    bound_us = delay_us > ENGINE_CATCH_UP_US ? delay_us : ENGINE_CATCH_UP_US;

    return now_us < due_us + bound_us ? due_us : now_us;
}


int
engine_dies(const engine_t *e, int32_t tokens)
{
    return e->faults.die_after_tokens > 0
           && tokens >= e->faults.die_after_tokens;
}


const char *
engine_faults_error(const engine_faults_t *f)
{
    if (!(f->error_rate >= 0.0 && f->error_rate <= 1.0)) {
        return "error_rate";
    }

    if (f->token_delay_ms < 0 || f->token_delay_ms > ENGINE_DELAY_MAX_MS) {
        return "token_delay_ms";
    }

    if (f->first_token_delay_ms < 0
        || f->first_token_delay_ms > ENGINE_DELAY_MAX_MS)
    {
        return "first_token_delay_ms";
    }

    if (f->die_after_tokens < 0) {
        return "die_after_tokens";
    }

    return NULL;
}
