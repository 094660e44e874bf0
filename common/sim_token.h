
/*
 * What the simulated engine says: a function of a prompt and an index, known
 * to the one that generates it and to the one that checks it.
 */

#ifndef SIM_TOKEN_H
#define SIM_TOKEN_H

#include <stddef.h>
#include <stdint.h>


#define SIM_TOKEN_BYTES  16     /* with the NUL */

/*
 * What sim_token() needs of a prompt: FNV-1a, 64 bits, so that a test in any
 * language can compute what a stream should say.
 */
uint64_t sim_token_hash(const uint8_t *prompt, size_t len);

/*
 * The token at an index (>= 0), NUL terminated: a blank and a word of 4 to 7
 * letters.  Returns its length.
 */
size_t sim_token(uint64_t prompt_hash, int32_t index,
    char token[SIM_TOKEN_BYTES]);

#endif /* SIM_TOKEN_H */
