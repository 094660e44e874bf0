
/*
 * Several runs over one workload, side by side, and each paired with the first
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
    uint64_t             only_here;     /* completed here, not there */
    uint64_t             only_there;
} report_against_t;

typedef struct {
    const char          *name;
    const char          *words;         /* its options, beside the common */
    report_run_t         run;
    report_summary_t     summary;
    report_against_t     against;       /* of the first: all 0 */
} report_variant_t;

typedef struct {
    const char          *workload;      /* in words */
    report_variant_t    *variants;      /* the first is the baseline */
    size_t               n;
} report_comparison_t;


/* A column of the overview: text and HTML show it, JSON has some of them. */
typedef struct {
    const char          *key;           /* in JSON; NULL: the block of the
                                           cluster has it */
    const char          *label;         /* in text; NULL: not there */
    const char          *heading;       /* in HTML */
    int                  width;         /* of the label's column */
    int                  digits;
    double               shown;         /* times the value: 100 of a share */
    double             (*value)(const report_variant_t *v);     /* NaN: none */
} report_column_t;

/* The one without a value is the end. */
extern const report_column_t  report_columns[];

/* Sums up and pairs: 0, or -1 without memory. */
int report_comparison_init(report_comparison_t *c, uint64_t seed);
void report_comparison_done(report_comparison_t *c);

void report_comparison_text(const report_comparison_t *c, FILE *out);
void report_comparison_json(const report_comparison_t *c, FILE *out);

/* The members of its object. */
void report_comparison_members(const report_comparison_t *c,
    report_json_t *json);

/* One page that needs nothing else (sim/page/).  0, or -1 without memory. */
int report_comparison_html(const report_comparison_t *c, FILE *out);

/* Good of all injected, over all classes with a target; NaN: no targets. */
double report_variant_goodput(const report_variant_t *v);

#endif /* REPORT_COMPARE_H */
