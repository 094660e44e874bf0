
/*
 * The shortest text of a double.
 *
 * A decimal of at most 15 digits is not changed by conversion to a double, so
 * if a double has such a text, printing 15 digits finds it, followed by zeros.
 * If not, 16 digits may suffice, and 17 always do.  Doubles below the smallest
 * normal one have fewer digits, so for them all lengths are tried.
 */

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/figure/number.h"


/* Digits without the point, and the exponent of the first: d.ddd * 10^exp. */
typedef struct {
    char    digits[24];
    int     n;
    int     exp;
} number_parts_t;


static void
number_split(double value, number_parts_t *parts)
{
    int    precision;
    char   buf[REPORT_NUMBER_BYTES], *e, *p;

    precision = value < DBL_MIN ? 0 : 14;

    for ( ; precision < 17; precision++) {
        snprintf(buf, sizeof(buf), "%.*e", precision, value);

        if (strtod(buf, NULL) == value) {
            break;
        }
    }

    e = strchr(buf, 'e');
    parts->exp = atoi(e + 1);
    parts->n = 0;

    for (p = buf; p < e; p++) {
        if (*p != '.') {
            parts->digits[parts->n++] = *p;
        }
    }

    while (parts->n > 1 && parts->digits[parts->n - 1] == '0') {
        parts->n--;
    }
}


static char *
number_digits(char *p, const number_parts_t *parts, int from, int to)
{
    int  i;

    for (i = from; i < to; i++) {
        *p++ = i < parts->n ? parts->digits[i] : '0';
    }

    return p;
}


static char *
number_plain(char *p, const number_parts_t *parts)
{
    int  i, whole;

    if (parts->exp < 0) {
        *p++ = '0';
        *p++ = '.';

        for (i = -1; i > parts->exp; i--) {
            *p++ = '0';
        }

        return number_digits(p, parts, 0, parts->n);
    }

    whole = parts->exp + 1;
    p = number_digits(p, parts, 0, whole);

    if (parts->n > whole) {
        *p++ = '.';
        p = number_digits(p, parts, whole, parts->n);
    }

    return p;
}


static char *
number_scientific(char *p, const number_parts_t *parts)
{
    p = number_digits(p, parts, 0, 1);

    if (parts->n > 1) {
        *p++ = '.';
        p = number_digits(p, parts, 1, parts->n);
    }

    return p + sprintf(p, "e%c%d", parts->exp < 0 ? '-' : '+',
                       abs(parts->exp));
}


size_t
report_number(double value, char buf[REPORT_NUMBER_BYTES])
{
    char            *p;
    double           size;
    number_parts_t   parts;

    p = buf;
    size = fabs(value);

    if (signbit(value)) {
        *p++ = '-';
    }

    if (size == 0.0) {
        *p++ = '0';

    } else {
        number_split(size, &parts);

        if (size >= 1e-6 && size < 1e21) {
            p = number_plain(p, &parts);

        } else {
            p = number_scientific(p, &parts);
        }
    }

    *p = '\0';

    return (size_t) (p - buf);
}
