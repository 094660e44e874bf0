
/*
 * Durations: digits and one unit, kept in milliseconds.
 *
 * No fractions and no sums ("1.5s", "1m30s"): one value has one way to be
 * written, so what duration_format() prints is what a person would type.
 */

#include <stdio.h>
#include <string.h>

#include "common/duration.h"


typedef struct {
    const char  *name;
    uint64_t     ms;
} duration_unit_t;


/* Longest first: duration_format() takes the first that divides exactly. */
static const duration_unit_t  duration_units[] = {
    { "h", 3600 * 1000 },
    { "m", 60 * 1000 },
    { "s", 1000 },
    { "ms", 1 },
    { NULL, 0 }
};


static const duration_unit_t *
duration_unit(const char *name)
{
    const duration_unit_t  *u;

    for (u = duration_units; u->name != NULL; u++) {
        if (strcmp(u->name, name) == 0) {
            return u;
        }
    }

    return NULL;
}


int
duration_parse(const char *text, uint64_t *ms)
{
    uint64_t                n;
    const char             *p;
    const duration_unit_t  *unit;

    n = 0;

    for (p = text; *p >= '0' && *p <= '9'; p++) {
        n = n * 10 + (uint64_t) (*p - '0');

        if (n > DURATION_MAX_MS) {
            return -1;
        }
    }

    if (p == text) {
        return -1;
    }

    if (*p == '\0' && n == 0) {
        *ms = 0;
        return 0;
    }

    unit = duration_unit(p);

    if (unit == NULL || n > DURATION_MAX_MS / unit->ms) {
        return -1;
    }

    *ms = n * unit->ms;

    return 0;
}


void
duration_format(char *buf, uint64_t ms)
{
    const duration_unit_t  *u;

    if (ms == 0) {
        memcpy(buf, "0", sizeof("0"));
        return;
    }

    for (u = duration_units; ms % u->ms != 0; u++) { /* void */ }

    snprintf(buf, 24, "%llu%s", (unsigned long long) (ms / u->ms), u->name);
}
