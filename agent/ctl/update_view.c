
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ctl/field.h"
#include "ctl/update_view.h"


#define VIEW_BAR_CELLS   24
#define VIEW_LINE_BYTES  512

/* The number of rows, if a terminal does not report its size. */
#define VIEW_ROWS        24
#define VIEW_COLUMNS     80

/* Rows that are not steps: the heading, and the line of the cursor. */
#define VIEW_OTHER_ROWS  3


static int
view_is(const json_t *step, const char *state)
{
    return strcmp(ctl_text(step, "step"), state) == 0;
}


static int
view_has_ended(const json_t *step)
{
    static const char *const  ends[] = {
        "done", "skipped", "absent", "undone", "failed"
    };

    size_t  i;

    for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (view_is(step, ends[i])) {
            return 1;
        }
    }

    return 0;
}


/* --- lines */

/* Writes "drain, 3 running, 4 s". */
static void
view_describe(const json_t *step, char *text, size_t size)
{
    size_t   n;
    json_t  *streams;

    n = snprintf(text, size, "%s", ctl_text(step, "step"));
    streams = json_object_get(step, "active_requests");

    if (view_is(step, "drain") && streams != NULL && n < size) {
        n += snprintf(text + n, size - n, ", %" JSON_INTEGER_FORMAT
                      " running", json_integer_value(streams));
    }

    streams = json_object_get(step, "streams_left");

    if (streams != NULL && n < size) {
        n += snprintf(text + n, size - n, ", drain timed out with %"
                      JSON_INTEGER_FORMAT " running",
                      json_integer_value(streams));
    }

    if (ctl_number(step, "ms") >= 1000 && !view_has_ended(step) && n < size)
    {
        n += snprintf(text + n, size - n, ", %" JSON_INTEGER_FORMAT " s",
                      ctl_number(step, "ms") / 1000);
    }

    if (json_object_get(step, "error") != NULL && n < size) {
        snprintf(text + n, size - n, "%s at %s: %s",
                 view_is(step, "failed") ? "" : ", failed",
                 ctl_text(step, "failed_at"), ctl_text(step, "error"));
    }
}


static const char *
view_colour(const json_t *step)
{
    if (view_is(step, "done") || view_is(step, "skipped")) {
        return "\033[32m";
    }

    if (view_is(step, "failed") || json_object_get(step, "error") != NULL) {
        return "\033[31m";
    }

    return view_has_ended(step) || view_is(step, "waiting") ? "\033[2m"
                                                            : "\033[36m";
}


static void
view_measure(int *rows, int *columns)
{
    struct winsize  size;

    *rows = VIEW_ROWS;
    *columns = VIEW_COLUMNS;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0
        && size.ws_col > 0)
    {
        *rows = size.ws_row;
        *columns = size.ws_col;
    }
}


/* Prints one line of the drawing, no wider than the terminal. */
static void
view_put(ctl_update_view_t *view, const char *colour, int columns,
    const char *line)
{
    printf("\033[K%s%.*s%s\n", view->has_colours ? colour : "", columns - 1,
           line, view->has_colours && colour[0] ? "\033[0m" : "");
    view->nlines++;
}


static void
view_put_heading(ctl_update_view_t *view, int columns)
{
    int         i, filled;
    char        bar[VIEW_BAR_CELLS + 1];
    char        line[VIEW_LINE_BYTES];
    json_int_t  done, total;

    done = ctl_number(view->update, "done");
    total = ctl_number(view->update, "total");
    filled = total > 0 ? done * VIEW_BAR_CELLS / total : VIEW_BAR_CELLS;

    for (i = 0; i < VIEW_BAR_CELLS; i++) {
        bar[i] = i < filled ? '#' : '-';
    }

    bar[i] = '\0';

    snprintf(line, sizeof(line), "to %s  [%s]  %" JSON_INTEGER_FORMAT " of %"
             JSON_INTEGER_FORMAT, ctl_text(view->update, "to"), bar, done,
             total);
    view_put(view, "\033[1m", columns, line);
}


/*
 * Returns the first row to draw.  If not all rows fit, rows of steps that are
 * over are left out, from the top.
 */
static size_t
view_first_row(const json_t *steps, size_t rows)
{
    size_t  i, n;

    n = json_array_size(steps);

    for (i = 0; i + rows < n; i++) {
        if (!view_has_ended(json_array_get(steps, i))) {
            break;
        }
    }

    return i;
}


static void
view_widen(const json_t *steps, int *id_width, int *from_width)
{
    int      len;
    size_t   i;
    json_t  *step;

    json_array_foreach(steps, i, step) {
        len = strlen(ctl_text(step, "id"));
        *id_width = len > *id_width ? len : *id_width;
        len = strlen(ctl_text(step, "from"));
        *from_width = len > *from_width ? len : *from_width;
    }
}


static void
view_put_steps(ctl_update_view_t *view, int rows, int columns)
{
    int      id_width, from_width;
    char     how[VIEW_LINE_BYTES / 2], line[VIEW_LINE_BYTES];
    size_t   i, end;
    json_t  *steps, *step;

    steps = json_object_get(view->update, "steps");
    rows = rows > VIEW_OTHER_ROWS ? rows - VIEW_OTHER_ROWS : 1;
    i = view_first_row(steps, rows);
    end = i + rows;
    id_width = 2;
    from_width = 1;
    view_widen(steps, &id_width, &from_width);

    for ( /* void */ ; i < end && i < json_array_size(steps); i++) {
        step = json_array_get(steps, i);
        view_describe(step, how, sizeof(how));
        snprintf(line, sizeof(line), "  %-*s  %-*s  %s", id_width,
                 ctl_text(step, "id"), from_width, ctl_text(step, "from"),
                 how);
        view_put(view, view_colour(step), columns, line);
    }
}


/* Draws over the last drawing, in its place. */
static void
view_draw(ctl_update_view_t *view)
{
    int  rows, columns;

    if (view->nlines > 0) {
        printf("\033[%dA", view->nlines);
    }

    view->nlines = 0;
    view_measure(&rows, &columns);
    view_put_heading(view, columns);
    view_put_steps(view, rows, columns);
    printf("\033[J");
    fflush(stdout);
}


static void
view_print_step(const json_t *step)
{
    char  how[VIEW_LINE_BYTES];

    view_describe(step, how, sizeof(how));
    printf("%s: %s\n", ctl_text(step, "id"), how);
    fflush(stdout);
}


/* --- events */

/* The fields that an event has about a step replace the known ones. */
static void
view_take_step(ctl_update_view_t *view, json_t *news)
{
    size_t   i;
    json_t  *steps, *step;

    steps = json_object_get(view->update, "steps");

    json_array_foreach(steps, i, step) {
        if (strcmp(ctl_text(step, "id"), ctl_text(news, "id")) == 0) {
            json_array_set(steps, i, news);
            return;
        }
    }
}


static void
view_take(ctl_update_view_t *view, const json_t *event)
{
    size_t   i;
    json_t  *step;

    json_object_set(view->update, "done", json_object_get(event, "done"));

    if (strcmp(ctl_text(event, "event"), "step") == 0) {
        view_take_step(view, (json_t *) event);
    }

    json_array_foreach(json_object_get(event, "steps"), i, step) {
        view_take_step(view, step);
    }
}


static void
view_begin(ctl_update_view_t *view, const json_t *event)
{
    json_decref(view->update);
    view->update = json_incref(json_object_get(event, "update"));

    printf("update %s to %s%s\n", ctl_text(view->update, "id"),
           ctl_text(view->update, "to"),
           json_is_true(json_object_get(event, "attached"))
           ? " is running already" : "");
    fflush(stdout);
}


void
ctl_update_view_init(ctl_update_view_t *view, int has_colours)
{
    const char  *term;

    memset(view, 0, sizeof(ctl_update_view_t));
    term = getenv("TERM");
    view->has_colours = has_colours;
    view->is_live = isatty(STDOUT_FILENO) && term != NULL
                    && strcmp(term, "dumb") != 0;
}


void
ctl_update_view_event(void *data, const json_t *event)
{
    ctl_update_view_t  *view = data;

    if (strcmp(ctl_text(event, "event"), "update") == 0) {
        view_begin(view, event);

    } else if (view->update != NULL) {
        view_take(view, event);
    }

    if (view->is_live && view->update != NULL) {
        view_draw(view);

    } else if (strcmp(ctl_text(event, "event"), "step") == 0) {
        view_print_step(event);
    }
}


static void
view_print_plan(const json_t *plan)
{
    int      id_width, from_width;
    size_t   i;
    json_t  *steps, *step;

    steps = json_object_get(plan, "steps");
    id_width = 2;
    from_width = 1;
    view_widen(steps, &id_width, &from_width);

    printf("to %s, %" JSON_INTEGER_FORMAT " at once, %" JSON_INTEGER_FORMAT
           " stay routable\n", ctl_text(plan, "to"),
           ctl_number(plan, "max_unavailable"),
           ctl_number(plan, "min_available"));

    json_array_foreach(steps, i, step) {
        printf("  %-*s  %-*s  %s", id_width, ctl_text(step, "id"),
               from_width, ctl_text(step, "from"), ctl_text(step, "by"));

        /* a standby of a group never is READY */
        if (json_object_get(step, "group") != NULL) {
            printf(", of group %s\n", ctl_text(step, "group"));

        } else {
            printf("%s\n", json_is_true(json_object_get(step, "ready"))
                           ? "" : ", not READY");
        }
    }
}


void
ctl_update_view_end(ctl_update_view_t *view, const json_t *answer)
{
    json_t  *update, *plan;

    update = json_object_get(answer, "update");
    plan = json_object_get(answer, "plan");

    if (plan != NULL) {
        view_print_plan(plan);
        return;
    }

    /* a refusal names the running update, which has not ended */
    if (!json_is_object(update)) {
        return;
    }

    json_decref(view->update);
    view->update = json_incref(update);

    if (view->is_live) {
        view_draw(view);
    }

    printf("%s: %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
           " have version %s\n", ctl_text(update, "state"),
           ctl_number(update, "done"), ctl_number(update, "total"),
           ctl_text(update, "to"));
}


void
ctl_update_view_done(ctl_update_view_t *view)
{
    json_decref(view->update);
}
