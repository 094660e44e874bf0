
/*
 * The comparison as one HTML page: sim/page/, with a JSON document that its
 * script draws.  The document has what --json prints, and in addition:
 *
 *     columns   of the overview: their headings and digits
 *     plots     for each variant, in their order:
 *       figures         by column; null: none
 *       ttft_ms e2e_ms  the times that 0 to 100 % of the requests took at most
 *       load            requests at a replica, in equal parts of the run
 *
 * The writer of JSON escapes <, so no text can end the document's element.
 */

#include <math.h>

#include "comparison.h"
#include "sim/report/compare/compare.h"
#include "sim/report/compare/load.h"


#define PAGE_PARTS  400         /* points of a distribution */


static double
page_round(double value)
{
    return round(value * 1e3) / 1e3;
}


static void
page_columns(report_json_t *json)
{
    const report_column_t  *c;

    report_json_array(json, "columns");

    for (c = report_columns; c->value != NULL; c++) {
        report_json_object(json, NULL);
        report_json_string(json, "heading", c->heading);
        report_json_int(json, "digits", c->digits);
        report_json_end(json);
    }

    report_json_end(json);
}


static void
page_figures(const report_variant_t *v, report_json_t *json)
{
    const report_column_t  *c;

    report_json_array(json, "figures");

    for (c = report_columns; c->value != NULL; c++) {
        report_json_double(json, NULL, c->value(v) * c->shown);
    }

    report_json_end(json);
}


/* Distribution of sorted microseconds. */
static void
page_distribution(const char *key, const report_values_t *values,
    report_json_t *json)
{
    size_t  i;

    report_json_array(json, key);

    for (i = 0; values->n > 0 && i <= PAGE_PARTS; i++) {
        report_json_double(json, NULL, page_round(
            report_percentile(values->list, values->n,
                              (double) i * 100 / PAGE_PARTS) / 1e3));
    }

    report_json_end(json);
}


static int
page_load(const report_variant_t *v, report_json_t *json)
{
    size_t         row, col;
    report_load_t  load;

    if (report_load_init(&load, &v->run) != 0) {
        return -1;
    }

    report_json_object(json, "load");
    report_json_double(json, "seconds", load.end_us / 1e6);
    report_json_uint(json, "replicas", v->run.result->nreplicas);
    report_json_uint(json, "replicas_a_row", load.replicas);
    report_json_array(json, "rows");

    for (row = 0; row < load.rows; row++) {
        report_json_array(json, NULL);

        for (col = 0; col < REPORT_LOAD_COLS; col++) {
            report_json_double(json, NULL, page_round(
                load.values[row * REPORT_LOAD_COLS + col]));
        }

        report_json_end(json);
    }

    report_json_end(json);
    report_json_end(json);
    report_load_done(&load);

    return 0;
}


static int
page_plots(const report_variant_t *v, report_json_t *json)
{
    int  rc;

    report_json_object(json, NULL);
    page_figures(v, json);
    page_distribution("ttft_ms", &v->summary.cluster.ttft, json);
    page_distribution("e2e_ms", &v->summary.cluster.e2e, json);
    rc = page_load(v, json);
    report_json_end(json);

    return rc;
}


int
report_comparison_html(const report_comparison_t *c, FILE *out)
{
    int            rc;
    size_t         i;
    report_json_t  json;

    fwrite(llmgw_comparison_head, 1, sizeof(llmgw_comparison_head), out);
    report_json_init(&json, out, 0);
    report_json_object(&json, NULL);
    report_comparison_members(c, &json);
    page_columns(&json);
    report_json_array(&json, "plots");

    for (i = 0, rc = 0; rc == 0 && i < c->n; i++) {
        rc = page_plots(&c->variants[i], &json);
    }

    report_json_end(&json);
    report_json_end(&json);
    fwrite(llmgw_comparison_tail, 1, sizeof(llmgw_comparison_tail), out);

    return rc;
}
