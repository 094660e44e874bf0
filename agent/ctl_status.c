
/* llmgwctl status: the agent's own figures, one a line. */

#include <stdio.h>

#include "ctl_link.h"


#define CTL_STATUS_INDENT  2
#define CTL_STATUS_WIDTH   24


static void
ctl_print_value(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        printf("%s\n", json_string_value(value));
        break;
    case JSON_INTEGER:
        printf("%" JSON_INTEGER_FORMAT "\n", json_integer_value(value));
        break;
    case JSON_TRUE:
        printf("yes\n");
        break;
    case JSON_FALSE:
        printf("no\n");
        break;
    default:
        printf("-\n");
        break;
    }
}


/* In the order of the answer; objects within are set in. */
static void
ctl_print_object(json_t *object, int indent)
{
    json_t      *value;
    const char  *name;

    json_object_foreach(object, name, value) {
        if (json_is_object(value)) {
            printf("%*s%s\n", indent, "", name);
            ctl_print_object(value, indent + CTL_STATUS_INDENT);
            continue;
        }

        printf("%*s%-*s", indent, "", CTL_STATUS_WIDTH - indent, name);
        ctl_print_value(value);
    }
}


int
ctl_status(const ctl_t *ctl)
{
    int      status;
    json_t  *answer;

    status = ctl_link_ask(ctl, json_pack("{s:s}", "cmd", "status"), &answer);

    if (status != CTL_DONE) {
        return status;
    }

    if (ctl->is_json) {
        ctl_print_json(answer);

    } else {
        ctl_print_object(answer, 0);
    }

    json_decref(answer);

    return CTL_DONE;
}
