
/*
 * llmgwctl rolling-update: requests an update, follows it, and shows its
 * progress.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/link.h"
#include "ctl/update_view.h"
#include "proto/members/members.h"


/* More replicas than any cluster has; the agent has the same limit. */
#define CTL_UPDATE_MAX_MEMBERS  65536

#define ctl_update_field(name)  offsetof(ctl_options_t, name)


static const option_t  ctl_update_table[] = {
    { .name = "to", .kind = OPTION_NAME, .metavar = "VERSION",
      .offset = ctl_update_field(to), .help = "the new version" },
    { .name = "members", .kind = OPTION_STRING, .metavar = "ID,...",
      .offset = ctl_update_field(members),
      .help = "only these, in the order of ids" },
    { .name = "stop", .kind = OPTION_STRING, .metavar = "CMD",
      .offset = ctl_update_field(stop),
      .help = "command that stops replica $LLMGW_ID" },
    { .name = "start", .kind = OPTION_STRING, .metavar = "CMD",
      .offset = ctl_update_field(start),
      .help = "command that starts it as $LLMGW_VERSION" },
    { .name = "drain-timeout", .kind = OPTION_DURATION, .value = "60s",
      .offset = ctl_update_field(drain_timeout_ms), .min = 0,
      .max = 86400000, .help = "limit for its streams, which then move on" },
    { .name = "rejoin-timeout", .kind = OPTION_DURATION, .value = "60s",
      .offset = ctl_update_field(rejoin_timeout_ms), .min = 1,
      .max = 86400000, .help = "for each command, the rejoin, the probe" },
    { .name = "max-unavailable", .kind = OPTION_INT, .value = "1",
      .offset = ctl_update_field(max_unavailable), .min = 1,
      .max = CTL_UPDATE_MAX_MEMBERS, .help = "how many replicas at once" },
    { .name = "min-available", .kind = OPTION_STRING, .metavar = "N",
      .offset = ctl_update_field(min_available),
      .help = "how many must stay routable (default: all others)" },
    { .name = "dry-run", .kind = OPTION_FLAG,
      .offset = ctl_update_field(is_dry), .help = "only show the plan" },
    { .name = "abort", .kind = OPTION_FLAG,
      .offset = ctl_update_field(is_abort),
      .help = "abort the running update, and wait for its end" },
    { .name = NULL }
};

const options_spec_t  ctl_update_spec = {
    .program = "llmgwctl rolling-update",
    .synopsis = "--to VERSION [options] | --abort",
    .summary = "Gives every replica another version, one after the other, "
               "without\nlosing a request. It continues when this command is "
               "interrupted; the\nsame command again follows it.",
    .table = ctl_update_table
};


/* --- the request */

/* Sets --min-available.  -1: it is no number within the limits. */
static int
ctl_update_set_least(json_t *request, const char *text)
{
    long   least;
    char  *end;

    if (text == NULL) {
        return 0;
    }

    errno = 0;
    least = strtol(text, &end, 10);

    if (end == text || *end != '\0' || errno != 0 || least < 0
        || least > CTL_UPDATE_MAX_MEMBERS)
    {
        return -1;
    }

    json_object_set_new(request, "min_available", json_integer(least));

    return 0;
}


/* Sets the ids of "r1,r2".  -1: an id is empty. */
static int
ctl_update_set_members(json_t *request, const char *text)
{
    size_t   len;
    json_t  *list;

    if (text == NULL) {
        return 0;
    }

    list = json_array();
    json_object_set_new(request, "members", list);

    for ( ;; ) {
        len = strcspn(text, ",");

        if (!llmgw_name_is_valid(text, len)) {
            return -1;
        }

        json_array_append_new(list, json_stringn(text, len));

        if (text[len] == '\0') {
            return 0;
        }

        text += len + 1;
    }
}


/*
 * Sets a shell command.  -1: JSON cannot carry it, which was reported.  Without
 * it the update would be another one: by orders, or one that stops nothing.
 */
static int
ctl_update_set_command(json_t *request, const char *name, const char *command)
{
    if (command != NULL
        && json_object_set_new(request, name, json_string(command)) != 0)
    {
        ctl_usage("a command that is not UTF-8:", name);
        return -1;
    }

    return 0;
}


/* Makes the request.  NULL: wrong usage, which was reported. */
static json_t *
ctl_update_request(const ctl_options_t *options)
{
    json_t  *request;

    if (options->is_abort) {
        return json_pack("{s:s}", "cmd", "update_abort");
    }

    if (options->to == NULL) {
        ctl_usage("--to or --abort is required", NULL);
        return NULL;
    }

    if (options->stop != NULL && options->start == NULL) {
        ctl_usage("--stop needs --start", NULL);
        return NULL;
    }

    request = json_pack("{s:s, s:s, s:b, s:I, s:I, s:I}",
                        "cmd", "rolling_update", "to", options->to,
                         "dry_run", options->is_dry,
                         "drain_timeout_ms",
                         (json_int_t) options->drain_timeout_ms,
                         "rejoin_timeout_ms",
                         (json_int_t) options->rejoin_timeout_ms,
                         "max_unavailable",
                         (json_int_t) options->max_unavailable);

    if (ctl_update_set_command(request, "stop", options->stop) != 0
        || ctl_update_set_command(request, "start", options->start) != 0)
    {
        json_decref(request);
        return NULL;
    }

    if (ctl_update_set_members(request, options->members) != 0) {
        ctl_usage("--members: ids and commas, not", options->members);
        json_decref(request);
        return NULL;
    }

    if (ctl_update_set_least(request, options->min_available) != 0) {
        ctl_usage("--min-available: 0 .. 65536, not", options->min_available);
        json_decref(request);
        return NULL;
    }

    return request;
}


/* --- the command */

int
ctl_update(const ctl_t *ctl)
{
    int                 status;
    json_t             *request, *answer;
    ctl_update_view_t   view;

    request = ctl_update_request(&ctl->options);

    if (request == NULL) {
        return CTL_USAGE;
    }

    ctl_update_view_init(&view, ctl->has_colours);
    status = ctl_link_follow(ctl, request,
                             ctl->is_json ? ctl_print_event
                                          : ctl_update_view_event,
                             &view, CTL_LINK_LIVELY, &answer);

    if (ctl->is_json) {
        if (answer != NULL) {
            ctl_print_json(answer);
        }

    } else {
        ctl_update_view_end(&view, answer);
    }

    ctl_update_view_done(&view);
    json_decref(answer);

    return status;
}
