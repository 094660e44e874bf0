
/*
 * Several runs over one workload, side by side; each is paired with the first
 * one, request by request.
 */

#ifndef REPORT_COMPARE_H
#define REPORT_COMPARE_H

#include <stdio.h>

#include "sim/report/figure/json.h"
#include "sim/report/figure/pair.h"
#include "sim/report/summary.h"


/* Differences in ms: the variant's time less the baseline's. */
typedef struct {
    report_pair_t        ttft;
    report_pair_t        e2e;
    uint64_t             only_here;     /* completed in the variant only */
    uint64_t             only_there;
} report_against_t;

typedef struct {
    const char          *name;
    const char          *words;         /* its own options */
    report_run_t         run;
    report_summary_t     summary;
    report_against_t     against;       /* of the first one: all 0 */
} report_variant_t;

typedef struct {
    const char          *workload;      /* described in words */
    report_variant_t    *variants;      /* the first is the baseline */
    size_t               n;
} report_comparison_t;


/* A column of the overview: text and HTML show it, JSON has some of them. */
typedef struct {
    const char          *key;           /* in JSON; NULL: it is in the cluster's
                                           metrics block */
    const char          *label;         /* in text; NULL: text omits it */
    const char          *heading;       /* in HTML */
    int                  width;         /* of the column in text */
    int                  digits;
    double               shown;         /* factor to show it: 100 for shares */
    double             (*value)(const report_variant_t *v);     /* NaN: none */
} report_column_t;

/* Ends with a column whose `value` is NULL. */
extern const report_column_t  report_columns[];

/* Computes summaries and pairs.  0, or -1: no memory. */
int report_comparison_init(report_comparison_t *c, uint64_t seed);
void report_comparison_done(report_comparison_t *c);

void report_comparison_text(const report_comparison_t *c, FILE *out);
void report_comparison_json(const report_comparison_t *c, FILE *out);

/* Writes the members of the comparison's JSON object. */
void report_comparison_members(const report_comparison_t *c,
    report_json_t *json);

/* Writes one page that loads nothing else (sim/page/).  0, or -1: no memory. */
int report_comparison_html(const report_comparison_t *c, FILE *out);

/*
 * Good requests as a share of all injected, over the classes with a target;
 * NaN: there are no targets.
 */
double report_variant_goodput(const report_variant_t *v);

#endif /* REPORT_COMPARE_H */
