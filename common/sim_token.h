
/*
 * Tokens of the simulated engine: a function of the prompt and an index, used
 * by the generator and by its checker.
 */

#ifndef SIM_TOKEN_H
#define SIM_TOKEN_H

#include <stddef.h>
#include <stdint.h>


#define SIM_TOKEN_BYTES  16     /* with the NUL */

/*
 * The hash of a prompt for sim_token(): FNV-1a, 64 bits, so that a test in any
 * language can compute what a stream must contain.
 */
uint64_t sim_token_hash(const uint8_t *prompt, size_t len);

/*
 * The token at an index (>= 0), NUL terminated: a blank and a word of 4 to 7
 * letters.  Returns its length.
 */
size_t sim_token(uint64_t prompt_hash, int32_t index,
    char token[SIM_TOKEN_BYTES]);

#endif /* SIM_TOKEN_H */
