
/* Members of a line of the decision log, each with its type and its limits. */

#include <stdlib.h>
#include <string.h>

#include "sim/report/log/read_inner.h"


int
log_fail(const log_line_t *l, const char *what, const char *name)
{
    return work_fail(l->error, l->reader->path, l->reader->line, what, name);
}


int
log_text(const log_line_t *l, const json_t *of, const char *name, char *text,
    size_t size)
{
    json_t  *value;

    value = json_object_get(of, name);

    if (!json_is_string(value) || json_string_length(value) >= size) {
        return log_fail(l, "\"%s\" is no string, or too long", name);
    }

    memcpy(text, json_string_value(value), json_string_length(value) + 1);

    return 0;
}


int
log_word(const log_line_t *l, const json_t *of, const char *name, char *text,
    size_t size)
{
    text[0] = '\0';

    return json_object_get(of, name) == NULL
           ? 0 : log_text(l, of, name, text, size);
}


int
log_int(const log_line_t *l, const json_t *of, const char *name, int64_t max,
    int64_t *number, int *has)
{
    json_t  *value;

    value = json_object_get(of, name);

    if (has != NULL) {
        *has = value != NULL && !json_is_null(value);

        if (!*has) {
            return 0;
        }
    }

    if (!json_is_integer(value) || json_integer_value(value) < 0
        || json_integer_value(value) > max)
    {
        return log_fail(l, "\"%s\" is no number from 0 on", name);
    }

    *number = json_integer_value(value);

    return 0;
}


int
log_uint32(const log_line_t *l, const json_t *of, const char *name,
    uint32_t *number)
{
    int64_t  value;

    if (log_int(l, of, name, INT32_MAX, &value, NULL) != 0) {
        return -1;
    }

    *number = (uint32_t) value;

    return 0;
}


int
log_double(const log_line_t *l, const json_t *of, const char *name,
    double *number)
{
    json_t  *value;

    value = json_object_get(of, name);

    if (!json_is_number(value)) {
        return log_fail(l, "\"%s\" is no number", name);
    }

    *number = json_number_value(value);

    return 0;
}


int
log_hex(const log_line_t *l, const char *name, uint64_t *number, int *has)
{
    char    *end;
    json_t  *value;

    value = json_object_get(l->root, name);
    *has = json_is_string(value);

    if (!*has) {
        return value == NULL || json_is_null(value) ? 0
               : log_fail(l, "\"%s\" is no hexadecimal text", name);
    }

    *number = strtoull(json_string_value(value), &end, 16);

    return json_string_length(value) == 16 && *end == '\0' ? 0
           : log_fail(l, "\"%s\" has not 16 hexadecimal digits", name);
}


int
log_worker(const log_line_t *l, int64_t *worker)
{
    int  has;

    *worker = 0;

    return log_int(l, l->root, "worker", INT64_MAX, worker, &has);
}
