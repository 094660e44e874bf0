
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slice/manifest/ranges.h"


#define RANGES_DIGITS  5                /* a longer number is no layer */

#define ranges_fail(error, ...)                                               \
    (snprintf(error, RANGES_ERROR_BYTES, __VA_ARGS__), -1)


static int
ranges_add(ranges_t *r, uint32_t first, uint32_t last,
    char error[RANGES_ERROR_BYTES])
{
    if (r->n == RANGES_MAX) {
        return ranges_fail(error, "at most %d slices are written in one run",
                           RANGES_MAX);
    }

    r->ranges[r->n].first = first;
    r->ranges[r->n].last = last;
    r->n++;

    return 0;
}


int
ranges_even(ranges_t *r, uint32_t layers, uint32_t n,
    char error[RANGES_ERROR_BYTES])
{
    uint64_t  i;

    r->n = 0;

    if (n == 0 || n > layers || n > RANGES_MAX) {
        return ranges_fail(error, "%u slices of %u layers: 1 to %u are right",
                           n, layers,
                           layers < RANGES_MAX ? layers : RANGES_MAX);
    }

    for (i = 0; i < n; i++) {
        if (ranges_add(r, (uint32_t) (i * layers / n),
                       (uint32_t) ((i + 1) * layers / n - 1), error)
            != 0)
        {
            return -1;
        }
    }

    return 0;
}


/* Reads digits without a sign; NULL: there are none, or too many. */
static const char *
ranges_number(const char *text, uint32_t *number)
{
    size_t  digits;

    digits = strspn(text, "0123456789");

    if (digits == 0 || digits > RANGES_DIGITS) {
        return NULL;
    }

    *number = (uint32_t) strtoul(text, NULL, 10);

    return text + digits;
}


int
ranges_cuts(ranges_t *r, uint32_t layers, const char *text,
    char error[RANGES_ERROR_BYTES])
{
    uint32_t     first, cut;
    const char  *at;

    r->n = 0;
    first = 0;

    for (at = text; at != NULL; at = *at == ',' ? at + 1 : NULL) {
        at = ranges_number(at, &cut);

        if (at == NULL || (*at != ',' && *at != '\0')
            || cut <= first || cut >= layers)
        {
            return ranges_fail(error, "cuts \"%.40s\": numbers of layers, 1 "
                               "to %u, each greater than the one before, as "
                               "\"4,8,12\", are right", text, layers - 1);
        }

        if (ranges_add(r, first, cut - 1, error) != 0) {
            return -1;
        }

        first = cut;
    }

    return ranges_add(r, first, layers - 1, error);
}


/* Reads "4-11" or "15"; NULL: it is neither. */
static const char *
ranges_range(const char *text, uint32_t *first, uint32_t *last)
{
    const char  *at;

    at = ranges_number(text, first);
    *last = *first;

    return at != NULL && *at == '-' ? ranges_number(at + 1, last) : at;
}


int
ranges_parse(ranges_t *r, uint32_t layers, const char *text,
    char error[RANGES_ERROR_BYTES])
{
    uint32_t     first, last;
    const char  *at;

    r->n = 0;

    for (at = text; at != NULL; at = *at == ',' ? at + 1 : NULL) {
        at = ranges_range(at, &first, &last);

        if (at == NULL || (*at != ',' && *at != '\0')
            || first > last || last >= layers)
        {
            return ranges_fail(error, "layers \"%.40s\": ranges within 0-%u, "
                               "as \"0-7,4-11,15\", are right", text,
                               layers - 1);
        }

        if (ranges_add(r, first, last, error) != 0) {
            return -1;
        }
    }

    return 0;
}


static int
ranges_has(const ranges_t *r, uint32_t layer)
{
    size_t  i;

    for (i = 0; i < r->n; i++) {
        if (layer >= r->ranges[i].first && layer <= r->ranges[i].last) {
            return 1;
        }
    }

    return 0;
}


uint32_t
ranges_gaps(const ranges_t *r, uint32_t layers, char text[RANGES_GAPS_BYTES])
{
    size_t    n;
    uint32_t  layer, first, gaps;

    n = 0;
    gaps = 0;
    text[0] = '\0';

    for (layer = 0; layer < layers; layer++) {
        for (first = layer; layer < layers && !ranges_has(r, layer); layer++);

        if (layer == first) {
            continue;
        }

        gaps += layer - first;
        n += (size_t) snprintf(text + n, RANGES_GAPS_BYTES - n,
                               layer - first == 1 ? "%s%u" : "%s%u-%u",
                               n > 0 ? "," : "", first, layer - 1);
    }

    return gaps;
}
