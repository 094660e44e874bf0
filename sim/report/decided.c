
/*
 * The decisions of a run, counted and written down.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/decided.h"
#include "sim/report/figure/number.h"
#include "sim/report/requests.h"


#define DECIDED_COPY_BYTES  65536


int
report_decided_init(report_decided_t *d, uint32_t ntargets)
{
    memset(d, 0, sizeof(*d));

    d->ntargets = ntargets;
    d->targets = calloc(ntargets, sizeof(uint64_t));

    return d->targets == NULL ? -1 : 0;
}


void
report_decided_done(report_decided_t *d)
{
    if (d->table != NULL) {
        fclose(d->table);
    }

    if (d->routings != NULL) {
        fclose(d->routings);
    }

    free(d->targets);
    memset(d, 0, sizeof(*d));
}


int
report_decided_table(report_decided_t *d, const char *path)
{
    d->table = fopen(path, "w");

    if (d->table == NULL) {
        return -1;
    }

    d->routings = tmpfile();

    if (d->routings == NULL) {
        return -1;
    }

    fputs("clock_us\trequest_id\tkind\tchosen_or_admitted\treason\tregret"
          "\tcandidates(id:score:queue:batch:inflight:kvutil:freeblocks)\n",
          d->table);

    return 0;
}


static void
decided_candidate(FILE *out, const fleet_ranked_t *c, int is_first)
{
    char  score[REPORT_NUMBER_BYTES], kv[REPORT_NUMBER_BYTES];

    /* Without load a score may be -0. */
    report_number(c->score == 0 ? 0 : c->score, score);
    report_number(c->kv_utilization, kv);

    fprintf(out, "%s%u:%s:%d:%d:%d:%s:%u", is_first ? "" : " ", c->replica,
            score, c->queue_depth, c->batch_size, c->in_flight, kv,
            c->free_blocks);
}


static void
decided_choice(FILE *out, const fleet_decision_t *decision)
{
    char      regret[REPORT_NUMBER_BYTES];
    uint32_t  i;

    static const char *const  kinds[] = {
        [FLEET_DECISION_ADMISSION] = "admission",
        [FLEET_DECISION_ROUTING] = "routing",
        [FLEET_DECISION_DECODE] = "decode",
        [FLEET_DECISION_PREFILL] = "prefill"
    };

    report_number(decision->regret, regret);
    fprintf(out, "%" PRId64 "\t%s\t%s\t%u\t%s\t%s\t", decision->clock_us,
            report_request_number(decision->request), kinds[decision->kind],
            decision->chosen, decision->reason, regret);

    for (i = 0; i < decision->ntop; i++) {
        decided_candidate(out, &decision->top[i], i == 0);
    }

    putc('\n', out);
}


void
report_decided(void *data, const fleet_decision_t *decision)
{
    report_decided_t  *d;

    d = data;

    if (decision->kind == FLEET_DECISION_ADMISSION) {
        d->admitted += (uint64_t) decision->is_admitted;
        d->rejected += !decision->is_admitted;

        if (d->table != NULL) {
            fprintf(d->table, "%" PRId64 "\t%s\tadmission\t%s\t%s\t\t\n",
                    decision->clock_us,
                    report_request_number(decision->request),
                    decision->is_admitted ? "True" : "False",
                    decision->reason);
        }

        return;
    }

    if (decision->kind == FLEET_DECISION_ROUTING) {
        d->routed++;
        d->targets[decision->chosen]++;
        d->regret_sum += decision->regret;

        if (decision->regret > d->regret_max) {
            d->regret_max = decision->regret;
        }
    }

    if (d->routings != NULL) {
        decided_choice(d->routings, decision);
    }
}


int
report_decided_finish(report_decided_t *d)
{
    char    buf[DECIDED_COPY_BYTES];
    size_t  n;

    if (d->table == NULL) {
        return 0;
    }

    rewind(d->routings);

    while ((n = fread(buf, 1, sizeof(buf), d->routings)) > 0) {
        fwrite(buf, 1, n, d->table);
    }

    if (ferror(d->routings) || ferror(d->table)) {
        errno = EIO;
        return -1;
    }

    n = (size_t) fclose(d->table);
    d->table = NULL;

    return n == 0 ? 0 : -1;
}


/* --- the trace summary */

typedef struct {
    char      name[24];
    uint64_t  n;
} decided_target_t;


static int
decided_cmp(const void *a, const void *b)
{
    return strcmp(((const decided_target_t *) a)->name,
                  ((const decided_target_t *) b)->name);
}


/* Sorted by name, so instance_10 is before instance_2. */
static void
decided_targets(const report_decided_t *d, uint32_t unique, FILE *out)
{
    uint32_t           i, n;
    decided_target_t  *targets;

    targets = malloc(unique * sizeof(*targets));

    if (targets == NULL) {
        return;
    }

    for (i = 0, n = 0; i < d->ntargets; i++) {
        if (d->targets[i] > 0) {
            snprintf(targets[n].name, sizeof(targets[n].name), "instance_%u",
                     i);
            targets[n++].n = d->targets[i];
        }
    }

    qsort(targets, n, sizeof(*targets), decided_cmp);
    fputs("Target Distribution:\n", out);

    for (i = 0; i < n; i++) {
        fprintf(out, "  %s: %" PRIu64 "\n", targets[i].name, targets[i].n);
    }

    free(targets);
}


void
report_decided_text(const report_decided_t *d, FILE *out)
{
    uint32_t  i, unique;

    for (i = 0, unique = 0; i < d->ntargets; i++) {
        unique += d->targets[i] > 0;
    }

    fprintf(out, "=== Trace Summary ===\nTotal Decisions: %" PRIu64 "\n"
                 "  Admitted: %" PRIu64 "\n  Rejected: %" PRIu64 "\n"
                 "Unique Targets: %u\n", d->admitted + d->rejected,
            d->admitted, d->rejected, unique);

    if (unique > 0) {
        decided_targets(d, unique, out);
    }

    fprintf(out, "Mean Regret: %.6f\nMax Regret: %.6f\n",
            d->routed == 0 ? 0 : d->regret_sum / (double) d->routed,
            d->regret_max);
}
