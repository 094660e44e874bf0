
#include "replica/shard/flow/flow_inner.h"


/* Rows that were sent are freed; rows that are still to be sent stay. */
static void
history_drop(flow_t *flow)
{
    size_t  i;
    hop_t  *hop;

    flow->is_kept = 0;
    flow->flows->evictions++;

    for (i = 1; i < flow->nhops; i++) {
        hop = flow->hops[i];
        rows_trim(&hop->in, hop->next);
    }
}


void
history_bound(flows_t *flows)
{
    flow_t  *flow;

    audits_drop(flows);

    for (flow = flows->first;
         flow != NULL && flows->history_bytes > flows->options.history_max;
         flow = flow->next)
    {
        if (flow->is_kept && !flow->is_lost && !flow->is_closed) {
            history_drop(flow);
        }
    }
}
