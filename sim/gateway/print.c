
/* The counts of a run, for people. */

#include <inttypes.h>

#include "core/resume.h"
#include "sim/gateway/gateway.h"


static void
print_count(FILE *out, const char *what, uint64_t n)
{
    fprintf(out, "%s: %" PRIu64 "\n", what, n);
}


void
gateway_print(FILE *out, const gateway_counts_t *counts)
{
    char    what[64];
    size_t  i;

    fprintf(out, "=== Gateway ===\n");
    print_count(out, "Streams lost", counts->lost);
    print_count(out, "Refused, queue full", counts->refused_queue);
    print_count(out, "Refused, queue timeout", counts->refused_timeout);
    print_count(out, "Refused, circuits open", counts->refused_open);
    print_count(out, "Refused, no replica", counts->refused_none);
    print_count(out, "Attempts", counts->attempts);
    print_count(out, "Turned away by replicas", counts->turned_away);

    for (i = 0; i < sizeof(counts->failed) / sizeof(uint64_t); i++) {
        if (counts->failed[i] != 0) {
            (void) snprintf(what, sizeof(what), "Attempts failed, %s",
                            llmgw_cause_name((llmgw_cause_t) i));
            print_count(out, what, counts->failed[i]);
        }
    }

    print_count(out, "Failovers in mid-stream", counts->failovers);
    print_count(out, "Tokens computed again", counts->resumed_tokens);
    print_count(out, "Requests queued", counts->queued);
    print_count(out, "Queue peak", counts->queue_peak);
    print_count(out, "Overtaken in the queue", counts->overtaken);
    print_count(out, "Hedges", counts->hedges);
    print_count(out, "Hedges won", counts->hedges_won);
    print_count(out, "Circuits opened", counts->opened);
    print_count(out, "Requests at a replica, peak", counts->capacity_peak);
    print_count(out, "Faults", counts->faults);
    print_count(out, "Replicas updated", counts->updated);
    print_count(out, "Places left taken", counts->left_in_flight);
    fprintf(out, "Slowest news: %.3f ms\n", (double) counts->news_max_us / 1e3);
}
