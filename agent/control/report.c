
#include <string.h>

#include "control/report.h"


static int
report_integer(const json_t *json, const char *name, int64_t max,
    int64_t *value)
{
    json_t  *field;

    field = json_object_get(json, name);

    if (!json_is_integer(field) || json_integer_value(field) < 0
        || json_integer_value(field) > max)
    {
        return -1;
    }

    *value = json_integer_value(field);

    return 0;
}


/* Absent means false. */
static int
report_flag(const json_t *json, const char *name, int *value)
{
    json_t  *field;

    field = json_object_get(json, name);

    if (field != NULL && !json_is_boolean(field)) {
        return -1;
    }

    *value = json_is_true(field);

    return 0;
}


static int
report_version(const json_t *json, const char *name, char *version)
{
    size_t   len;
    json_t  *field;

    field = json_object_get(json, name);
    len = json_string_length(field);

    if (!json_is_string(field)
        || !llmgw_name_is_valid(json_string_value(field), len))
    {
        return -1;
    }

    memcpy(version, json_string_value(field), len + 1);

    return 0;
}


int
report_decode(report_t *report, const json_t *json, const char **field)
{
    int64_t   start_ms, pid, capacity, active;
    report_t  decoded;

    if (report_integer(json, *field = "replica_start", INT64_MAX, &start_ms)
        || report_integer(json, *field = "pid", INT32_MAX, &pid)
        || report_integer(json, *field = "max_capacity", INT32_MAX, &capacity)
        || report_integer(json, *field = "active_requests", INT32_MAX,
                          &active)
        || report_version(json, *field = "model_version",
                          decoded.model_version)
        || report_flag(json, *field = "draining", &decoded.draining)
        || report_flag(json, *field = "goodbye", &decoded.goodbye))
    {
        return -1;
    }

    decoded.replica_start_ms = start_ms;
    decoded.pid = pid;
    decoded.max_capacity = capacity;
    decoded.active_requests = active;

    *report = decoded;

    return 0;
}
