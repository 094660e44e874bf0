
/*
 * Values by kind.  A field changes only where the text is accepted whole:
 * no leading blanks, nothing after it, within the table's limits.
 */

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "common/duration.h"
#include "proto/members/members.h"
#include "common/option_value.h"


static int
option_value_has_limits(const option_t *o)
{
    return o->min < o->max;
}


/*
 * Units of a number of bytes; the longest that divides it exactly is written.
 */
static const struct {
    const char  *name;
    unsigned     shift;
} option_value_units[] = {
    { "TiB", 40 }, { "GiB", 30 }, { "MiB", 20 }, { "KiB", 10 }, { "", 0 }
};


static void
option_value_size(char *buf, size_t capacity, uint64_t bytes)
{
    size_t  i;

    for (i = 0; bytes % (1ULL << option_value_units[i].shift) != 0; i++) {
        /* void */
    }

    snprintf(buf, capacity, "%llu%s",
             (unsigned long long) bytes >> option_value_units[i].shift,
             bytes == 0 ? "" : option_value_units[i].name);
}


static void
option_value_limit(const option_t *o, double limit, char *buf, size_t capacity)
{
    if (o->kind == OPTION_DURATION) {
        duration_format(buf, (uint64_t) limit);

    } else if (o->kind == OPTION_SIZE) {
        option_value_size(buf, capacity, (uint64_t) limit);

    } else {
        snprintf(buf, capacity, "%.15g", limit);
    }
}


void
option_value_expected(const option_t *o, char *buf, size_t capacity)
{
    char  min[32], max[32];

    static const char *const  kinds[] = {
        "a text",
        "a name (letters, digits, '.', '_', '-'; 63 at most, the first a "
            "letter or digit)",
        "HOST:PORT",
        "on or off",
        "a whole number",
        "a number",
        "a time like 50ms, 2s, 1m or 1h",
        "a size like 512MiB or 8GiB"
    };

    if (!option_value_has_limits(o)) {
        snprintf(buf, capacity, "%s", kinds[o->kind]);
        return;
    }

    option_value_limit(o, o->min, min, sizeof(min));
    option_value_limit(o, o->max, max, sizeof(max));
    snprintf(buf, capacity, "%s, from %s to %s", kinds[o->kind], min, max);
}


static int
option_value_store_string(const option_t *o, void *field, const char *value)
{
    char  *copy;

    if (o->kind == OPTION_NAME
        && !llmgw_name_is_valid(value, strlen(value)))
    {
        return -1;
    }

    if (o->kind == OPTION_ADDRESS && !address_is_valid(value)) {
        return -1;
    }

    copy = strdup(value);

    if (copy == NULL) {
        return -1;
    }

    free(*(char **) field);
    *(char **) field = copy;

    return 0;
}


static int
option_value_store_flag(void *field, const char *value)
{
    size_t  i;

    static const char *const  words[][2] = {
        { "off", "on" }, { "no", "yes" }, { "false", "true" }, { "0", "1" }
    };

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(value, words[i][0]) == 0) {
            *(int *) field = 0;
            return 0;
        }

        if (strcmp(value, words[i][1]) == 0) {
            *(int *) field = 1;
            return 0;
        }
    }

    return -1;
}


static int
option_value_in_limits(const option_t *o, double value)
{
    return !option_value_has_limits(o) || (value >= o->min && value <= o->max);
}


static int
option_value_store_int(const option_t *o, void *field, const char *value)
{
    char       *end;
    long long   n;

    errno = 0;
    n = strtoll(value, &end, 10);

    if (isspace((unsigned char) *value) || end == value || *end != '\0'
        || errno != 0 || !option_value_in_limits(o, (double) n))
    {
        return -1;
    }

    *(int64_t *) field = n;

    return 0;
}


static int
option_value_store_double(const option_t *o, void *field, const char *value)
{
    char    *end;
    double   x;

    x = strtod(value, &end);

    if (isspace((unsigned char) *value) || end == value || *end != '\0'
        || !isfinite(x) || !option_value_in_limits(o, x))
    {
        return -1;
    }

    *(double *) field = x;

    return 0;
}


static int
option_value_store_duration(const option_t *o, void *field, const char *value)
{
    uint64_t  ms;

    if (duration_parse(value, &ms) != 0
        || !option_value_in_limits(o, (double) ms))
    {
        return -1;
    }

    *(uint64_t *) field = ms;

    return 0;
}


static int
option_value_store_size(const option_t *o, void *field, const char *value)
{
    char                *end;
    size_t               i;
    unsigned long long   n;

    if (*value < '0' || *value > '9') {
        return -1;
    }

    errno = 0;
    n = strtoull(value, &end, 10);

    for (i = 0; strcmp(end, option_value_units[i].name) != 0; i++) {
        if (option_value_units[i].shift == 0) {
            return -1;
        }
    }

    if (errno != 0 || n > UINT64_MAX >> option_value_units[i].shift) {
        return -1;
    }

    n <<= option_value_units[i].shift;

    if (!option_value_in_limits(o, (double) n)) {
        return -1;
    }

    *(uint64_t *) field = n;

    return 0;
}


int
option_value_store(const option_t *o, void *field, const char *value)
{
    switch (o->kind) {

    case OPTION_FLAG:
        return option_value_store_flag(field, value);

    case OPTION_INT:
        return option_value_store_int(o, field, value);

    case OPTION_DOUBLE:
        return option_value_store_double(o, field, value);

    case OPTION_DURATION:
        return option_value_store_duration(o, field, value);

    case OPTION_SIZE:
        return option_value_store_size(o, field, value);

    default:
        return option_value_store_string(o, field, value);
    }
}
