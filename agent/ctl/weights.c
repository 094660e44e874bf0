
/*
 * llmgwctl weights status: what a weights service keeps, and for which clients.
 */

#include <stdio.h>
#include <string.h>

#include "ctl/field.h"
#include "ctl/link.h"


#define CTL_WEIGHTS_WIDTH  10

static const option_t  ctl_weights_table[] = {
    { .name = "weights", .kind = OPTION_STRING, .metavar = "PATH",
      .value = "/run/llmgw/weights.sock",
      .offset = offsetof(ctl_options_t, service),
      .help = "socket of the service" },
    { .name = "watch", .kind = OPTION_FLAG,
      .offset = offsetof(ctl_options_t, is_watched),
      .help = "show it again every second" },
    { .name = NULL }
};

const options_spec_t  ctl_weights_spec = {
    .program = "llmgwctl weights status",
    .synopsis = "[options]",
    .summary = "Shows what a weights service keeps, and for which engines.",
    .table = ctl_weights_table
};


static void
ctl_weights_line(FILE *out, const char *name, const char *text)
{
    fprintf(out, "%-*s%s\n", CTL_WEIGHTS_WIDTH, name, text);
}


/* "1503238553 bytes, 42% hashed" */
static void
ctl_weights_bytes(const json_t *answer, FILE *out)
{
    json_int_t  bytes, hashed;

    bytes = ctl_number(answer, "bytes");
    hashed = ctl_number(answer, "hashed_bytes");

    fprintf(out, "%-*s%" JSON_INTEGER_FORMAT, CTL_WEIGHTS_WIDTH, "bytes",
            bytes);

    if (hashed < bytes) {
        fprintf(out, ", %d%% hashed", (int) (100.0 * hashed / bytes));
    }

    fputc('\n', out);
}


/* "e2        waits for ro, 58 s left (pid 4711)" */
static void
ctl_weights_client(const json_t *client, FILE *out)
{
    fprintf(out, "%-*s%s", CTL_WEIGHTS_WIDTH,
            ctl_word(client, "engine"), ctl_word(client, "role"));

    if (json_object_get(client, "left_ms") != NULL) {
        fprintf(out, " for %s, %.1f s left", ctl_word(client, "mode"),
                ctl_number(client, "left_ms") / 1000.0);
    }

    fprintf(out, " (pid %" JSON_INTEGER_FORMAT ")\n",
            ctl_number(client, "pid"));
}


static void
ctl_weights_show(const ctl_t *ctl, json_t *answer, FILE *out)
{
    size_t      i;
    json_int_t  window_ms;
    json_t     *client;

    (void) ctl;

    fprintf(out, "%-*s%" JSON_INTEGER_FORMAT "\n", CTL_WEIGHTS_WIDTH,
            "device", ctl_number(answer, "device"));
    ctl_weights_line(out, "state", ctl_word(answer, "state"));
    ctl_weights_line(out, "name", ctl_word(answer, "name"));
    ctl_weights_bytes(answer, out);
    ctl_weights_line(out, "id", ctl_word(answer, "id"));
    window_ms = ctl_number(answer, "window_left_ms");

    if (window_ms > 0) {
        fprintf(out, "%-*s%.1f s in which no engine may write\n",
                CTL_WEIGHTS_WIDTH, "window", window_ms / 1000.0);
    }

    json_array_foreach(json_object_get(answer, "clients"), i, client) {
        ctl_weights_client(client, out);
    }
}


int
ctl_weights(const ctl_t *ctl)
{
    return ctl_show(ctl, "state", "clients", ctl_weights_show);
}
