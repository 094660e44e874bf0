
/*
 * Reading one request's body: members by their kinds and bounds.
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "replica/engine/llama/ask_inner.h"


int
ask_refuse(ask_t *r, const char *param, const char *format, ...)
{
    va_list  args;

    va_start(args, format);
    vsnprintf(r->error->message, sizeof(r->error->message), format, args);
    va_end(args);

    r->error->status = 400;
    r->error->param = param;

    return -1;
}


json_t *
ask_get(const ask_t *r, const char *key)
{
    json_t  *value;

    value = json_object_get(r->body, key);

    return json_is_null(value) ? NULL : value;
}


int
ask_number(ask_t *r, const char *key, double least, double most,
    float *out)
{
    json_t  *value;
    double   number;

    value = ask_get(r, key);

    if (value == NULL) {
        return 0;
    }

    number = json_number_value(value);

    if (!json_is_number(value) || !(number >= least && number <= most)) {
        return ask_refuse(r, key, "'%s' is a number from %g to %g", key,
                          least, most);
    }

    *out = (float) number;

    return 0;
}


/* 1.0 is an integer, too, as long as a double holds all of them. */
static int
integer_of(const json_t *value, int64_t *out)
{
    double  number;

    number = json_real_value(value);

    if (json_is_real(value) && number > -0x1p53 && number < 0x1p53
        && (double) (int64_t) number == number)
    {
        *out = (int64_t) number;
        return 1;
    }

    *out = json_integer_value(value);

    return json_is_integer(value);
}


int
ask_integer(ask_t *r, const char *key, int64_t least, int64_t most,
    int64_t *out)
{
    json_t   *value;
    int64_t   integer;

    value = ask_get(r, key);

    if (value == NULL) {
        return 0;
    }

    if (!integer_of(value, &integer) || integer < least || integer > most) {
        return ask_refuse(r, key, "'%s' is an integer from %lld to %lld", key,
                          (long long) least, (long long) most);
    }

    *out = integer;

    return 0;
}


char *
ask_string(const json_t *value)
{
    const char  *text;

    text = json_string_value(value);

    if (text == NULL || strlen(text) != json_string_length(value)) {
        return NULL;
    }

    return strdup(text);
}
