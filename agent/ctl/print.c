
/*
 * Answers and events as lines of JSON, for --json.
 */

#include <stdio.h>

#include "ctl/main.h"


void
ctl_print_json(const json_t *json)
{
    json_dumpf(json, stdout, JSON_COMPACT);
    putchar('\n');
}


void
ctl_print_event(void *data, const json_t *event)
{
    ctl_print_json(event);
    fflush(stdout);         /* a reader of a pipe wants it now */
}
