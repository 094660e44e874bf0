
/*
 * llmgwctl drain, undrain: shows the progress as it is reported, then the
 * outcome.
 */

#include <stdio.h>

#include "ctl/link.h"


static const option_t  ctl_drain_table[] = {
    { .name = "drain-timeout", .kind = OPTION_DURATION, .value = "60s",
      .offset = offsetof(ctl_options_t, drain_timeout_ms),
      .min = 0, .max = 86400000,
      .help = "how long to wait for its streams" },
    { .name = "force", .kind = OPTION_FLAG,
      .offset = offsetof(ctl_options_t, is_forced),
      .help = "even if it is the last routable replica" },
    { .name = NULL }
};

const options_spec_t  ctl_drain_spec = {
    .program = "llmgwctl drain",
    .synopsis = "ID [options]",
    .summary = "Stops new requests to a replica and waits for its last stream.",
    .table = ctl_drain_table
};


static void
ctl_print_draining(void *data, const json_t *event)
{
    json_t  *active;

    active = json_object_get(event, "active_requests");

    if (json_is_integer(active)) {
        printf("%s is draining, %" JSON_INTEGER_FORMAT " running\n",
               json_string_value(json_object_get(event, "id")),
               json_integer_value(active));

    } else {
        printf("%s is draining, and does not report what it runs\n",
               json_string_value(json_object_get(event, "id")));
    }

    fflush(stdout);
}


static void
ctl_drain_show(const ctl_t *ctl, json_t *answer, FILE *out)
{
    fprintf(out, "%s is drained\n", ctl->words[0]);
}


int
ctl_drain(const ctl_t *ctl)
{
    return ctl_follow(ctl,
                      json_pack("{s:s, s:s, s:I, s:b}", "cmd", "drain",
                                "id", ctl->words[0], "timeout_ms",
                                (json_int_t) ctl->options.drain_timeout_ms,
                                "force", ctl->options.is_forced),
                      ctl_print_draining, ctl_drain_show);
}


static void
ctl_undrain_show(const ctl_t *ctl, json_t *answer, FILE *out)
{
    const char  *owner;

    owner = json_string_value(json_object_get(answer, "drain_owner"));

    fprintf(out, "%s %s%s\n", ctl->words[0],
            owner ? "is still drained by " : "gets new requests again",
            owner ? owner : "");
}


/* The events of an undrain are not shown: they only tell how long it takes. */
int
ctl_undrain(const ctl_t *ctl)
{
    return ctl_follow(ctl, json_pack("{s:s, s:s}", "cmd", "undrain", "id",
                                     ctl->words[0]),
                      NULL, ctl_undrain_show);
}
