
/*
 * Dates, without the C library, which may read a file for them.  From days to a
 * date and back by eras of 400 years, in which years begin with March:
 * Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
 */

#include <string.h>

#include "proto/date.h"


#define ERA_DAYS    146097
#define EPOCH_DAYS  719468              /* from March of year 0 to 1970 */

typedef struct {
    uint32_t  year;
    uint32_t  month;                    /* from 1 */
    uint32_t  day;                      /* from 1 */
} date_t;


static date_t
date_of(uint64_t unix_ms)
{
    date_t    date;
    uint32_t  days, era, day, year, month;

    days = (uint32_t) (unix_ms / LLMGW_DAY_MS) + EPOCH_DAYS;
    era = days / ERA_DAYS;
    day = days % ERA_DAYS;
    year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    day -= 365 * year + year / 4 - year / 100;
    month = (5 * day + 2) / 153;        /* from March */

    date.day = day - (153 * month + 2) / 5 + 1;
    date.month = month < 10 ? month + 3 : month - 9;
    date.year = year + era * 400 + (date.month <= 2);

    return date;
}


/* The year is 1970 or later. */
static uint64_t
date_ms(date_t date)
{
    uint32_t  era, year, month, day;

    year = date.year - (date.month <= 2);
    month = date.month > 2 ? date.month - 3 : date.month + 9;
    era = year / 400;
    year %= 400;
    day = (153 * month + 2) / 5 + date.day - 1;
    day += year * 365 + year / 4 - year / 100;

    return (uint64_t) (era * ERA_DAYS + day - EPOCH_DAYS) * LLMGW_DAY_MS;
}


uint32_t
llmgw_period_number(llmgw_period_t period, uint64_t unix_ms)
{
    date_t  date;

    if (period == LLMGW_PERIOD_DAY) {
        return (uint32_t) (unix_ms / LLMGW_DAY_MS);
    }

    date = date_of(unix_ms);

    return date.year * 12 + date.month - 1;
}


uint64_t
llmgw_period_end_ms(llmgw_period_t period, uint64_t unix_ms)
{
    date_t  date;

    if (period == LLMGW_PERIOD_DAY) {
        return (unix_ms / LLMGW_DAY_MS + 1) * LLMGW_DAY_MS;
    }

    date = date_of(unix_ms);
    date.day = 1;
    date.year += date.month / 12;
    date.month = date.month % 12 + 1;

    return date_ms(date);
}


/*
 * Writes a number of that many digits, and the character `behind` after it.
 * Returns the end.
 */
static char *
date_put(char *p, uint32_t number, int digits, char behind)
{
    int  i;

    for (i = digits - 1; i >= 0; i--, number /= 10) {
        p[i] = (char) ('0' + number % 10);
    }

    p[digits] = behind;

    return p + digits + 1;
}


void
llmgw_date_write(char date[LLMGW_DATE_BYTES], uint64_t unix_ms)
{
    char     *p;
    date_t    d;
    uint32_t  ms;

    if (unix_ms >= LLMGW_DATE_MAX_MS) {
        unix_ms = LLMGW_DATE_MAX_MS - 1;
    }

    d = date_of(unix_ms);
    ms = (uint32_t) (unix_ms % LLMGW_DAY_MS);

    p = date_put(date, d.year, 4, '-');
    p = date_put(p, d.month, 2, '-');
    p = date_put(p, d.day, 2, 'T');
    p = date_put(p, ms / 3600000, 2, ':');
    p = date_put(p, ms / 60000 % 60, 2, ':');
    p = date_put(p, ms / 1000 % 60, 2, '.');
    p = date_put(p, ms % 1000, 3, 'Z');
    *p = '\0';
}


/*
 * Reads the numbers of a text, whose digits stand where `form` has a '0'.  -1:
 * the text has another form.
 */
static int
date_digits(const char *text, const char *form, uint32_t *numbers)
{
    uint32_t  number;

    for (number = 0; *form != '\0'; form++, text++) {

        if (*form == '0') {
            if (*text < '0' || *text > '9') {
                return -1;
            }

            number = number * 10 + (uint32_t) (*text - '0');
            continue;
        }

        if (*text != *form) {
            return -1;
        }

        *numbers++ = number;
        number = 0;
    }

    *numbers = number;

    return 0;
}


int
llmgw_date_read(const char *text, size_t len, uint64_t *unix_ms)
{
    size_t              i;
    date_t              date;
    uint32_t            n[8] = { 0 };
    uint64_t            ms;
    static const char  *forms[] = {
        "0000-00-00", "0000-00-00T00:00Z", "0000-00-00T00:00:00Z",
        "0000-00-00T00:00:00.000Z"
    };

    for (i = 0; strlen(forms[i]) != len; i++) {
        if (i == 3) {
            return -1;
        }
    }

    if (date_digits(text, forms[i], n) != 0 || n[0] < 1970 || n[1] < 1
        || n[1] > 12 || n[2] < 1 || n[3] > 23 || n[4] > 59 || n[5] > 59)
    {
        return -1;
    }

    ms = date_ms((date_t) { n[0], n[1], n[2] });
    date = date_of(ms);

    if (date.month != n[1] || date.day != n[2]) {
        return -1;                      /* the 31st of a shorter month */
    }

    /* n[6] is the fraction of the last form, and 0 in the others */

    *unix_ms = ms + ((n[3] * 60 + n[4]) * 60ull + n[5]) * 1000 + n[6];

    return 0;
}
