
/*
 * Prints answers: for programs as lines of JSON, for people as the command
 * shows them.
 */

#include <stdio.h>

#include "ctl/link.h"


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
    fflush(stdout);         /* a reader of a pipe needs it now */
}


int
ctl_ask(const ctl_t *ctl, json_t *request, ctl_show_pt show)
{
    int      status;
    json_t  *answer;

    status = ctl_link_ask(ctl, request, &answer);

    if (status != CTL_DONE) {
        return status;
    }

    if (ctl->is_json) {
        ctl_print_json(answer);

    } else {
        show(ctl, answer, stdout);
    }

    json_decref(answer);

    return CTL_DONE;
}


int
ctl_follow(const ctl_t *ctl, json_t *request, ctl_event_pt on_event,
    ctl_show_pt on_done)
{
    int      status;
    json_t  *answer;

    status = ctl_link_follow(ctl, request,
                             ctl->is_json && on_event ? ctl_print_event
                                                       : on_event, NULL,
                             CTL_LINK_LIVELY, &answer);

    if (ctl->is_json && answer != NULL) {
        ctl_print_json(answer);

    } else if (status == CTL_DONE) {
        on_done(ctl, answer, stdout);
    }

    json_decref(answer);

    return status;
}
