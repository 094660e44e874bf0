
/*
 * Fitness of a run.
 */

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/fitness.h"


#define FITNESS_RPS     100.0       /* a rate with this value has the figure
                                       1/2; so below */
#define FITNESS_TPS     10000.0
#define FITNESS_US      1000.0
#define FITNESS_BYTES   64          /* of a pair KEY:WEIGHT */


const char *const  report_fitness_keys[REPORT_FITNESS_KEYS] = {
    "mean_e2e", "mean_ttft", "p50_e2e", "p50_ttft", "p99_e2e", "p99_ttft",
    "throughput", "tokens_per_sec"
};


static const char *
fitness_pair(report_fitness_t *f, char *pair)
{
    char    *colon, *end;
    size_t   i;
    double   weight;

    colon = strchr(pair, ':');

    if (colon == NULL) {
        return "is not KEY:WEIGHT";
    }

    weight = strtod(colon + 1, &end);
    end += strspn(end, " ");

    if (end == colon + 1 || *end != '\0' || !isfinite(weight) || weight < 0) {
        return "has a weight that is no number from 0 on";
    }

    while (colon > pair && isspace((unsigned char) colon[-1])) {
        colon--;
    }

    *colon = '\0';

    for (i = 0; i < REPORT_FITNESS_KEYS; i++) {
        if (strcmp(pair, report_fitness_keys[i]) == 0) {
            f->n += !f->is_given[i];
            f->is_given[i] = 1;
            f->weight[i] = weight;
            return NULL;
        }
    }

    return "is none of mean_e2e, mean_ttft, p50_e2e, p50_ttft, p99_e2e,"
           " p99_ttft, throughput, tokens_per_sec";
}


int
report_fitness_parse(report_fitness_t *fitness, const char *text,
    char *error, size_t size)
{
    char         pair[FITNESS_BYTES];
    size_t       len;
    const char  *wrong;

    memset(fitness, 0, sizeof(*fitness));

    for ( ; ; text += len + 1) {
        text += strspn(text, " ");
        len = strcspn(text, ",");

        snprintf(pair, sizeof(pair), "%.*s", (int) len, text);
        wrong = len < sizeof(pair) ? fitness_pair(fitness, pair)
                                   : "is too long";

        if (wrong != NULL) {
            snprintf(error, size, "\"%s\" %s", pair, wrong);
            return -1;
        }

        if (text[len] == '\0') {
            return 0;
        }
    }
}


static double
fitness_rate(const report_summary_t *s, int64_t count, double half)
{
    double  rate, seconds;

    seconds = (double) s->cluster.ended_us / 1e6;

    if (!(seconds > 0) || s->cluster.completed == 0) {
        return 0;
    }

    rate = (double) count / seconds;

    return rate / (rate + half);
}


static double
fitness_time(double us)
{
    return 1.0 / (1.0 + us / FITNESS_US);
}


double
report_fitness_value(const report_summary_t *s, size_t key)
{
    switch (key) {

    case 0:
        return fitness_time(s->e2e.mean);

    case 1:
        return fitness_time(s->ttft.mean);

    case 2:
        return fitness_time(s->e2e.p50);

    case 3:
        return fitness_time(s->ttft.p50);

    case 4:
        return fitness_time(s->e2e.p99);

    case 5:
        return fitness_time(s->ttft.p99);

    case 6:
        return fitness_rate(s, s->cluster.completed, FITNESS_RPS);

    default:
        return fitness_rate(s, s->cluster.output_tokens, FITNESS_TPS);
    }
}


double
report_fitness_score(const report_fitness_t *fitness,
    const report_summary_t *s)
{
    size_t  i;
    double  score;

    score = 0;

    for (i = 0; i < REPORT_FITNESS_KEYS; i++) {
        if (fitness->is_given[i]) {
            score += report_fitness_value(s, i) * fitness->weight[i];
        }
    }

    return score;
}
