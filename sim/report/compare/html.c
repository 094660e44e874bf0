
/*
 * The comparison as one HTML page: tables and plots, without scripts and
 * without anything from elsewhere.  What is what is said in words and in
 * tables, too; colours follow light and dark.
 */

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/compare/compare.h"
#include "sim/report/compare/load.h"
#include "sim/report/compare/svg.h"


#define HTML_POINTS   400           /* of a distribution */
#define HTML_CLASSES  16            /* groups of bars that can be read */


static const char  html_head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<title>llmgw-sim compare</title>\n<style>\n"
    ":root { color-scheme: light dark; --bg: #fff; --fg: #1b1f24;"
    " --dim: #57606a; --line: #d0d7de; --heat: #0b5cad;\n"
    "  --c0: #0b5cad; --c1: #b3420b; --c2: #17713f; --c3: #7a3ea8;"
    " --c4: #8a6100; --c5: #a3195b; --c6: #00707a; --c7: #5a5a5a; }\n"
    "@media (prefers-color-scheme: dark) { :root { --bg: #14181d;"
    " --fg: #e6edf3; --dim: #9aa7b4; --line: #333c47; --heat: #7ab8ff;\n"
    "  --c0: #7ab8ff; --c1: #ff9d6b; --c2: #6fd49a; --c3: #c9a0f0;"
    " --c4: #e0b84a; --c5: #f58fbb; --c6: #5fd0d8; --c7: #b5b5b5; } }\n"
    "body { background: var(--bg); color: var(--fg); max-width: 1400px;"
    " margin: 1rem auto; padding: 0 1rem;"
    " font: 15px/1.5 system-ui, sans-serif; }\n"
    "h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }\n"
    ".scroll { overflow-x: auto; }\n"
    "table { border-collapse: collapse; }\n"
    "th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line);"
    " text-align: right; white-space: nowrap; }\n"
    "th:first-child, td:first-child { text-align: left; }\n"
    "td.words { text-align: left; white-space: normal;"
    " font-family: monospace; }\n"
    ".plots { display: grid; gap: 1rem;"
    " grid-template-columns: repeat(auto-fit, minmax(min(100%, 34rem),"
    " 1fr)); }\n"
    "figure { margin: 0; } figcaption { font-weight: 600; }\n"
    "svg { width: 100%; height: auto; }\n"
    ".label { fill: var(--dim); font-size: 12px; }\n"
    ".axis { stroke: var(--dim); } .grid { stroke: var(--line); }\n"
    ".s { fill: none; stroke-width: 2; } .heat { fill: var(--heat); }\n"
    ".s.c0 { stroke: var(--c0); } .s.c1 { stroke: var(--c1); }"
    " .s.c2 { stroke: var(--c2); } .s.c3 { stroke: var(--c3); }\n"
    ".s.c4 { stroke: var(--c4); } .s.c5 { stroke: var(--c5); }"
    " .s.c6 { stroke: var(--c6); } .s.c7 { stroke: var(--c7); }\n"
    ".f.c0 { fill: var(--c0); } .f.c1 { fill: var(--c1); }"
    " .f.c2 { fill: var(--c2); } .f.c3 { fill: var(--c3); }\n"
    ".f.c4 { fill: var(--c4); } .f.c5 { fill: var(--c5); }"
    " .f.c6 { fill: var(--c6); } .f.c7 { fill: var(--c7); }\n"
    "</style>\n</head>\n<body>\n";


/* --- tables */

static void
html_cell(FILE *out, const char *kind, const char *text)
{
    fprintf(out, "<%s>", kind);
    report_html_text(out, text);
    fprintf(out, "</%s>", kind);
}


static void
html_overview_row(const report_variant_t *v, FILE *out)
{
    double                  value;
    const report_column_t  *c;

    fputs("<tr>", out);
    html_cell(out, "td", v->name);

    for (c = report_columns; c->value != NULL; c++) {
        value = c->value(v) * c->shown;

        if (isnan(value)) {
            fputs("<td>-</td>", out);

        } else {
            fprintf(out, "<td>%.*f</td>", c->digits, value);
        }
    }

    fputs("</tr>\n", out);
}


static void
html_overview(const report_comparison_t *c, FILE *out)
{
    size_t                  i;
    const report_column_t  *column;

    fputs("<h2>Side by side</h2>\n<div class=\"scroll\"><table"
          " id=\"overview\">\n<tr><th>variant</th>", out);

    for (column = report_columns; column->value != NULL; column++) {
        html_cell(out, "th", column->heading);
    }

    fputs("</tr>\n", out);

    for (i = 0; i < c->n; i++) {
        html_overview_row(&c->variants[i], out);
    }

    fputs("</table></div>\n<h2>What was varied</h2>\n<table"
          " id=\"variants\">\n", out);

    for (i = 0; i < c->n; i++) {
        fputs("<tr>", out);
        html_cell(out, "td", c->variants[i].name);
        fputs("<td class=\"words\">", out);
        report_html_text(out, c->variants[i].words);
        fputs("</td></tr>\n", out);
    }

    fputs("</table>\n", out);
}


static void
html_pair(const char *name, const char *what, const report_pair_t *p,
    FILE *out)
{
    fputs("<tr>", out);
    html_cell(out, "td", name);
    fprintf(out, "<td>%s</td><td>%zu</td><td>%.3f</td><td>%.3f to %.3f</td>"
                 "<td>%.3f</td><td>%zu</td><td>%zu</td><td>%.2g</td></tr>\n",
            what, p->n, p->mean, p->low, p->high, p->median, p->less,
            p->more, p->p);
}


static void
html_pairs(const report_comparison_t *c, FILE *out)
{
    size_t                   i;
    const report_variant_t  *v;

    if (c->n < 2) {
        return;
    }

    fputs("<h2>Against ", out);
    report_html_text(out, c->variants[0].name);
    fputs(", request by request</h2>\n<p>Differences in ms; below 0 the"
          " variant is faster. The interval holds the mean with 95 %"
          " confidence (bootstrap); p is the sign test's.</p>\n"
          "<div class=\"scroll\"><table id=\"pairs\">\n<tr><th>variant</th>"
          "<th>time</th><th>pairs</th><th>mean</th><th>interval</th>"
          "<th>median</th><th>faster</th><th>slower</th><th>p</th></tr>\n",
          out);

    for (i = 1; i < c->n; i++) {
        v = &c->variants[i];
        html_pair(v->name, "TTFT", &v->against.ttft, out);
        html_pair(v->name, "E2E", &v->against.e2e, out);
    }

    fputs("</table></div>\n", out);
}


/* --- plots */

/* Of sorted microseconds: HTML_POINTS shares, and the times in ms. */
static void
html_cdf_series(const report_variant_t *v, const report_values_t *values,
    double *x, double *y, report_series_t *s)
{
    size_t  i, points;

    points = values->n < HTML_POINTS ? values->n : HTML_POINTS;

    for (i = 0; i < points; i++) {
        y[i] = points == 1 ? 1 : (double) i / (double) (points - 1);
        x[i] = fmax(report_percentile(values->list, values->n, y[i] * 100)
                    / 1e3, 1e-3);
    }

    s->name = v->name;
    s->x = x;
    s->y = y;
    s->n = points;
}


static int
html_cdf(const report_comparison_t *c, report_time_t time, FILE *out)
{
    double                   *points;
    size_t                    i;
    report_chart_t            chart;
    report_series_t          *series;
    const report_metrics_t   *m;

    points = malloc(2 * HTML_POINTS * c->n * sizeof(double));
    series = malloc(c->n * sizeof(*series));

    for (i = 0; points != NULL && series != NULL && i < c->n; i++) {
        m = &c->variants[i].summary.cluster;
        html_cdf_series(&c->variants[i],
                        time == REPORT_TTFT ? &m->ttft : &m->e2e,
                        points + 2 * HTML_POINTS * i,
                        points + 2 * HTML_POINTS * i + HTML_POINTS,
                        &series[i]);
    }

    memset(&chart, 0, sizeof(chart));
    chart.title = time == REPORT_TTFT ? "Time to first token"
                                      : "End to end";
    chart.description = "Share of requests that took at most so long; the"
                        " table above has the percentiles.";
    chart.x_title = "ms (logarithmic)";
    chart.y_title = "share of requests";
    chart.x_log = 1;
    chart.y_max = 1;

    if (series != NULL && points != NULL) {
        report_svg_lines(out, &chart, series, c->n);
    }

    i = series != NULL && points != NULL;
    free(series);
    free(points);

    return i ? 0 : -1;
}


static int
html_goodput(const report_comparison_t *c, FILE *out)
{
    size_t                    g, i, n;
    double                   *values;
    const char              **names, *groups[HTML_CLASSES];
    report_chart_t            chart;
    const report_attained_t  *a;
    const report_metrics_t   *m;

    m = &c->variants[0].summary.cluster;

    if (m->targets == NULL) {
        return 0;
    }

    n = m->targets->n < HTML_CLASSES ? m->targets->n : HTML_CLASSES;
    values = malloc(n * c->n * sizeof(double));
    names = malloc(c->n * sizeof(char *));

    for (g = 0; values != NULL && names != NULL && g < n; g++) {
        groups[g] = m->targets->list[g].slo_class;

        for (i = 0; i < c->n; i++) {
            names[i] = c->variants[i].name;
            a = &c->variants[i].summary.cluster.classes[g].attained;
            values[g * c->n + i] = a->injected == 0 ? NAN
                : (double) a->good / (double) a->injected;
        }
    }

    memset(&chart, 0, sizeof(chart));
    chart.title = "Goodput by class";
    chart.description = "Share of all requests of the class that completed"
                        " within all targets of the class.";
    chart.y_title = "share of requests";
    chart.y_max = 1;

    if (values != NULL && names != NULL) {
        report_svg_bars(out, &chart, groups, n, names, c->n, values);
    }

    g = values != NULL && names != NULL;
    free(values);
    free(names);

    return g ? 0 : -1;
}


static void
html_load_cells(const report_variant_t *v, const report_load_t *load,
    double max, char names[][32], FILE *out)
{
    char             title[160];
    size_t           i;
    uint32_t         first, last;
    const char      *rows[REPORT_LOAD_ROWS];
    report_cells_t   cells;

    for (i = 0; i < load->rows; i++) {
        first = (uint32_t) i * load->replicas;
        last = first + load->replicas - 1;
        last = last < v->run.result->nreplicas
               ? last : v->run.result->nreplicas - 1;
        snprintf(names[i], 32, first == last ? "%u" : "%u-%u", first, last);
        rows[i] = names[i];
    }

    snprintf(title, sizeof(title), "Load by replica: %.120s", v->name);
    memset(&cells, 0, sizeof(cells));
    cells.title = title;
    cells.description = "Requests at each replica over time: darker is more;"
                        " a row is a replica.";
    cells.x_title = "s";
    cells.x_max = load->end_us / 1e6;
    cells.rows = load->rows;
    cells.cols = REPORT_LOAD_COLS;
    cells.values = load->values;
    cells.max = max;
    cells.row_names = rows;

    report_svg_cells(out, &cells);
}


/* All maps have one scale, so they can be compared. */
static int
html_loads(const report_comparison_t *c, FILE *out)
{
    int             rc;
    char            names[REPORT_LOAD_ROWS][32];
    size_t          i, k;
    double          max;
    report_load_t  *loads;

    loads = calloc(c->n, sizeof(*loads));

    if (loads == NULL) {
        return -1;
    }

    rc = 0;
    max = 0;

    for (i = 0; i < c->n; i++) {
        rc |= report_load_init(&loads[i], &c->variants[i].run);

        for (k = 0; rc == 0 && k < loads[i].rows * REPORT_LOAD_COLS; k++) {
            max = fmax(max, loads[i].values[k]);
        }
    }

    for (i = 0; rc == 0 && i < c->n; i++) {
        html_load_cells(&c->variants[i], &loads[i], max, names, out);
    }

    for (i = 0; i < c->n; i++) {
        report_load_done(&loads[i]);
    }

    free(loads);

    return rc;
}


int
report_comparison_html(const report_comparison_t *c, FILE *out)
{
    int  rc;

    fputs(html_head, out);
    fputs("<h1>llmgw-sim compare</h1>\n<p>Workload: ", out);
    report_html_text(out, c->workload);
    fputs("</p>\n", out);

    html_overview(c, out);
    html_pairs(c, out);

    fputs("<h2>Plots</h2>\n<div class=\"plots\">\n", out);
    rc = html_cdf(c, REPORT_TTFT, out);
    rc |= html_cdf(c, REPORT_E2E, out);
    rc |= html_goodput(c, out);
    rc |= html_loads(c, out);
    fputs("</div>\n</body>\n</html>\n", out);

    return rc;
}
