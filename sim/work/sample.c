
/* Distributions: their parameters, and numbers drawn from them. */

#include "sim/work/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AT(field)  offsetof(work_dist_t, field)

const work_yaml_field_t  work_dist_keys[] = {
    { .key = "type", .kind = WORK_YAML_TEXT, .offset = AT(type) },
    { .key = "params", .kind = WORK_YAML_NUMBERS, .offset = AT(params) },
    { .key = "file", .kind = WORK_YAML_TEXT, .offset = AT(file) },
    { .key = NULL }
};

/* The parameters of a distribution, and the fields that they are read into. */
typedef struct {
    const char          *type;
    work_sample_kind_t   kind;
    struct {
        const char  *name;
        size_t       offset;
        int          is_optional;
    }                    params[6];
} shape_t;

#define TO(field)  offsetof(work_sample_t, field)

static const shape_t  shapes[] = {
    { "constant", WORK_SAMPLE_CONSTANT, { { "value", TO(a), 0 } } },
    { "gaussian", WORK_SAMPLE_GAUSSIAN, {
        { "mean", TO(a), 0 }, { "std_dev", TO(b), 0 },
        { "min", TO(min), 0 }, { "max", TO(max), 0 } } },
    { "exponential", WORK_SAMPLE_EXPONENTIAL, {
        { "mean", TO(a), 0 }, { "min", TO(min), 1 }, { "max", TO(max), 1 } } },
    { "lognormal", WORK_SAMPLE_LOGNORMAL, {
        { "mu", TO(a), 0 }, { "sigma", TO(b), 0 },
        { "min", TO(min), 1 }, { "max", TO(max), 1 } } },
    { "pareto_lognormal", WORK_SAMPLE_PARETO_LOGNORMAL, {
        { "mu", TO(a), 0 }, { "sigma", TO(b), 0 }, { "alpha", TO(c), 0 },
        { "xm", TO(d), 0 }, { "mix_weight", TO(e), 0 } } },
};

#define NSHAPES  (sizeof(shapes) / sizeof(shapes[0]))
#define NPARAMS  (sizeof(shapes[0].params) / sizeof(shapes[0].params[0]))


static int
take_param(work_sample_t *sample, const shape_t *shape,
    const work_yaml_number_t *param, const char *file, work_error_t *error)
{
    size_t  i;

    for (i = 0; i < NPARAMS && shape->params[i].name != NULL; i++) {
        if (strcmp(shape->params[i].name, param->name) == 0) {
            *(double *) (void *) ((char *) sample + shape->params[i].offset)
                = param->value;
            return 0;
        }
    }

    return work_fail(error, file, param->line,
                     "unknown parameter \"%.60s\" of \"%s\"", param->name,
                     shape->type);
}


static int
has_param(const work_dist_t *dist, const char *name)
{
    size_t  i;

    for (i = 0; i < dist->params.n; i++) {
        if (strcmp(dist->params.items[i].name, name) == 0) {
            return 1;
        }
    }

    return 0;
}


static int
sample_check(const work_sample_t *s, const work_dist_t *dist,
    const char *file, work_error_t *error)
{
    const char  *wrong;

    wrong = NULL;

    if (s->min > 0 && s->max > 0 && s->min > s->max) {
        wrong = "\"min\" is above \"max\"";

    } else if (s->min < 0 || s->max < 0) {
        wrong = "\"min\" or \"max\" is negative";

    } else if (s->b < 0) {
        wrong = "a deviation is negative";

    } else if (s->kind <= WORK_SAMPLE_EXPONENTIAL && s->a < 0) {
        wrong = "the mean or value is negative";

    } else if (s->kind == WORK_SAMPLE_PARETO_LOGNORMAL
               && !(s->c > 0 && s->d > 0 && s->e >= 0 && s->e <= 1))
    {
        wrong = "\"alpha\" and \"xm\" need to be positive, \"mix_weight\" "
                "0 to 1";
    }

    return wrong == NULL ? 0
           : work_fail(error, file, dist->at.line, "%s: %s", dist->type,
                       wrong);
}


static int
number_order(const void *a, const void *b)
{
    const work_yaml_number_t  *x, *y;
    long long                  i, j;

    x = a;
    y = b;
    i = strtoll(x->name, NULL, 10);
    j = strtoll(y->name, NULL, 10);

    return i < j ? -1 : i > j;
}


/* Reads a distribution whose parameters are its values and their weights. */
static int
sample_empirical(work_sample_t *sample, const work_dist_t *dist,
    const char *file, work_arena_t *arena, work_error_t *error)
{
    char                *end;
    size_t               i, n;
    double              *shares, total;
    int64_t             *values;
    work_yaml_number_t  *items;

    n = dist->params.n;
    items = dist->params.items;
    values = work_arena_alloc(arena, n * sizeof(values[0]) + 1);
    shares = work_arena_alloc(arena, n * sizeof(shares[0]) + 1);
    total = 0;

    for (i = 0; i < n; i++) {
        if (strtoll(items[i].name, &end, 10) < 1 || *end != '\0'
            || strtoll(items[i].name, NULL, 10) > WORK_SAMPLE_MAX
            || items[i].value < 0)
        {
            return work_fail(error, file, items[i].line,
                             "\"%.40s\": %g is no positive number of tokens "
                             "with its share", items[i].name, items[i].value);
        }

        total += items[i].value;
    }

    if (!(total > 0)) {
        return work_fail(error, file, dist->at.line, "\"empirical\" needs "
                         "numbers of tokens with their shares as parameters");
    }

    qsort(items, n, sizeof(items[0]), number_order);

    for (i = 0; i < n; i++) {
        values[i] = strtoll(items[i].name, NULL, 10);
        shares[i] = items[i].value / total + (i > 0 ? shares[i - 1] : 0);
    }

    shares[n - 1] = 1;
    sample->kind = WORK_SAMPLE_EMPIRICAL;
    sample->values = values;
    sample->shares = shares;
    sample->nvalues = n;

    return 0;
}


int
work_sample_make(work_sample_t *sample, const work_dist_t *dist,
    const char *file, work_arena_t *arena, work_error_t *error)
{
    size_t         i, s;
    const char    *name;
    work_sample_t  made;

    memset(&made, 0, sizeof(made));

    if (dist->file != NULL && dist->file[0] != '\0') {
        return work_fail(error, file, dist->at.line, "a distribution is not "
                         "read from a \"file\": give it as \"params\"");
    }

    if (dist->type != NULL && strcmp(dist->type, "empirical") == 0) {
        return sample_empirical(sample, dist, file, arena, error);
    }

    for (s = 0; s < NSHAPES; s++) {
        if (dist->type != NULL && strcmp(dist->type, shapes[s].type) == 0) {
            break;
        }
    }

    if (s == NSHAPES) {
        return work_fail(error, file, dist->at.line, "\"type\" is \"%.40s\", "
                         "not constant, gaussian, exponential, lognormal, "
                         "pareto_lognormal or empirical",
                         dist->type != NULL ? dist->type : "");
    }

    made.kind = shapes[s].kind;

    for (i = 0; i < dist->params.n; i++) {
        if (take_param(&made, &shapes[s], &dist->params.items[i], file, error)
            != 0)
        {
            return -1;
        }
    }

    for (i = 0; i < NPARAMS && shapes[s].params[i].name != NULL; i++) {
        name = shapes[s].params[i].name;

        if (!shapes[s].params[i].is_optional && !has_param(dist, name)) {
            return work_fail(error, file, dist->at.line,
                             "\"%s\" needs the parameter \"%s\"", dist->type,
                             name);
        }
    }

    if (sample_check(&made, dist, file, error) != 0) {
        return -1;
    }

    *sample = made;

    return 0;
}


double
work_uniform(rnd_t *rnd)
{
    return (double) (rnd_next(rnd) >> 11) * 0x1p-53;
}


double
work_exponential(rnd_t *rnd)
{
    return -log1p(-work_uniform(rnd));
}


double
work_normal(rnd_t *rnd)
{
    double  x, y, s;

    do {
        x = 2 * work_uniform(rnd) - 1;
        y = 2 * work_uniform(rnd) - 1;
        s = x * x + y * y;
    } while (s >= 1 || s == 0);

    return x * sqrt(-2 * log(s) / s);
}


double
work_gamma(rnd_t *rnd, double shape)
{
    double  c, d, u, v, x;

    if (shape < 1) {
        u = work_uniform(rnd);
        return work_gamma(rnd, shape + 1) * pow(u, 1 / shape);
    }

    d = shape - 1.0 / 3;
    c = 1 / sqrt(9 * d);

    for ( ;; ) {
        do {
            x = work_normal(rnd);
            v = 1 + c * x;
        } while (v <= 0);

        v = v * v * v;
        u = work_uniform(rnd);

        if (log(u) < 0.5 * x * x + d * (1 - v + log(v))) {
            return d * v;
        }
    }
}


static double
draw(const work_sample_t *s, rnd_t *rnd)
{
    double  u;

    switch (s->kind) {

    case WORK_SAMPLE_GAUSSIAN:
        return work_normal(rnd) * s->b + s->a;

    case WORK_SAMPLE_EXPONENTIAL:
        return work_exponential(rnd) * s->a;

    case WORK_SAMPLE_LOGNORMAL:
        return exp(s->a + s->b * work_normal(rnd));

    case WORK_SAMPLE_PARETO_LOGNORMAL:
        if (work_uniform(rnd) < s->e) {
            u = 1 - work_uniform(rnd);
            return s->d / pow(u, 1 / s->c);
        }
        return exp(s->a + s->b * work_normal(rnd));

    default:
        return trunc(s->a);
    }
}


static int64_t
draw_empirical(const work_sample_t *s, rnd_t *rnd)
{
    double  u;
    size_t  low, high, middle;

    u = work_uniform(rnd);
    low = 0;
    high = s->nvalues - 1;

    while (low < high) {
        middle = low + (high - low) / 2;

        if (s->shares[middle] < u) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return s->values[low];
}


int64_t
work_sample(const work_sample_t *sample, rnd_t *rnd)
{
    double  value;

    if (sample->kind == WORK_SAMPLE_EMPIRICAL) {
        return draw_empirical(sample, rnd);
    }

    value = round(draw(sample, rnd));

    if (sample->min > 0 && value < sample->min) {
        value = trunc(sample->min);
    }

    if (sample->max > 0 && value > sample->max) {
        value = trunc(sample->max);
    }

    if (!(value >= 1)) {
        return 1;
    }

    return value < (double) WORK_SAMPLE_MAX ? (int64_t) value
                                            : WORK_SAMPLE_MAX;
}


/*
 * A time in us from a number with the unit s, ms or us; without a unit it is in
 * ms.  Negative: it is no time.
 */
static double
time_us(const char *text)
{
    char    *end;
    double   value;

    value = strtod(text, &end);

    if (end == text || !(value >= 0) || value > 1e9) {
        return -1;
    }

    if (strncmp(end, "us", 2) == 0) {
        return end[2] == '\0' || end[2] == ',' ? trunc(value) : -1;
    }

    if (strncmp(end, "ms", 2) == 0) {
        end += 2;
        value *= 1e3;

    } else if (*end == 's') {
        end++;
        value *= 1e6;

    } else {
        value *= 1e3;
    }

    return *end == '\0' || *end == ',' ? trunc(value) : -1;
}


/* Reads one "key=value" of a think time.  NULL, or what is wrong with it. */
static const char *
think_param(work_sample_t *s, const char *text, size_t len)
{
    char    *end;
    double   value;

    if (strncmp(text, "mu=", 3) == 0 || strncmp(text, "sigma=", 6) == 0) {
        value = strtod(strchr(text, '=') + 1, &end);

        if (end != text + len || !isfinite(value)
            || (text[0] == 's' && value <= 0))
        {
            return "mu needs a number, sigma a positive one";
        }

        *(text[0] == 'm' ? &s->a : &s->b) = value;

        return NULL;
    }

    if (strncmp(text, "min=", 4) != 0 && strncmp(text, "max=", 4) != 0
        && strncmp(text, "value=", 6) != 0)
    {
        return "its parameters are mu, sigma, min, max, or value";
    }

    value = time_us(strchr(text, '=') + 1);

    if (value < 0) {
        return "a time is a number followed by s, ms or us";
    }

    *(text[1] == 'i' ? &s->min : text[1] == 'a' && text[0] == 'm' ? &s->max
                                                                 : &s->a)
        = value;

    return NULL;
}


int
work_sample_think(work_sample_t *sample, const char *text, const char **what)
{
    size_t         len;
    const char    *at;
    work_sample_t  made;

    memset(&made, 0, sizeof(made));
    made.a = made.b = NAN;
    at = strchr(text, ':');

    if (strncmp(text, "lognormal:", 10) == 0) {
        made.kind = WORK_SAMPLE_LOGNORMAL;

    } else if (strncmp(text, "constant:", 9) != 0) {
        *what = "it is lognormal:mu=...,sigma=... or constant:value=...";
        return -1;
    }

    for (at = at + 1; *at != '\0'; at += len + (at[len] == ',')) {
        len = strcspn(at, ",");
        *what = think_param(&made, at, len);

        if (*what != NULL) {
            return -1;
        }
    }

    if (isnan(made.a) || (made.kind == WORK_SAMPLE_LOGNORMAL
                          && isnan(made.b)))
    {
        *what = "lognormal needs mu and sigma, constant a value";
        return -1;
    }

    if (made.min > 0 && made.max > 0 && made.min > made.max) {
        *what = "min is above max";
        return -1;
    }

    if (made.kind == WORK_SAMPLE_LOGNORMAL) {
        made.a += log(1e6);
    }

    *sample = made;

    return 0;
}
