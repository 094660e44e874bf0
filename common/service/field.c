
#include "common/service/service.h"


const char *
service_text(const json_t *json, const char *name)
{
    const char  *text;

    text = json_string_value(json_object_get(json, name));

    return text != NULL ? text : "";
}


int
service_number(const json_t *json, const char *name, uint64_t max,
    uint64_t *number)
{
    const json_t  *value;

    value = json_object_get(json, name);

    if (value != NULL) {
        if (!json_is_integer(value) || json_integer_value(value) < 0) {
            return -1;
        }

        *number = (uint64_t) json_integer_value(value);
    }

    return *number <= max ? 0 : -1;
}
