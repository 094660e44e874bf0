
/*
 * Checks rules of a specification that concern more than one of its values.
 */

#include "sim/work/spec/spec.h"

#include <string.h>


static int
is_one_of(const char *text, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcmp(text, *words) == 0) {
            return 1;
        }
    }

    return 0;
}


static int
has_text(const char *text)
{
    return text != NULL && text[0] != '\0';
}


static int
check_class(const work_client_t *c, const char *file, work_error_t *error)
{
    static const char *const  classes[] = { "critical", "standard",
                                            "sheddable", "batch",
                                            "background", NULL };

    if (has_text(c->slo_class) && !is_one_of(c->slo_class, classes)) {
        return work_fail(error, file, c->at.line, "\"slo_class\" is \"%.40s\","
                         " not critical, standard, sheddable, batch or "
                         "background", c->slo_class);
    }

    return 0;
}


static int
check_arrival(const work_arrival_t *a, size_t line, const char *file,
    work_error_t *error)
{
    static const char *const  processes[] = { "poisson", "gamma", "weibull",
                                              "constant", NULL };

    if (a == NULL) {
        return work_fail(error, file, line, "\"arrival\" is missing");
    }

    if (!has_text(a->process) || !is_one_of(a->process, processes)) {
        return work_fail(error, file, a->at.line, "\"process\" is \"%.40s\", "
                         "not poisson, gamma, weibull or constant",
                         a->process != NULL ? a->process : "");
    }

    if (a->has_shape != a->has_scale) {
        return work_fail(error, file, a->at.line,
                         "\"shape\" and \"scale\" need each other");
    }

    if (strcmp(a->process, "weibull") == 0 && a->has_cv && !a->has_shape
        && !(a->cv >= 0.01 && a->cv <= 10.4))
    {
        return work_fail(error, file, a->at.line,
                         "the \"cv\" of weibull is %g, not 0.01 to 10.4",
                         a->cv);
    }

    return 0;
}


static int
check_dist(const work_dist_t *d, const char *key, size_t line,
    const char *file, work_error_t *error)
{
    int            rc;
    work_arena_t   scratch;
    work_sample_t  sample;

    if (d == NULL) {
        return work_fail(error, file, line, "\"%s\" is missing", key);
    }

    memset(&scratch, 0, sizeof(scratch));
    rc = work_sample_make(&sample, d, file, &scratch, error);
    work_arena_done(&scratch);

    return rc;
}


static int
check_window(const work_window_t *w, const char *file, work_error_t *error)
{
    if (w->end_us <= w->start_us) {
        return work_fail(error, file, w->at.line,
                         "\"end_us\" is not after \"start_us\"");
    }

    if (w->arrival != NULL
        && check_arrival(w->arrival, w->at.line, file, error) != 0)
    {
        return -1;
    }

    if (w->input != NULL && check_dist(w->input, "input_distribution",
                                       w->at.line, file, error) != 0)
    {
        return -1;
    }

    return w->output == NULL ? 0
           : check_dist(w->output, "output_distribution", w->at.line, file,
                        error);
}


static int
check_lifecycle(const work_client_t *c, const char *file, int absolute,
    work_error_t *error)
{
    size_t          i;
    work_window_t  *w;

    if (c->lifecycle == NULL) {
        return !absolute || c->concurrency > 0 ? 0
               : work_fail(error, file, c->at.line, "without an "
                           "\"aggregate_rate\" each client needs windows with "
                           "a \"trace_rate\"");
    }

    if (c->lifecycle->windows.n == 0) {
        return work_fail(error, file, c->lifecycle->at.line,
                         "\"lifecycle\" has no windows");
    }

    for (i = 0; i < c->lifecycle->windows.n; i++) {
        w = (work_window_t *) c->lifecycle->windows.items + i;

        if (absolute && !w->has_rate) {
            return work_fail(error, file, w->at.line, "without an "
                             "\"aggregate_rate\" each window needs a "
                             "\"trace_rate\"");
        }

        if (check_window(w, file, error) != 0) {
            return -1;
        }
    }

    return 0;
}


static int
check_multi_turn(const work_client_t *c, const char *file,
    work_error_t *error)
{
    work_multi_turn_t  *m;

    if (c->reasoning == NULL) {
        return 0;
    }

    if (c->reasoning->reason_ratio != NULL
        && check_dist(c->reasoning->reason_ratio, "", c->at.line, file, error)
           != 0)
    {
        return -1;
    }

    m = c->reasoning->multi_turn;

    if (m == NULL) {
        return 0;
    }

    if (m->max_rounds < 1) {
        return work_fail(error, file, m->at.line, "\"max_rounds\" is missing");
    }

    if (has_text(m->context_growth)
        && strcmp(m->context_growth, "accumulate") != 0)
    {
        return work_fail(error, file, m->at.line, "\"context_growth\" is "
                         "\"%.40s\", not \"accumulate\"", m->context_growth);
    }

    return 0;
}


/* Checks what applies to clients and to the members of cohorts. */
static int
check_each(const work_client_t *c, const char *file, work_error_t *error)
{
    if (check_class(c, file, error) != 0
        || check_dist(c->input, "input_distribution", c->at.line, file, error)
           != 0
        || check_dist(c->output, "output_distribution", c->at.line, file,
                      error) != 0
        || check_multi_turn(c, file, error) != 0)
    {
        return -1;
    }

    if (c->concurrency > 0) {
        return 0;
    }

    if (c->rate_fraction <= 0) {
        return work_fail(error, file, c->at.line,
                         "\"rate_fraction\" is missing");
    }

    return check_arrival(c->arrival, c->at.line, file, error);
}


static int
check_client(const work_client_t *c, const char *file, int absolute,
    work_error_t *error)
{
    if (c->concurrency > 0 && c->rate_fraction > 0) {
        return work_fail(error, file, c->at.line, "\"concurrency\" and "
                         "\"rate_fraction\" exclude each other");
    }

    if (check_each(c, file, error) != 0) {
        return -1;
    }

    return check_lifecycle(c, file, absolute, error);
}


static int
check_cohort(const work_cohort_t *c, const char *file, int absolute,
    work_error_t *error)
{
    static const char *const  sharings[] = { "shared", "per_member", NULL };

    if (c->population < 1) {
        return work_fail(error, file, c->each.at.line,
                         "\"population\" is missing");
    }

    if (has_text(c->prefix_sharing) && !is_one_of(c->prefix_sharing, sharings))
    {
        return work_fail(error, file, c->each.at.line, "\"prefix_sharing\" is "
                         "\"%.40s\", not \"shared\" or \"per_member\"",
                         c->prefix_sharing);
    }

    if (c->drain != NULL && c->drain->ramp_us < 1) {
        return work_fail(error, file, c->drain->at.line,
                         "\"ramp_duration_us\" is missing");
    }

    if (c->spike != NULL && c->spike->duration_us < 1) {
        return work_fail(error, file, c->spike->at.line,
                         "\"duration_us\" is missing");
    }

    if (c->diurnal != NULL && c->diurnal->peak_to_trough_ratio < 1) {
        return work_fail(error, file, c->diurnal->at.line,
                         "\"peak_to_trough_ratio\" is missing");
    }

    if (absolute && (c->diurnal != NULL || c->drain != NULL
                     || c->spike == NULL || !c->spike->has_rate))
    {
        return work_fail(error, file, c->each.at.line, "without an "
                         "\"aggregate_rate\" a cohort needs a \"spike\" with "
                         "a \"trace_rate\", and nothing else");
    }

    return check_each(&c->each, file, error);
}


/* Version 1 had other names for two classes. */
static void
upgrade(work_spec_t *spec)
{
    size_t          i;
    work_client_t  *c;

    if (has_text(spec->version) && strcmp(spec->version, "1") != 0) {
        return;
    }

    spec->version = "2";

    for (i = 0; i < spec->clients.n; i++) {
        c = (work_client_t *) spec->clients.items + i;

        if (has_text(c->slo_class) && strcmp(c->slo_class, "realtime") == 0) {
            c->slo_class = "critical";
        }

        if (has_text(c->slo_class)
            && strcmp(c->slo_class, "interactive") == 0)
        {
            c->slo_class = "standard";
        }
    }
}


/*
 * Checks clients together: all or none have a class, and clients with
 * "concurrency" exclude clients with "multi_turn".
 */
static int
check_together(const work_spec_t *spec, work_error_t *error)
{
    size_t                i, n, with_class, with_rounds, kept;
    const work_client_t  *c;

    n = spec->clients.n + spec->cohorts.n;
    with_class = with_rounds = kept = 0;

    for (i = 0; i < n; i++) {
        c = i < spec->clients.n ? (work_client_t *) spec->clients.items + i
            : &((work_cohort_t *) spec->cohorts.items
                + (i - spec->clients.n))->each;
        with_class += has_text(c->slo_class);
        kept += c->concurrency > 0;
        with_rounds += c->reasoning != NULL
                       && c->reasoning->multi_turn != NULL;

        if (with_class > 0 && with_class < i + 1) {
            return work_fail(error, spec->file, c->at.line, "either all "
                             "clients and cohorts have a \"slo_class\" or "
                             "none");
        }

        if (kept > 0 && with_rounds > 0) {
            return work_fail(error, spec->file, c->at.line, "clients with "
                             "\"concurrency\" and clients with \"multi_turn\" "
                             "exclude each other");
        }
    }

    return 0;
}


/* Whether the specification has no rate, so that windows must have rates. */
static int
is_absolute(const work_spec_t *spec)
{
    return spec->aggregate_rate == 0;
}


int
work_spec_check(work_spec_t *spec, work_error_t *error)
{
    size_t  i;

    static const char *const  categories[] = { "language", "reasoning", NULL };

    upgrade(spec);

    if (strcmp(spec->version, "2") != 0) {
        return work_fail(error, spec->file, spec->at.line,
                         "\"version\" is \"%.20s\", not \"2\"",
                         spec->version);
    }

    if (has_text(spec->category) && !is_one_of(spec->category, categories)) {
        return work_fail(error, spec->file, spec->at.line, "\"category\" is "
                         "\"%.40s\", not language or reasoning",
                         spec->category);
    }

    if (spec->clients.n + spec->cohorts.n == 0) {
        return work_fail(error, spec->file, spec->at.line,
                         "\"clients\" or \"cohorts\" are missing");
    }

    for (i = 0; i < spec->clients.n; i++) {
        if (check_client((work_client_t *) spec->clients.items + i, spec->file,
                         is_absolute(spec), error) != 0)
        {
            return -1;
        }
    }

    for (i = 0; i < spec->cohorts.n; i++) {
        if (check_cohort((work_cohort_t *) spec->cohorts.items + i, spec->file,
                         is_absolute(spec), error) != 0)
        {
            return -1;
        }
    }

    return check_together(spec, error);
}


void
work_spec_set_timeout(work_spec_t *spec, int64_t timeout_us)
{
    size_t          i;
    work_client_t  *c;

    for (i = 0; i < spec->clients.n + spec->cohorts.n; i++) {
        c = i < spec->clients.n ? (work_client_t *) spec->clients.items + i
            : &((work_cohort_t *) spec->cohorts.items
                + (i - spec->clients.n))->each;
        c->timeout_us = timeout_us;
        c->has_timeout = 1;
    }
}
