
/* Estimates.  estimate.h has the rules. */

#include <string.h>

#include "core/accounts/estimate.h"
#include "core/quantile.h"


/*
 * Some thousand prompts, some hundred answers: a change of the load shows
 * within a day.
 */
#define PROMPT_TOKENS_MAX  (1u << 22)
#define ANSWERS_MAX        1024

/* A single prompt must not outweigh all earlier ones. */
#define PROMPT_BYTES_MAX   (1u << 24)

#define FIRST_BYTES        4000         /* for FIRST_TOKENS */
#define FIRST_TOKENS       1000
#define FIRST_ANSWER       256

static const uint64_t  estimate_bounds[LLMGW_ESTIMATE_BUCKETS] = {
    16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 0
};


static uint32_t
estimate_find(const llmgw_estimates_t *estimates, const char *model)
{
    uint32_t  i;

    for (i = 1; i <= estimates->n; i++) {
        if (strcmp(estimates->models[i].name, model) == 0) {
            return i;
        }
    }

    return 0;
}


uint64_t
llmgw_estimate_prompt(const llmgw_estimates_t *estimates, const char *model,
    uint64_t bytes)
{
    uint64_t                 known_bytes, known_tokens;
    const llmgw_estimate_t  *estimate;

    estimate = &estimates->models[estimate_find(estimates, model)];
    known_bytes = FIRST_BYTES + estimate->bytes;
    known_tokens = FIRST_TOKENS + estimate->tokens;

    if (bytes > UINT32_MAX) {
        bytes = UINT32_MAX;
    }

    return (bytes * known_tokens + known_bytes - 1) / known_bytes;
}


uint64_t
llmgw_estimate_answer(const llmgw_estimates_t *estimates, const char *model)
{
    double  tokens;

    tokens = llmgw_quantile(estimate_bounds,
                  estimates->models[estimate_find(estimates, model)].counts,
                  950);

    return tokens < 0 ? FIRST_ANSWER : (uint64_t) tokens + 1;
}


void
llmgw_estimate_learn(llmgw_estimates_t *estimates, const char *model,
    uint64_t bytes, uint64_t prompt, uint64_t answer)
{
    uint32_t           i;
    llmgw_estimate_t  *estimate;

    i = estimate_find(estimates, model);

    if (i == 0 && estimates->n < LLMGW_ESTIMATES && model[0] != '\0') {
        i = estimates->n + 1;
        llmgw_usage_text(estimates->models[i].name, LLMGW_USAGE_MODEL_BYTES,
                         model, strlen(model));
        __atomic_store_n(&estimates->n, i, __ATOMIC_RELEASE);
    }

    estimate = &estimates->models[i];

    if (bytes > 0 && prompt > 0 && bytes <= PROMPT_BYTES_MAX
        && prompt <= PROMPT_BYTES_MAX)
    {
        estimate->bytes += bytes;
        estimate->tokens += prompt;
    }

    if (estimate->tokens > PROMPT_TOKENS_MAX) {
        estimate->bytes /= 2;
        estimate->tokens /= 2;
    }

    for (i = 0; estimate_bounds[i] && answer > estimate_bounds[i]; i++) {
        /* void */
    }

    estimate->counts[i]++;

    if (++estimate->answers > ANSWERS_MAX) {
        estimate->answers = 0;

        for (i = 0; i < LLMGW_ESTIMATE_BUCKETS; i++) {
            estimate->counts[i] /= 2;
            estimate->answers += estimate->counts[i];
        }
    }
}
