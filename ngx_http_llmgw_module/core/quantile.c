
/* See quantile.h. */

#include "core/quantile.h"


double
llmgw_quantile(const uint64_t *bounds, const uint64_t *counts,
    unsigned permille)
{
    double    rank, below;
    uint64_t  total, seen, i;

    total = 0;

    for (i = 0; bounds[i]; i++) {
        total += counts[i];
    }

    total += counts[i];

    if (total == 0) {
        return -1;
    }

    rank = (double) total * permille / 1000;
    seen = 0;
    below = 0;

    for (i = 0; bounds[i]; i++) {
        if (counts[i] && (double) (seen + counts[i]) >= rank) {
            return below + ((double) bounds[i] - below)
                           * (rank - (double) seen) / (double) counts[i];
        }

        seen += counts[i];
        below = (double) bounds[i];
    }

    return below;
}
