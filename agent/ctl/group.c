
/*
 * llmgwctl group: which standby groups there are, and the planned switch.
 *
 * The list is made from the members, as the agent tells of them.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/field.h"
#include "ctl/link.h"


#define CTL_GROUP_NCOLUMNS  7

static const char *const  ctl_group_heading[CTL_GROUP_NCOLUMNS] = {
    "GROUP", "ID", "STATE", "EPOCH", "VERSION", "SERVICE", "AGENT"
};

static const option_t  ctl_group_table[] = {
    { .name = "timeout", .kind = OPTION_DURATION, .value = "60s",
      .offset = offsetof(ctl_options_t, switch_timeout_ms),
      .min = 0, .max = 86400000,
      .help = "switch: how long to wait for the successor" },
    { .name = NULL }
};

const options_spec_t  ctl_group_spec = {
    .program = "llmgwctl group",
    .synopsis = "[list] | switch GROUP [options]",
    .summary = "Lists the standby groups; or ends the active replica of a "
               "group, so that\nits standby takes over, and waits for that.",
    .table = ctl_group_table
};


/* --- list */

static int
ctl_group_is(const json_t *member, const char *name, const char *value)
{
    return strcmp(ctl_text(member, name), value) == 0;
}


/* Its agent is there, and it has a process. */
static int
ctl_group_has_process(const json_t *member)
{
    return (ctl_group_is(member, "state", "ALIVE")
            || ctl_group_is(member, "state", "SUSPECT"))
           && !ctl_group_is(member, "service", "STOPPED")
           && !ctl_group_is(member, "service", "DOWN");
}


static int
ctl_group_is_active(const json_t *member)
{
    return ctl_group_is(member, "group_state", "active")
           && ctl_group_has_process(member);
}


static json_t *
ctl_group_find(json_t *groups, const char *name)
{
    size_t   i;
    json_t  *group;

    json_array_foreach(groups, i, group) {
        if (ctl_group_is(group, "group", name)) {
            return group;
        }
    }

    group = json_pack("{s:s, s:n, s:i, s:b, s:[]}", "group", name, "active",
                      "epoch", 0, "conflict", 0, "members");
    json_array_append_new(groups, group);

    return group;
}


/* Of several active ones, the one of the greatest epoch is routed to. */
static void
ctl_group_add(json_t *group, json_t *member)
{
    json_int_t  epoch;

    json_array_append(json_object_get(group, "members"), member);

    if (!ctl_group_is_active(member)) {
        return;
    }

    epoch = ctl_number(member, "group_epoch");

    if (json_is_string(json_object_get(group, "active"))) {
        json_object_set_new(group, "conflict", json_true());

        if (epoch <= ctl_number(group, "epoch")) {
            return;
        }
    }

    json_object_set(group, "active", json_object_get(member, "id"));
    json_object_set_new(group, "epoch", json_integer(epoch));
}


static int
ctl_group_compare(const void *one, const void *other)
{
    return strcmp(ctl_text(*(json_t *const *) one, "group"),
                  ctl_text(*(json_t *const *) other, "group"));
}


/* {"groups":[...]}, in the order of names; NULL: out of memory. */
static json_t *
ctl_group_collect(const json_t *answer)
{
    size_t    i, n;
    json_t   *member, *groups, *group, *sorted, **list;

    groups = json_array();

    json_array_foreach(json_object_get(answer, "members"), i, member) {
        if (!ctl_group_is(member, "group", "")) {
            ctl_group_add(ctl_group_find(groups,
                                         ctl_text(member, "group")),
                          member);
        }
    }

    n = json_array_size(groups);
    list = calloc(n + 1, sizeof(json_t *));
    sorted = json_array();

    if (list == NULL) {
        json_decref(groups);
        json_decref(sorted);
        return NULL;
    }

    json_array_foreach(groups, i, group) {
        list[i] = group;
    }

    qsort(list, n, sizeof(json_t *), ctl_group_compare);

    for (i = 0; i < n; i++) {
        json_array_append(sorted, list[i]);
    }

    free(list);
    json_decref(groups);

    return json_pack("{s:o}", "groups", sorted);
}


/* What of a group's member stands in each column. */
static void
ctl_group_fill(const json_t *group, const json_t *member, char *epoch,
    size_t bytes, const char *cells[CTL_GROUP_NCOLUMNS])
{
    json_int_t  granted;

    granted = ctl_number(member, "group_epoch");
    snprintf(epoch, bytes, "%" JSON_INTEGER_FORMAT, granted);

    cells[0] = ctl_text(group, "group");
    cells[1] = ctl_text(member, "id");
    cells[2] = ctl_group_has_process(member) ? ctl_word(member, "group_state")
                                             : "gone";
    cells[3] = granted ? epoch : "-";
    cells[4] = ctl_word(member, "model_version");
    cells[5] = ctl_text(member, "service");
    cells[6] = ctl_text(member, "state");
}


static void
ctl_group_put(const char *const cells[CTL_GROUP_NCOLUMNS], size_t *widths,
    int is_measured)
{
    size_t  i, len;

    for (i = 0; i < CTL_GROUP_NCOLUMNS; i++) {
        len = strlen(cells[i]);

        if (is_measured) {
            widths[i] = len > widths[i] ? len : widths[i];

        } else if (i + 1 < CTL_GROUP_NCOLUMNS) {
            printf("%-*s  ", (int) widths[i], cells[i]);

        } else {
            printf("%s\n", cells[i]);
        }
    }
}


static void
ctl_group_print(const json_t *groups)
{
    int          is_measured;
    char         epoch[32];
    size_t       i, k;
    size_t       widths[CTL_GROUP_NCOLUMNS] = { 0 };
    json_t      *group, *member;
    const char  *cells[CTL_GROUP_NCOLUMNS];

    for (is_measured = 1; is_measured >= 0; is_measured--) {
        ctl_group_put(ctl_group_heading, widths, is_measured);

        json_array_foreach(groups, i, group) {
            json_array_foreach(json_object_get(group, "members"), k, member) {
                ctl_group_fill(group, member, epoch, sizeof(epoch), cells);
                ctl_group_put(cells, widths, is_measured);
            }
        }
    }

    json_array_foreach(groups, i, group) {
        if (json_is_true(json_object_get(group, "conflict"))) {
            printf("group \"%s\" has more than one active replica; requests "
                   "go to \"%s\"\n", ctl_text(group, "group"),
                   ctl_text(group, "active"));
        }
    }
}


static int
ctl_group_list(const ctl_t *ctl)
{
    int      status;
    json_t  *answer, *groups;

    status = ctl_link_ask(ctl, json_pack("{s:s}", "cmd", "members"), &answer);

    if (status != CTL_DONE) {
        return status;
    }

    groups = ctl_group_collect(answer);
    json_decref(answer);

    if (groups == NULL) {
        fprintf(stderr, "llmgwctl: out of memory\n");
        return CTL_FAILED;
    }

    if (ctl->is_json) {
        ctl_print_json(groups);

    } else {
        ctl_group_print(json_object_get(groups, "groups"));
    }

    json_decref(groups);

    return CTL_DONE;
}


/* --- switch */

static void
ctl_group_print_switching(void *data, const json_t *event)
{
    printf("%s: waiting for the successor of %s, %.1f s\n",
           ctl_text(event, "group"), ctl_text(event, "from"),
           ctl_number(event, "ms") / 1e3);
    fflush(stdout);
}


static int
ctl_group_switch(const ctl_t *ctl)
{
    int      status;
    json_t  *answer;

    status = ctl_link_follow(ctl,
                 json_pack("{s:s, s:s, s:I}", "cmd", "group_switch",
                           "group", ctl->words[1], "timeout_ms",
                           (json_int_t) ctl->options.switch_timeout_ms),
                 ctl->is_json ? ctl_print_event : ctl_group_print_switching,
                 NULL, CTL_LINK_LIVELY, &answer);

    if (ctl->is_json && answer != NULL) {
        ctl_print_json(answer);

    } else if (status == CTL_DONE) {
        printf("%s: %s is active with epoch %" JSON_INTEGER_FORMAT ", %s was; "
               "it took %.3f s\n", ctl_text(answer, "group"),
               ctl_text(answer, "to"), ctl_number(answer, "epoch"),
               ctl_text(answer, "from"), ctl_number(answer, "ms") / 1e3);
    }

    json_decref(answer);

    return status;
}


int
ctl_group(const ctl_t *ctl)
{
    const char  *verb;

    verb = ctl->nwords > 0 ? ctl->words[0] : "list";

    if (strcmp(verb, "list") == 0) {
        return ctl->nwords > 1 ? ctl_usage("unexpected word", ctl->words[1])
                               : ctl_group_list(ctl);
    }

    if (strcmp(verb, "switch") != 0) {
        return ctl_usage("there is no command", verb);
    }

    return ctl->nwords < 2 ? ctl_usage("a group is missing after", verb)
                           : ctl_group_switch(ctl);
}
