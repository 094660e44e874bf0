
/*
 * Plots as inline SVG: lines, bars and maps of cells.
 *
 * Colours and fonts come from the page's style sheet (class names c0, c1, ...
 * for series, and axis, grid, label), so that a plot follows the page from
 * light to dark.  Series differ in the pattern of their lines, too, not only
 * in colour.  A plot says in words what it shows (title and desc), for those
 * who do not see it.
 */

#ifndef REPORT_SVG_H
#define REPORT_SVG_H

#include <stddef.h>
#include <stdio.h>


#define REPORT_SVG_SERIES  8        /* with colours of their own */

typedef struct {
    const char     *name;
    const double   *x;
    const double   *y;
    size_t          n;
} report_series_t;

typedef struct {
    const char     *title;
    const char     *description;
    const char     *x_title;
    const char     *y_title;
    int             x_log;          /* every x is above 0 */
    double          y_max;          /* 0: of the data */
} report_chart_t;

/* Cells of values 0 to max; row by row. */
typedef struct {
    const char     *title;
    const char     *description;
    const char     *x_title;
    double          x_max;          /* the right edge; the left one is 0 */
    size_t          rows;
    size_t          cols;
    const double   *values;
    double          max;            /* 0: of the data */
    const char    **row_names;
} report_cells_t;


/* Text for HTML, and for attributes in double quotes. */
void report_html_text(FILE *out, const char *text);

void report_svg_lines(FILE *out, const report_chart_t *chart,
    const report_series_t *series, size_t n);

/* values[group * nseries + series]; NaN: no bar. */
void report_svg_bars(FILE *out, const report_chart_t *chart,
    const char *const *groups, size_t ngroups, const char *const *series,
    size_t nseries, const double *values);

void report_svg_cells(FILE *out, const report_cells_t *cells);

/* Steps of 1, 2 or 5 times a power of ten: at most `most` from 0 to max. */
double report_svg_step(double max, int most);

#endif /* REPORT_SVG_H */
