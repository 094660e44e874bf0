
/*
 * Plots as inline SVG.
 *
 * All plots have one size in their own units; the page scales them.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/compare/svg.h"


#define SVG_WIDTH    640
#define SVG_HEIGHT   300
#define SVG_LEFT     64
#define SVG_RIGHT    16
#define SVG_TOP      12
#define SVG_BOTTOM   46
#define SVG_TICKS    6
#define SVG_POINTS   1000       /* of a line: more than a screen shows */
#define SVG_SHADES   10
#define SVG_KEY      16         /* the height of a line of the key */


/* From data to the drawing. */
typedef struct {
    double  x_min;
    double  x_max;
    double  y_max;
    int     x_log;
} svg_frame_t;

static const char *const  svg_dashes[REPORT_SVG_SERIES] = {
    "", "7 3", "2 3", "9 3 2 3", "4 2", "1 2", "12 4", "6 2 1 2"
};


void
report_html_text(FILE *out, const char *text)
{
    for ( ; *text != '\0'; text++) {

        switch (*text) {

        case '&':
            fputs("&amp;", out);
            break;

        case '<':
            fputs("&lt;", out);
            break;

        case '>':
            fputs("&gt;", out);
            break;

        case '"':
            fputs("&quot;", out);
            break;

        default:
            putc(*text, out);
        }
    }
}


double
report_svg_step(double max, int most)
{
    double  step;

    if (!(max > 0)) {
        return 1;
    }

    step = pow(10, floor(log10(max / most)));

    if (max / step <= most) {
        return step;
    }

    if (max / (2 * step) <= most) {
        return 2 * step;
    }

    return max / (5 * step) <= most ? 5 * step : 10 * step;
}


static double
svg_x(const svg_frame_t *f, double x)
{
    double  share;

    if (f->x_log) {
        share = (log(x) - log(f->x_min)) / (log(f->x_max) - log(f->x_min));

    } else {
        share = (x - f->x_min) / (f->x_max - f->x_min);
    }

    return SVG_LEFT + share * (SVG_WIDTH - SVG_LEFT - SVG_RIGHT);
}


static double
svg_y(const svg_frame_t *f, double y)
{
    return SVG_HEIGHT - SVG_BOTTOM
           - y / f->y_max * (SVG_HEIGHT - SVG_TOP - SVG_BOTTOM);
}


static void
svg_label(FILE *out, double x, double y, const char *anchor,
    const char *text)
{
    fprintf(out, "<text class=\"label\" x=\"%.1f\" y=\"%.1f\""
                 " text-anchor=\"%s\">", x, y, anchor);
    report_html_text(out, text);
    fputs("</text>\n", out);
}


static void
svg_begin(FILE *out, const char *title, const char *description, int height)
{
    fputs("<figure>\n<figcaption>", out);
    report_html_text(out, title);
    fprintf(out, "</figcaption>\n<svg viewBox=\"0 0 %d %d\" role=\"img\">\n"
                 "<title>", SVG_WIDTH, height);
    report_html_text(out, title);
    fputs("</title><desc>", out);
    report_html_text(out, description);
    fputs("</desc>\n", out);
}


static void
svg_end(FILE *out)
{
    fputs("</svg>\n</figure>\n", out);
}


static void
svg_line(FILE *out, const char *name, double x1, double y1, double x2,
    double y2)
{
    fprintf(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\""
                 " y2=\"%.1f\"/>\n", name, x1, y1, x2, y2);
}


/* --- axes */

static void
svg_y_axis(FILE *out, const svg_frame_t *f, const char *title)
{
    char    text[32];
    double  step, y;

    step = report_svg_step(f->y_max, SVG_TICKS);

    for (y = 0; y <= f->y_max * 1.0001; y += step) {
        svg_line(out, y == 0 ? "axis" : "grid", SVG_LEFT, svg_y(f, y),
                 SVG_WIDTH - SVG_RIGHT, svg_y(f, y));
        snprintf(text, sizeof(text), "%.6g", y);
        svg_label(out, SVG_LEFT - 6, svg_y(f, y) + 4, "end", text);
    }

    fprintf(out, "<g transform=\"translate(14 %d) rotate(-90)\">",
            (SVG_HEIGHT - SVG_BOTTOM) / 2);
    svg_label(out, 0, 0, "middle", title);
    fputs("</g>\n", out);
}


static void
svg_x_tick(FILE *out, const svg_frame_t *f, double x)
{
    char  text[32];

    svg_line(out, "grid", svg_x(f, x), SVG_TOP, svg_x(f, x),
             SVG_HEIGHT - SVG_BOTTOM);
    snprintf(text, sizeof(text), "%.6g", x);
    svg_label(out, svg_x(f, x), SVG_HEIGHT - SVG_BOTTOM + 16, "middle", text);
}


/* 1, 2 and 5 of each power of ten, or only 1 if there are many powers. */
static void
svg_log_ticks(FILE *out, const svg_frame_t *f)
{
    int     i, most;
    double  power, x;

    most = log10(f->x_max / f->x_min) > 3 ? 1 : 3;

    for (power = pow(10, floor(log10(f->x_min))); power <= f->x_max;
         power *= 10)
    {
        for (i = 0; i < most; i++) {
            x = power * (i == 0 ? 1 : i == 1 ? 2 : 5);

            if (x >= f->x_min && x <= f->x_max) {
                svg_x_tick(out, f, x);
            }
        }
    }
}


static void
svg_x_axis(FILE *out, const svg_frame_t *f, const char *title)
{
    double  step, x;

    if (f->x_log) {
        svg_log_ticks(out, f);

    } else {
        step = report_svg_step(f->x_max, SVG_TICKS);

        for (x = f->x_min; x <= f->x_max * 1.0001; x += step) {
            svg_x_tick(out, f, x);
        }
    }

    svg_label(out, (SVG_LEFT + SVG_WIDTH - SVG_RIGHT) / 2.0,
              SVG_HEIGHT - SVG_BOTTOM + 34, "middle", title);
}


static void
svg_key(FILE *out, double y, size_t i, const char *name, int line)
{
    if (line) {
        fprintf(out, "<line class=\"s c%zu\" stroke-dasharray=\"%s\""
                     " x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n",
                i % REPORT_SVG_SERIES, svg_dashes[i % REPORT_SVG_SERIES],
                SVG_LEFT, y, SVG_LEFT + 28, y);

    } else {
        fprintf(out, "<rect class=\"f c%zu\" x=\"%d\" y=\"%.1f\""
                     " width=\"28\" height=\"9\"/>\n",
                i % REPORT_SVG_SERIES, SVG_LEFT, y - 5);
    }

    svg_label(out, SVG_LEFT + 36, y + 4, "start", name);
}


/* --- lines */

static void
svg_widen(svg_frame_t *f, const report_series_t *s, double *y_max)
{
    size_t  i;

    for (i = 0; i < s->n; i++) {
        f->x_min = fmin(f->x_min, s->x[i]);
        f->x_max = fmax(f->x_max, s->x[i]);
        *y_max = fmax(*y_max, s->y[i]);
    }
}


static void
svg_frame(svg_frame_t *f, const report_chart_t *chart,
    const report_series_t *series, size_t n)
{
    size_t  i;
    double  y_max;

    f->x_log = chart->x_log;
    f->x_min = chart->x_log ? INFINITY : 0;
    f->x_max = 0;
    y_max = 0;

    for (i = 0; i < n; i++) {
        svg_widen(f, &series[i], &y_max);
    }

    if (!(f->x_min < f->x_max)) {
        f->x_min = f->x_log ? 1 : 0;
        f->x_max = f->x_min + 1;
    }

    f->y_max = chart->y_max > 0 ? chart->y_max : y_max > 0 ? y_max : 1;
}


static void
svg_polyline(FILE *out, const svg_frame_t *f, const report_series_t *s,
    size_t number)
{
    size_t  i, k, points;

    fprintf(out, "<polyline class=\"s c%zu\" stroke-dasharray=\"%s\""
                 " points=\"", number % REPORT_SVG_SERIES,
            svg_dashes[number % REPORT_SVG_SERIES]);

    points = s->n < SVG_POINTS ? s->n : SVG_POINTS;

    for (k = 0; k < points; k++) {
        i = points < 2 ? 0 : k * (s->n - 1) / (points - 1);
        fprintf(out, "%s%.1f,%.1f", k == 0 ? "" : " ", svg_x(f, s->x[i]),
                svg_y(f, s->y[i]));
    }

    fputs("\"/>\n", out);
}


void
report_svg_lines(FILE *out, const report_chart_t *chart,
    const report_series_t *series, size_t n)
{
    size_t       i;
    svg_frame_t  f;

    svg_frame(&f, chart, series, n);
    svg_begin(out, chart->title, chart->description,
              SVG_HEIGHT + (int) n * SVG_KEY);
    svg_x_axis(out, &f, chart->x_title);
    svg_y_axis(out, &f, chart->y_title);

    for (i = 0; i < n; i++) {
        svg_polyline(out, &f, &series[i], i);
    }

    for (i = 0; i < n; i++) {
        svg_key(out, SVG_HEIGHT + (double) i * SVG_KEY + 4, i,
                series[i].name, 1);
    }

    svg_end(out);
}


/* --- bars */

static void
svg_bar(FILE *out, const svg_frame_t *f, double x, double width,
    size_t number, const char *name, double value)
{
    if (isnan(value)) {
        return;
    }

    fprintf(out, "<rect class=\"f c%zu\" x=\"%.1f\" y=\"%.1f\""
                 " width=\"%.1f\" height=\"%.1f\"><title>",
            number % REPORT_SVG_SERIES, x, svg_y(f, value), width,
            svg_y(f, 0) - svg_y(f, value));
    report_html_text(out, name);
    fprintf(out, ": %.4g</title></rect>\n", value);
}


void
report_svg_bars(FILE *out, const report_chart_t *chart,
    const char *const *groups, size_t ngroups, const char *const *series,
    size_t nseries, const double *values)
{
    size_t       g, s;
    double       group_width, width, x;
    svg_frame_t  f;

    memset(&f, 0, sizeof(f));
    f.x_max = (double) ngroups;
    f.y_max = chart->y_max > 0 ? chart->y_max : 1;

    group_width = (SVG_WIDTH - SVG_LEFT - SVG_RIGHT) / (double) ngroups;
    width = group_width * 0.8 / (double) nseries;

    svg_begin(out, chart->title, chart->description,
              SVG_HEIGHT + (int) nseries * SVG_KEY);
    svg_y_axis(out, &f, chart->y_title);

    for (g = 0; g < ngroups; g++) {
        x = SVG_LEFT + ((double) g + 0.1) * group_width;

        for (s = 0; s < nseries; s++) {
            svg_bar(out, &f, x + (double) s * width, width * 0.92, s,
                    series[s], values[g * nseries + s]);
        }

        svg_label(out, x + 0.4 * group_width, SVG_HEIGHT - SVG_BOTTOM + 16,
                  "middle", groups[g]);
    }

    for (s = 0; s < nseries; s++) {
        svg_key(out, SVG_HEIGHT + (double) s * SVG_KEY + 4, s, series[s], 0);
    }

    svg_end(out);
}


/* --- cells */

static double
svg_cells_max(const report_cells_t *cells)
{
    size_t  i;
    double  max;

    max = cells->max;

    for (i = 0; cells->max <= 0 && i < cells->rows * cells->cols; i++) {
        max = fmax(max, cells->values[i]);
    }

    return max > 0 ? max : 1;
}


/* Neighbours of one shade are one rectangle. */
static void
svg_cells_row(FILE *out, const svg_frame_t *f, const report_cells_t *cells,
    size_t row, double max, double y, double height)
{
    int     shade, next;
    size_t  from, to;
    double  scale;

    scale = cells->x_max / (double) cells->cols;

    for (from = 0; from < cells->cols; from = to) {
        shade = (int) ceil(cells->values[row * cells->cols + from] / max
                           * SVG_SHADES);

        for (to = from + 1; to < cells->cols; to++) {
            next = (int) ceil(cells->values[row * cells->cols + to] / max
                              * SVG_SHADES);
            if (next != shade) {
                break;
            }
        }

        if (shade > 0) {
            fprintf(out, "<rect class=\"f heat\" fill-opacity=\"%.1f\""
                         " x=\"%.1f\" y=\"%.1f\" width=\"%.1f\""
                         " height=\"%.1f\"/>\n", (double) shade / SVG_SHADES,
                    svg_x(f, (double) from * scale), y,
                    svg_x(f, (double) to * scale)
                    - svg_x(f, (double) from * scale), height);
        }
    }
}


void
report_svg_cells(FILE *out, const report_cells_t *cells)
{
    char         text[64];
    size_t       row, every;
    double       height, max, y;
    svg_frame_t  f;

    memset(&f, 0, sizeof(f));
    f.x_max = cells->x_max > 0 ? cells->x_max : 1;
    f.y_max = 1;

    max = svg_cells_max(cells);
    height = (SVG_HEIGHT - SVG_TOP - SVG_BOTTOM) / (double) cells->rows;
    every = 1 + cells->rows / 16;

    svg_begin(out, cells->title, cells->description, SVG_HEIGHT + SVG_KEY);

    for (row = 0; row < cells->rows; row++) {
        y = SVG_TOP + (double) row * height;
        svg_cells_row(out, &f, cells, row, max, y, height * 0.94);

        if (row % every == 0) {
            svg_label(out, SVG_LEFT - 6, y + height / 2 + 4, "end",
                      cells->row_names[row]);
        }
    }

    svg_x_axis(out, &f, cells->x_title);
    snprintf(text, sizeof(text), "darkest: %.4g", max);
    svg_label(out, SVG_WIDTH - SVG_RIGHT, SVG_HEIGHT + 8, "end", text);
    svg_end(out);
}
