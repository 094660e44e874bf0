
/*
 * Estimates a request's tokens, before an engine has counted them: learnt per
 * model from requests that ended, in plain memory that all workers share.
 *
 *   prompt   bytes of the prompt x (tokens / bytes of earlier prompts)
 *   answer   95 of 100 answers had no more tokens (core/quantile.h)
 *
 * Before the first observation a token is 4 bytes and an answer 256 tokens.
 * Old requests lose weight: sums are halved when they have grown large.
 *
 * A model is found by its name, or added under it.  The first LLMGW_ESTIMATES
 * have one estimate each, and all others one together, since clients may ask
 * for any name.  The caller holds the lock of accounts.  A process that is
 * killed in a change leaves an observation half counted, which is harmless.
 */

#ifndef LLMGW_ESTIMATE_H
#define LLMGW_ESTIMATE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/usage/record.h"


#define LLMGW_ESTIMATES         128
#define LLMGW_ESTIMATE_BUCKETS  13      /* with the one above the last bound */

typedef struct {
    char      name[LLMGW_USAGE_MODEL_BYTES];
    uint64_t  bytes;                    /* of prompts that had */
    uint64_t  tokens;                   /* this many tokens */
    uint64_t  answers;
    uint64_t  counts[LLMGW_ESTIMATE_BUCKETS];
} llmgw_estimate_t;

typedef struct {
    uint32_t          n;
    llmgw_estimate_t  models[1 + LLMGW_ESTIMATES];  /* [0]: of all others */
} llmgw_estimates_t;


/* Tokens of a prompt of that many bytes, rounded up. */
uint64_t llmgw_estimate_prompt(const llmgw_estimates_t *estimates,
    const char *model, uint64_t bytes);

/* Tokens that 95 % of the model's answers do not exceed. */
uint64_t llmgw_estimate_answer(const llmgw_estimates_t *estimates,
    const char *model);

/*
 * An engine has counted a request's tokens.  If bytes or tokens are 0, nothing
 * is learnt about prompts.
 */
void llmgw_estimate_learn(llmgw_estimates_t *estimates, const char *model,
    uint64_t bytes, uint64_t prompt, uint64_t answer);

#endif /* LLMGW_ESTIMATE_H */
