
/* llmgwctl members: what stands in each column of a member. */

#include <stdio.h>
#include <string.h>

#include "ctl/columns.h"
#include "ctl/field.h"


static int
members_is_gateway(const json_t *member)
{
    return strcmp(ctl_text(member, "role"), "gateway") == 0;
}


/* "DEAD (timeout)" */
static const char *
members_state(const json_t *member, char *text)
{
    const char  *cause;

    cause = ctl_text(member, "cause");

    if (cause[0] == '\0') {
        return ctl_word(member, "state");
    }

    snprintf(text, CTL_CELL_BYTES, "%s (%s)", ctl_word(member, "state"),
             cause);

    return text;
}


static const char *
members_colour(const char *state)
{
    switch (state[0]) {
    case 'A':
        return "\033[32m";
    case 'S':
        return "\033[33m";
    case 'D':
        return "\033[31m";
    default:
        return "\033[2m";
    }
}


/* "READY, draining (operator)" */
static const char *
members_service(const json_t *member, char *text)
{
    const char  *owner;

    if (members_is_gateway(member)) {
        return "-";
    }

    owner = ctl_text(member, "drain_owner");

    snprintf(text, CTL_CELL_BYTES, "%s%s%s%s%s", ctl_word(member, "service"),
             json_is_true(json_object_get(member, "draining"))
             ? ", draining" : "",
             owner[0] ? " (" : "", owner, owner[0] ? ")" : "");

    return text;
}


/* "llama active 1763650000000001": the greater epoch is the later one. */
static const char *
members_group(const json_t *member, char *text)
{
    int         n;
    json_int_t  epoch;

    if (json_object_get(member, "group") == NULL) {
        return "-";
    }

    epoch = ctl_number(member, "group_epoch");
    n = snprintf(text, CTL_CELL_BYTES, "%.31s %.15s",
                 ctl_word(member, "group"), ctl_word(member, "group_state"));

    if (epoch != 0) {
        sprintf(text + n, " %" JSON_INTEGER_FORMAT, epoch);
    }

    return text;
}


/* "toy:4-7 of 16" */
static const char *
members_layers(const json_t *shard, char *text)
{
    snprintf(text, CTL_CELL_BYTES,
             "%.40s:%" JSON_INTEGER_FORMAT "-%" JSON_INTEGER_FORMAT " of %"
             JSON_INTEGER_FORMAT, ctl_word(shard, "model"),
             ctl_number(shard, "first"), ctl_number(shard, "last"),
             ctl_number(shard, "layers"));

    return text;
}


/* "llama-8b +2": the base model, and the number of further names; for a shard,
   the layers that it computes. */
static const char *
members_models(const json_t *member, char *text)
{
    json_t      *models, *shard;
    json_int_t   further;
    const char  *base;

    shard = json_object_get(member, "shard");

    if (shard != NULL) {
        return members_layers(shard, text);
    }

    models = json_object_get(member, "models");
    base = json_string_value(json_array_get(models, 0));
    further = (json_int_t) json_array_size(models) - 1
              + ctl_number(member, "models_cut");

    if (base == NULL || further <= 0) {
        return base != NULL ? base : "-";
    }

    snprintf(text, CTL_CELL_BYTES, "%.64s +%" JSON_INTEGER_FORMAT, base,
             further);

    return text;
}


/* "3/4": requests, and the capacity; "3": it has no limit. */
static const char *
members_load(const json_t *member, char *text)
{
    int         n;
    json_int_t  capacity;

    if (members_is_gateway(member)) {
        return "-";
    }

    capacity = ctl_number(member, "max_capacity");
    n = snprintf(text, CTL_CELL_BYTES, "%" JSON_INTEGER_FORMAT,
                 ctl_number(member, "active_requests"));

    if (capacity != 0) {
        sprintf(text + n, "/%" JSON_INTEGER_FORMAT, capacity);
    }

    return text;
}


/* "3 running, 1 waiting, KV 45%, hits 80%", as far as it is reported; or why
   the engine does not run. */
static const char *
members_engine(const json_t *member, char *text)
{
    size_t       i, len;
    json_t      *value;
    const char  *detail;

    static const struct {
        const char  *name, *before, *after;
        json_int_t   divisor;
    } figures[] = {
        { "running", "", " running", 1 }, { "waiting", "", " waiting", 1 },
        { "kv_permille", "KV ", "%", 10 }, { "hit_permille", "hits ", "%", 10 }
    };

    detail = json_string_value(json_object_get(member, "detail"));

    if (detail != NULL) {
        snprintf(text, CTL_CELL_BYTES, "%s", detail);
        return text;
    }

    for (i = 0, len = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        value = json_object_get(member, figures[i].name);

        if (value != NULL) {
            len += snprintf(text + len, CTL_CELL_BYTES - len,
                            "%s%s%" JSON_INTEGER_FORMAT "%s",
                            len ? ", " : "", figures[i].before,
                            json_integer_value(value) / figures[i].divisor,
                            figures[i].after);
        }
    }

    return len != 0 ? text : "-";
}


static const ctl_column_t  members_columns[] = {
    { "ID", .field = "id" },
    { "ROLE", .field = "role" },
    { "STATE", .cell = members_state, .colour = members_colour },
    { "SERVICE", .cell = members_service },
    { "GROUP", .cell = members_group, .is_optional = 1 },
    { "VERSION", .field = "model_version" },
    { "MODELS", .cell = members_models },
    { "LOAD", .cell = members_load },
    { "ENGINE", .cell = members_engine },
    { "GRPC", .field = "grpc" },
    { "GOSSIP", .field = "address" },
    { "INC", .field = "incarnation" }
};


static void
members_show(const ctl_t *ctl, json_t *answer, FILE *out)
{
    ctl_columns_print(ctl, members_columns,
                      sizeof(members_columns) / sizeof(members_columns[0]),
                      json_object_get(answer, "members"), out);
}


int
ctl_members(const ctl_t *ctl)
{
    return ctl_show(ctl, "members", "members", members_show);
}
