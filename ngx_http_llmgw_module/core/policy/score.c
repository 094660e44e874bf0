
/* Tables of scorers. */

#include "core/policy/name.h"
#include "core/policy/score.h"


const llmgw_scorer_t *const  llmgw_scorers[] = { LLMGW_SCORERS, NULL };


const llmgw_scorer_t *
llmgw_scorer_find(const llmgw_scorer_t *const *scorers, const char *name,
    size_t len)
{
    while (*scorers != NULL && !llmgw_name_is((*scorers)->name, name, len)) {
        scorers++;
    }

    return *scorers;
}


int
llmgw_scoring_is_cold(const llmgw_scoring_t *scoring)
{
    uint32_t  i;

    for (i = 0; i < scoring->n; i++) {
        if (scoring->candidates[i].cached != 0) {
            return 0;
        }
    }

    return 1;
}
