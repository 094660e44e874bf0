
/*
 * Detectors of saturation.
 *
 * All see the same events in the same order: time, then arrivals before
 * completions, then the request's id.  Sums run over latencies in the order of
 * completion, each from the beginning, because BLIS's do: a difference of
 * prefix sums would not be the same double.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/figure/saturation.h"


#define SATURATION_TREND_MIN    20      /* completions needed for a trend */
#define SATURATION_SLOPE_STEEP  3.0     /* x the noise: it is overload */
#define SATURATION_MAX_BUCKETS  1000000 /* of drift; no run is longer */


typedef struct {
    int64_t              at_us;
    int                  completed;
    const char          *id;
    double               e2e_ms;
} saturation_event_t;

typedef struct {
    size_t               arrivals;
    size_t               completions;
    double              *e2e_ms;        /* by completion, in this order */
    double               e2e_sum_ms;
    int64_t             *buckets;       /* each one's requests in flight */
    size_t               nbuckets;
    size_t               max_buckets;
    int64_t              bucket;        /* number of the last bucket */
} saturation_state_t;


const char *const  report_detector_names[REPORT_DETECTORS] = {
    "composite", "threshold", "backlog-drift"
};

const char *const  report_level_names[REPORT_LEVELS] = {
    "STABLE", "BACKLOGGED", "OVERLOADED"
};


void
report_saturation_init(report_saturation_t *s)
{
    memset(s, 0, sizeof(*s));

    s->threshold_ms = 5000;
    s->drift_window_us = 60 * 1000000LL;
    s->final_window_us = 30 * 1000000LL;
}


static int
saturation_select_one(report_saturation_t *s, const char *name, size_t len)
{
    size_t  i;

    for (i = 0; i < REPORT_DETECTORS; i++) {
        if (strlen(report_detector_names[i]) == len
            && memcmp(report_detector_names[i], name, len) == 0)
        {
            s->detectors |= 1U << i;
            return 0;
        }
    }

    return -1;
}


int
report_saturation_select(report_saturation_t *s, const char *names,
    const char **error)
{
    size_t       len;
    const char  *p;

    if (strcmp(names, "all") == 0) {
        s->detectors = (1U << REPORT_DETECTORS) - 1;
        return 0;
    }

    for (p = names; *p != '\0'; p += len + (p[len] == ',')) {
        p += strspn(p, " ");
        len = strcspn(p, ", ");

        if (len > 0 && saturation_select_one(s, p, len) != 0) {
            *error = "composite, threshold, backlog-drift, a list of those,"
                     " or all";
            return -1;
        }

        p += strspn(p + len, " ");
    }

    if (s->detectors == 0) {
        *error = "at least one detector";
        return -1;
    }

    return 0;
}


/* --- events */

static int
saturation_cmp(const void *a, const void *b)
{
    const saturation_event_t  *x, *y;

    x = a;
    y = b;

    if (x->at_us != y->at_us) {
        return x->at_us < y->at_us ? -1 : 1;
    }

    if (x->completed != y->completed) {
        return x->completed - y->completed;
    }

    return strcmp(x->id, y->id);
}


/*
 * Times are converted to seconds and milliseconds and back, as in BLIS;
 * rounding may cost a microsecond.
 */
static saturation_event_t *
saturation_events(const report_served_t *served, size_t n)
{
    size_t               i;
    double               arrived_s;
    saturation_event_t  *events, *e;

    events = malloc(2 * n * sizeof(*events));

    if (events == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i++) {
        arrived_s = (double) served[i].arrival_us / 1e6;

        e = &events[2 * i];
        e[0].id = e[1].id = served[i].id;
        e[0].e2e_ms = e[1].e2e_ms = (double) served[i].e2e_us / 1e3;
        e[0].completed = 0;
        e[0].at_us = (int64_t) (arrived_s * 1e6);
        e[1].completed = 1;
        e[1].at_us = e[0].at_us + (int64_t) (e[1].e2e_ms * 1e3);
    }

    qsort(events, 2 * n, sizeof(*events), saturation_cmp);

    return events;
}


/*
 * Sets a bucket's number in flight; buckets that were skipped get that of the
 * bucket before them.
 */
static int
saturation_bucket(saturation_state_t *st, int64_t bucket, int64_t in_flight)
{
    size_t    want;
    int64_t   last, *grown;

    if (st->nbuckets == 0) {
        st->bucket = bucket;
    }

    want = st->nbuckets == 0 ? 1
                             : st->nbuckets + (size_t) (bucket - st->bucket);

    if (want > st->max_buckets) {
        if (want > SATURATION_MAX_BUCKETS) {
            return -1;
        }

        grown = realloc(st->buckets, 2 * want * sizeof(*grown));

        if (grown == NULL) {
            return -1;
        }

        st->buckets = grown;
        st->max_buckets = 2 * want;
    }

    last = st->nbuckets > 0 ? st->buckets[st->nbuckets - 1] : 0;

    while (st->nbuckets < want) {
        st->buckets[st->nbuckets++] = last;
    }

    st->buckets[want - 1] = in_flight;
    st->bucket = bucket;

    return 0;
}


static int
saturation_observe(const report_saturation_t *s, saturation_state_t *st,
    const saturation_event_t *e)
{
    if (e->completed) {
        st->e2e_ms[st->completions++] = e->e2e_ms;
        st->e2e_sum_ms += e->e2e_ms;

    } else {
        st->arrivals++;
    }

    return saturation_bucket(st, e->at_us / s->drift_window_us,
                             (int64_t) st->arrivals
                             - (int64_t) st->completions);
}


/* --- verdicts */

static void
saturation_signal(report_verdict_t *v, const char *name, double value)
{
    v->signals[v->nsignals].name = name;
    v->signals[v->nsignals++].value = value;
}


static double
saturation_mean(const double *values, size_t from, size_t to)
{
    size_t  i;
    double  sum;

    if (from == to) {
        return 0;
    }

    sum = 0;

    for (i = from; i < to; i++) {
        sum += values[i];
    }

    return sum / (double) (to - from);
}


static double
saturation_trend(const double *e2e_ms, size_t n)
{
    double  first, second;

    if (n < 2) {
        return 0;
    }

    first = saturation_mean(e2e_ms, 0, n / 2);
    second = saturation_mean(e2e_ms, n / 2, n);

    return first > 0 ? fmax(0, (second - first) / first) : 0;
}


/*
 * Whether latency rises by quarters; the last one also has the remainder of the
 * division by four.
 */
static int
saturation_rises(const double *e2e_ms, size_t n)
{
    size_t  q;
    double  a, b, c, d;

    if (n < SATURATION_TREND_MIN) {
        return 0;
    }

    q = n / 4;
    a = saturation_mean(e2e_ms, 0, q);
    b = saturation_mean(e2e_ms, q, 2 * q);
    c = saturation_mean(e2e_ms, 2 * q, 3 * q);
    d = saturation_mean(e2e_ms, 3 * q, n);

    return a < b && b < c && c < d;
}


static void
saturation_composite(const saturation_state_t *st, report_verdict_t *v)
{
    int     rises;
    double  deficit, raw, trend, noise;

    deficit = fmax(0.0, 1.0 - (double) st->completions
                              / (double) st->arrivals);
    raw = saturation_trend(st->e2e_ms, st->completions);
    rises = saturation_rises(st->e2e_ms, st->completions);
    trend = rises ? raw : 0;
    noise = 1.0 / sqrt((double) st->arrivals);

    v->score = fmax(deficit, fmin(trend, 1.0));
    v->confidence = fmin(1.0, (double) st->arrivals / 20.0);
    v->level = v->score < noise ? REPORT_STABLE
               : trend > noise ? REPORT_OVERLOADED : REPORT_BACKLOGGED;

    saturation_signal(v, "latency_trend", fmin(trend, 1.0));
    saturation_signal(v, "latency_trend_raw", fmin(raw, 1.0));
    saturation_signal(v, "noise_floor", noise);
    saturation_signal(v, "quartile_monotone", rises);
    saturation_signal(v, "rate_deficit", deficit);
}


static void
saturation_threshold(const report_saturation_t *s,
    const saturation_state_t *st, report_verdict_t *v)
{
    double  mean;

    if (st->completions == 0) {
        return;
    }

    mean = st->e2e_sum_ms / (double) st->completions;

    if (mean < s->threshold_ms) {
        v->score = 0.5 * (mean / s->threshold_ms);

    } else {
        v->level = REPORT_OVERLOADED;
        v->score = 0.75 + fmin(0.25, (mean - s->threshold_ms)
                                     / s->threshold_ms / 4.0);
    }

    v->confidence = 1.0 - 1.0 / sqrt((double) st->completions + 1.0);

    saturation_signal(v, "mean_e2e", mean);
    saturation_signal(v, "threshold", s->threshold_ms);
}


/* Ordinary least squares over 0, 1, 2, ... */
static double
saturation_slope(const int64_t *samples, size_t n)
{
    size_t  i;
    double  x, y, sum_x, sum_y, sum_xy, sum_xx, below;

    if (n < 2) {
        return 0;
    }

    sum_x = sum_y = sum_xy = sum_xx = 0;

    for (i = 0; i < n; i++) {
        x = (double) i;
        y = (double) samples[i];
        sum_x += x;
        sum_y += y;
        sum_xy += x * y;
        sum_xx += x * x;
    }

    below = (double) n * sum_xx - sum_x * sum_x;

    return below == 0 ? 0 : ((double) n * sum_xy - sum_x * sum_y) / below;
}


static void
saturation_drift(const saturation_state_t *st, report_verdict_t *v)
{
    double  noise, slope, steep;

    noise = 1.0 / sqrt((double) st->arrivals);
    steep = SATURATION_SLOPE_STEEP * noise;
    slope = saturation_slope(st->buckets, st->nbuckets);

    v->level = slope <= noise ? REPORT_STABLE
               : slope <= steep ? REPORT_BACKLOGGED : REPORT_OVERLOADED;
    v->score = fmin(1.0, fmax(0.0, slope) / steep);
    v->confidence = fmin(1.0, (double) st->arrivals / 20.0);

    saturation_signal(v, "arrivals", (double) st->arrivals);
    saturation_signal(v, "completions", (double) st->completions);
    saturation_signal(v, "in_flight", (double) st->arrivals
                                      - (double) st->completions);
    saturation_signal(v, "noise_floor", noise);
    saturation_signal(v, "running_slope", slope);
}


static void
saturation_judge(const report_saturation_t *s, const saturation_state_t *st,
    report_detector_t detector, report_verdict_t *v)
{
    memset(v, 0, sizeof(*v));

    switch (detector) {

    case REPORT_COMPOSITE:
        saturation_composite(st, v);
        break;

    case REPORT_THRESHOLD:
        saturation_threshold(s, st, v);
        break;

    default:
        saturation_drift(st, v);
        break;
    }
}


/* --- the run */

static report_level_t
saturation_label(const size_t votes[REPORT_LEVELS])
{
    int             i;
    size_t          most;
    report_level_t  level;

    most = 0;
    level = REPORT_STABLE;

    for (i = REPORT_LEVELS - 1; i >= 0; i--) {
        if (votes[i] > most) {
            most = votes[i];
            level = (report_level_t) i;
        }
    }

    return level;
}


static void
saturation_vote(const report_saturation_t *s, const saturation_state_t *st,
    int64_t at_us, int counts, size_t votes[][REPORT_LEVELS])
{
    int               d;
    report_verdict_t  v;

    for (d = 0; d < REPORT_DETECTORS; d++) {
        if (!(s->detectors & (1U << d))) {
            continue;
        }

        saturation_judge(s, st, (report_detector_t) d, &v);

        if (counts) {
            votes[d][v.level]++;
        }

        if (s->verdict != NULL) {
            s->verdict(s->data, at_us, (report_detector_t) d, &v);
        }
    }
}


int
report_saturation_run(const report_saturation_t *s,
    const report_served_t *served, size_t n,
    report_level_t labels[REPORT_DETECTORS])
{
    int                  d, counts, rc;
    size_t               i, votes[REPORT_DETECTORS][REPORT_LEVELS];
    int64_t              from_us;
    saturation_event_t  *events;
    saturation_state_t   st;

    if (n == 0) {
        return 0;
    }

    memset(&st, 0, sizeof(st));
    memset(votes, 0, sizeof(votes));

    rc = -1;
    events = saturation_events(served, n);
    st.e2e_ms = malloc(n * sizeof(double));

    if (events == NULL || st.e2e_ms == NULL) {
        goto done;
    }

    from_us = events[2 * n - 1].at_us - s->final_window_us;

    for (i = 0; i < 2 * n; i++) {
        if (saturation_observe(s, &st, &events[i]) != 0) {
            goto done;
        }

        counts = events[i].at_us >= from_us;

        if (counts || s->verdict != NULL) {
            saturation_vote(s, &st, events[i].at_us, counts, votes);
        }
    }

    for (d = 0; d < REPORT_DETECTORS; d++) {
        labels[d] = saturation_label(votes[d]);
    }

    rc = 1;

done:

    free(st.buckets);
    free(st.e2e_ms);
    free(events);

    return rc;
}
