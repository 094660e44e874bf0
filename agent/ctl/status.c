
/* llmgwctl status: the agent's own figures, one a line. */

#include <stdio.h>

#include "ctl/link.h"


#define CTL_STATUS_INDENT  2
#define CTL_STATUS_WIDTH   24


static void
ctl_print_value(const json_t *value, FILE *out)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        fprintf(out, "%s\n", json_string_value(value));
        break;
    case JSON_INTEGER:
        fprintf(out, "%" JSON_INTEGER_FORMAT "\n", json_integer_value(value));
        break;
    case JSON_TRUE:
        fprintf(out, "yes\n");
        break;
    case JSON_FALSE:
        fprintf(out, "no\n");
        break;
    default:
        fprintf(out, "-\n");
        break;
    }
}


/*
 * Prints the list of a rolling update's steps; names are printed as they are.
 */
static void
ctl_print_list(const json_t *list, int indent, FILE *out)
{
    size_t       i;
    json_t      *element, *step;
    const char  *id;

    json_array_foreach(list, i, element) {
        if (json_is_string(element)) {
            fprintf(out, "%*s", indent, "");
            ctl_print_value(element, out);
        }

        id = json_string_value(json_object_get(element, "id"));
        step = json_object_get(element, "step");

        if (id != NULL && step != NULL) {
            fprintf(out, "%*s%-*s", indent, "", CTL_STATUS_WIDTH - indent,
                    id);
            ctl_print_value(step, out);
        }
    }
}


/* Prints fields in the order of the answer; inner objects are indented. */
static void
ctl_print_object(json_t *object, int indent, FILE *out)
{
    json_t      *value;
    const char  *name;

    json_object_foreach(object, name, value) {
        if (json_object_size(value) > 0) {
            fprintf(out, "%*s%s\n", indent, "", name);
            ctl_print_object(value, indent + CTL_STATUS_INDENT, out);
            continue;
        }

        if (json_is_array(value)) {
            fprintf(out, "%*s%s\n", indent, "", name);
            ctl_print_list(value, indent + CTL_STATUS_INDENT, out);
            continue;
        }

        fprintf(out, "%*s%-*s", indent, "", CTL_STATUS_WIDTH - indent, name);
        ctl_print_value(value, out);
    }
}


static void
ctl_status_show(const ctl_t *ctl, json_t *answer, FILE *out)
{
    (void) ctl;

    ctl_print_object(answer, 0, out);
}


int
ctl_status(const ctl_t *ctl)
{
    return ctl_show(ctl, "status", "role", ctl_status_show);
}
