
/*
 * llmgwctl lock status: which process holds each group of a host, and which
 * wait.
 */

#include <stdio.h>
#include <string.h>

#include "ctl/field.h"
#include "ctl/link.h"


#define CTL_LOCK_WIDTH  10

static const option_t  ctl_lock_table[] = {
    { .name = "lock", .kind = OPTION_STRING, .metavar = "PATH",
      .value = "/run/llmgw/lock.sock",
      .offset = offsetof(ctl_options_t, service),
      .help = "socket of the service" },
    { .name = "watch", .kind = OPTION_FLAG,
      .offset = offsetof(ctl_options_t, is_watched),
      .help = "show it again every second" },
    { .name = NULL }
};

const options_spec_t  ctl_lock_spec = {
    .program = "llmgwctl lock status",
    .synopsis = "[options]",
    .summary = "Shows which engine holds each group of a host, and which wait.",
    .table = ctl_lock_table
};


static void
ctl_lock_name(const char *name, FILE *out)
{
    fprintf(out, "  %-*s", CTL_LOCK_WIDTH, name);
}


/* Prints "holder    r1 (pid 4711, 3 processes), epoch 1763650000300001". */
static void
ctl_lock_holder(const json_t *group, FILE *out)
{
    json_int_t  n;

    ctl_lock_name("holder", out);

    if (json_is_null(json_object_get(group, "holder"))) {
        fprintf(out, "-\n");
        return;
    }

    n = ctl_number(group, "processes");
    fprintf(out, "%s (pid %" JSON_INTEGER_FORMAT ", %" JSON_INTEGER_FORMAT
            " process%s), epoch %" JSON_INTEGER_FORMAT "\n",
            ctl_word(group, "holder"), ctl_number(group, "pid"), n,
            n == 1 ? "" : "es", ctl_number(group, "epoch"));
}


/* Prints "waiters   r2 waiting, r3 silent". */
static void
ctl_lock_waiters(const json_t *group, FILE *out)
{
    size_t   i;
    json_t  *waiter, *waiters;

    waiters = json_object_get(group, "waiters");
    ctl_lock_name("waiters", out);

    json_array_foreach(waiters, i, waiter) {
        fprintf(out, "%s%s %s", i > 0 ? ", " : "",
                ctl_word(waiter, "engine"), ctl_word(waiter, "state"));
    }

    fprintf(out, "%s\n", json_array_size(waiters) == 0 ? "-" : "");
}


/* Prints "takeover  gone after 12 ms, granted after 15 ms". */
static void
ctl_lock_last(const json_t *group, FILE *out)
{
    json_t  *last, *gone, *grant;

    last = json_object_get(group, "last");
    gone = json_object_get(last, "gone_ms");
    grant = json_object_get(last, "grant_ms");

    if (!json_is_integer(gone)) {
        return;
    }

    ctl_lock_name("takeover", out);
    fprintf(out, "gone after %" JSON_INTEGER_FORMAT " ms",
            json_integer_value(gone));

    if (json_is_integer(grant)) {
        fprintf(out, ", granted after %" JSON_INTEGER_FORMAT " ms",
                json_integer_value(grant));
    }

    fputc('\n', out);
}


static void
ctl_lock_group(const json_t *group, FILE *out)
{
    json_int_t  window_ms;

    fprintf(out, "%s\n", ctl_word(group, "group"));
    ctl_lock_name("state", out);
    fprintf(out, "%s", ctl_word(group, "state"));

    if (!json_is_null(json_object_get(group, "fault"))) {
        fprintf(out, ", %s", ctl_word(group, "fault"));
    }

    window_ms = ctl_number(group, "window_left_ms");

    if (window_ms > 0) {
        fprintf(out, ", %.1f s left", (double) window_ms / 1000);
    }

    fputc('\n', out);
    ctl_lock_holder(group, out);
    ctl_lock_waiters(group, out);
    ctl_lock_name("fence", out);
    fprintf(out, "%s\n", ctl_word(group, "fence"));
    ctl_lock_last(group, out);
}


static void
ctl_lock_show(const ctl_t *ctl, json_t *answer, FILE *out)
{
    size_t   i;
    json_t  *group, *groups;

    (void) ctl;

    groups = json_object_get(answer, "groups");

    json_array_foreach(groups, i, group) {
        ctl_lock_group(group, out);
    }

    if (json_array_size(groups) == 0) {
        fprintf(out, "no group yet\n");
    }
}


int
ctl_lock(const ctl_t *ctl)
{
    return ctl_show(ctl, "status", "groups", ctl_lock_show);
}
