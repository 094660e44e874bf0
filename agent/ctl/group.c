
/*
 * llmgwctl group: which standby groups there are, and the planned switch.  The
 * list is made from the members that the agent shows.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/columns.h"
#include "ctl/field.h"
#include "ctl/link.h"


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


/* 1: the member's agent is there, and it has a process. */
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


/* If several are active, requests go to the one with the greatest epoch. */
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


static const char *
ctl_group_state(const json_t *member, char *text)
{
    return ctl_group_has_process(member) ? ctl_word(member, "group_state")
                                         : "gone";
}


static const char *
ctl_group_epoch(const json_t *member, char *text)
{
    json_int_t  epoch;

    epoch = ctl_number(member, "group_epoch");
    snprintf(text, CTL_CELL_BYTES, "%" JSON_INTEGER_FORMAT, epoch);

    return epoch != 0 ? text : "-";
}


static const ctl_column_t  ctl_group_columns[] = {
    { "GROUP", .field = "group" },
    { "ID", .field = "id" },
    { "STATE", .cell = ctl_group_state },
    { "EPOCH", .cell = ctl_group_epoch },
    { "VERSION", .field = "model_version" },
    { "SERVICE", .field = "service" },
    { "AGENT", .field = "state" }
};


static void
ctl_group_print(const ctl_t *ctl, const json_t *groups)
{
    size_t   i;
    json_t  *group, *members;

    members = json_array();

    json_array_foreach(groups, i, group) {
        json_array_extend(members, json_object_get(group, "members"));
    }

    ctl_columns_print(ctl, ctl_group_columns,
                      sizeof(ctl_group_columns) / sizeof(ctl_group_columns[0]),
                      members, stdout);
    json_decref(members);

    json_array_foreach(groups, i, group) {
        if (json_is_true(json_object_get(group, "conflict"))) {
            printf("group \"%s\" has more than one active replica; requests "
                   "go to \"%s\"\n", ctl_text(group, "group"),
                   ctl_text(group, "active"));
        }
    }
}


int
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
        ctl_group_print(ctl, json_object_get(groups, "groups"));
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


static void
ctl_group_show_switch(const ctl_t *ctl, json_t *answer, FILE *out)
{
    fprintf(out, "%s: %s is active with epoch %" JSON_INTEGER_FORMAT ", %s "
            "was; it took %.3f s\n", ctl_text(answer, "group"),
            ctl_text(answer, "to"), ctl_number(answer, "epoch"),
            ctl_text(answer, "from"), ctl_number(answer, "ms") / 1e3);
}


int
ctl_group_switch(const ctl_t *ctl)
{
    return ctl_follow(ctl,
                      json_pack("{s:s, s:s, s:I}", "cmd", "group_switch",
                                "group", ctl->words[0], "timeout_ms",
                                (json_int_t) ctl->options.switch_timeout_ms),
                      ctl_group_print_switching, ctl_group_show_switch);
}
