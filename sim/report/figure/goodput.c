
/*
 * Targets of classes, and the requests that met them.
 */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "sim/report/figure/goodput.h"


#define GOODPUT_MAX_NS  (INT64_C(1) << 62)


typedef struct {
    const char  *name;
    int64_t      ns;
} goodput_unit_t;

static const goodput_unit_t  goodput_units[] = {
    { "ns", 1 },
    { "us", 1000 },
    { "\xc2\xb5s", 1000 },
    { "ms", 1000000 },
    { "s", 1000000000 },
    { "m", INT64_C(60000000000) },
    { "h", INT64_C(3600000000000) },
};

const char *const  report_time_names[REPORT_TIMES] = { "ttft", "itl", "e2e" };


static int
goodput_cmp(const char *name, const char *slo_class, size_t len)
{
    int  rc;

    rc = strncmp(name, slo_class, len);

    return rc != 0 ? rc : name[len] != '\0';
}


report_target_t *
report_target_of(report_targets_t *targets, const char *slo_class, size_t len)
{
    int               rc;
    size_t            i;
    report_target_t  *target;

    rc = 1;

    for (i = 0; i < targets->n; i++) {
        rc = goodput_cmp(targets->list[i].slo_class, slo_class, len);

        if (rc >= 0) {
            break;
        }
    }

    target = &targets->list[i];

    if (i < targets->n && rc == 0) {
        return target;
    }

    if (targets->n == REPORT_MAX_TARGETS || len >= REPORT_CLASS_BYTES) {
        return NULL;
    }

    memmove(target + 1, target, (targets->n - i) * sizeof(*target));
    targets->n++;

    memset(target, 0, sizeof(*target));
    memcpy(target->slo_class, slo_class, len);

    return target;
}


const report_target_t *
report_target_find(const report_targets_t *targets, const char *slo_class)
{
    size_t  i;

    if (*slo_class == '\0') {
        slo_class = "default";
    }

    for (i = 0; i < targets->n; i++) {
        if (strcmp(targets->list[i].slo_class, slo_class) == 0) {
            return &targets->list[i];
        }
    }

    return NULL;
}


static const goodput_unit_t *
goodput_unit(const char *text, size_t len)
{
    size_t  i;

    for (i = 0; i < sizeof(goodput_units) / sizeof(goodput_units[0]); i++) {
        if (strlen(goodput_units[i].name) == len
            && memcmp(goodput_units[i].name, text, len) == 0)
        {
            return &goodput_units[i];
        }
    }

    return NULL;
}


/*
 * Reads a number with its unit and advances *text; the fraction is cut at 15
 * digits.
 */
static int64_t
goodput_one(const char **text, const char *end)
{
    int                    digits;
    double                 ns;
    int64_t                whole, part, scale;
    const char            *p, *unit;
    const goodput_unit_t  *u;

    whole = part = 0;
    scale = 1;
    digits = 0;

    for (p = *text; p < end && isdigit((unsigned char) *p); p++, digits++) {
        whole = whole * 10 + (*p - '0');

        if (whole > GOODPUT_MAX_NS / 100) {
            return -1;
        }
    }

    if (p < end && *p == '.') {
        for (p++; p < end && isdigit((unsigned char) *p); p++, digits++) {
            if (scale < INT64_C(1000000000000000)) {
                part = part * 10 + (*p - '0');
                scale *= 10;
            }
        }
    }

    for (unit = p; p < end && *p != '.' && !isdigit((unsigned char) *p);
         p++)
    {
        /* void */
    }

    u = goodput_unit(unit, (size_t) (p - unit));
    ns = u == NULL ? 0 : (double) whole * (double) u->ns;

    if (digits == 0 || u == NULL || ns > (double) (GOODPUT_MAX_NS / 2)) {
        return -1;
    }

    *text = p;

    return whole * u->ns
           + (int64_t) ((double) part * ((double) u->ns / (double) scale));
}


int64_t
report_duration_ns(const char *text, size_t len)
{
    int64_t      ns, sum;
    const char  *end;

    end = text + len;
    sum = 0;

    if (len > 0 && *text == '+') {
        text++;
    }

    while (text < end) {
        ns = goodput_one(&text, end);

        if (ns < 0 || sum > GOODPUT_MAX_NS - ns) {
            return -1;
        }

        sum += ns;
    }

    return sum > 0 ? sum : -1;
}


static size_t
goodput_trim(const char **text, size_t len)
{
    while (len > 0 && isspace((unsigned char) **text)) {
        (*text)++;
        len--;
    }

    while (len > 0 && isspace((unsigned char) (*text)[len - 1])) {
        len--;
    }

    return len;
}


static const char *
goodput_pair(report_targets_t *targets, report_time_t time, const char *pair,
    size_t len)
{
    size_t            name_len, value_len;
    int64_t           ns;
    const char       *equals, *value;
    report_target_t  *target;

    equals = memchr(pair, '=', len);

    if (equals == NULL) {
        return "is not CLASS=TIME";
    }

    value = equals + 1;
    value_len = goodput_trim(&value, len - (size_t) (value - pair));
    name_len = goodput_trim(&pair, (size_t) (equals - pair));

    if (name_len == 0) {
        return "names no class";
    }

    ns = report_duration_ns(value, value_len);

    if (ns < 0) {
        return "is not CLASS=TIME with a time above 0, as 100ms or 1.5s";
    }

    target = report_target_of(targets, pair, name_len);

    if (target == NULL) {
        return "is one class too many, or its name is too long";
    }

    target->ms[time] = (double) ns / 1e6;

    return NULL;
}


int
report_targets_parse(report_targets_t *targets, report_time_t time,
    const char *text, char *error, size_t size)
{
    size_t       len, trimmed;
    const char  *p, *wrong;

    if (text[strspn(text, " ")] == '\0') {
        return 0;
    }

    for ( ;; ) {
        len = strcspn(text, ",");
        p = text;
        trimmed = goodput_trim(&p, len);

        wrong = trimmed == 0 ? "is empty"
                             : goodput_pair(targets, time, p, trimmed);

        if (wrong != NULL) {
            snprintf(error, size, "\"%.*s\" %s", (int) trimmed, p, wrong);
            return -1;
        }

        if (text[len] == '\0') {
            return 0;
        }

        text += len + 1;
    }
}


void
report_attain(const report_target_t *target, report_attained_t *attained,
    const double ms[REPORT_TIMES])
{
    int  i, good;

    good = 1;

    for (i = 0; i < REPORT_TIMES; i++) {
        if (target->ms[i] > 0) {
            attained->seen[i]++;

            if (ms[i] <= target->ms[i]) {
                attained->met[i]++;

            } else {
                good = 0;
            }
        }
    }

    attained->good += good;
}
