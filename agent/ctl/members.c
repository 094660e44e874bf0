
/* llmgwctl members: one line per member, columns as wide as needed. */

#include <stdio.h>
#include <string.h>

#include "ctl/field.h"
#include "ctl/link.h"


#define CTL_CELL_BYTES  96
#define CTL_NCOLUMNS    12

typedef struct {
    char  cells[CTL_NCOLUMNS][CTL_CELL_BYTES];
} ctl_row_t;

static const ctl_row_t  ctl_heading = { {
    "ID", "ROLE", "STATE", "SERVICE", "GROUP", "VERSION", "MODELS", "LOAD",
    "ENGINE", "GRPC", "GOSSIP", "INC"
} };

#define CTL_STATE_COLUMN  2
#define CTL_GROUP_COLUMN  4     /* where there are groups */


static void
ctl_fill_load(char *cell, const json_t *member)
{
    json_int_t  capacity;

    capacity = ctl_number(member, "max_capacity");

    if (strcmp(ctl_word(member, "role"), "gateway") == 0) {
        strcpy(cell, "-");

    } else if (capacity == 0) {
        snprintf(cell, CTL_CELL_BYTES, "%" JSON_INTEGER_FORMAT,
                 ctl_number(member, "active_requests"));

    } else {
        snprintf(cell, CTL_CELL_BYTES,
                 "%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
                 ctl_number(member, "active_requests"), capacity);
    }
}


/* "toy:4-7 of 16" */
static void
ctl_fill_layers(char *cell, const json_t *shard)
{
    snprintf(cell, CTL_CELL_BYTES,
             "%.40s:%" JSON_INTEGER_FORMAT "-%" JSON_INTEGER_FORMAT " of %"
             JSON_INTEGER_FORMAT, ctl_word(shard, "model"),
             ctl_number(shard, "first"), ctl_number(shard, "last"),
             ctl_number(shard, "layers"));
}


/* "llama-8b +2": the base model, and how many names more; of a shard what it
   computes. */
static void
ctl_fill_models(char *cell, const json_t *member)
{
    json_int_t   further;
    const char  *base;
    json_t      *models, *shard;

    shard = json_object_get(member, "shard");

    if (shard != NULL) {
        ctl_fill_layers(cell, shard);
        return;
    }

    models = json_object_get(member, "models");
    base = json_string_value(json_array_get(models, 0));
    further = (json_int_t) json_array_size(models) - 1
              + ctl_number(member, "models_cut");

    if (base == NULL) {
        strcpy(cell, "-");

    } else if (further > 0) {
        snprintf(cell, CTL_CELL_BYTES, "%.64s +%" JSON_INTEGER_FORMAT, base,
                 further);
    } else {
        snprintf(cell, CTL_CELL_BYTES, "%s", base);
    }
}


/* "3 running, 1 waiting, KV 45%, hits 80%": what it tells of these; or why it
   does not run. */
static void
ctl_fill_engine(char *cell, const json_t *member)
{
    size_t       i, len;
    json_t      *value;
    json_int_t   number;
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
        snprintf(cell, CTL_CELL_BYTES, "%s", detail);
        return;
    }

    for (i = 0, len = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        value = json_object_get(member, figures[i].name);

        if (value != NULL) {
            number = json_integer_value(value) / figures[i].divisor;
            len += snprintf(cell + len, CTL_CELL_BYTES - len,
                            "%s%s%" JSON_INTEGER_FORMAT "%s",
                            len ? ", " : "", figures[i].before, number,
                            figures[i].after);
        }
    }

    if (len == 0) {
        strcpy(cell, "-");
    }
}


/* "READY, draining (operator)" */
static void
ctl_fill_service(char *cell, const json_t *member)
{
    const char  *owner;

    if (strcmp(ctl_word(member, "role"), "gateway") == 0) {
        strcpy(cell, "-");
        return;
    }

    owner = json_string_value(json_object_get(member, "drain_owner"));

    snprintf(cell, CTL_CELL_BYTES, "%s%s%s%s%s", ctl_word(member, "service"),
             json_is_true(json_object_get(member, "draining"))
             ? ", draining" : "",
             owner ? " (" : "", owner ? owner : "", owner ? ")" : "");
}


/* "llama active 1763650000000001": the epoch tells the later one. */
static void
ctl_fill_group(char *cell, const json_t *member)
{
    json_int_t  epoch;

    if (json_object_get(member, "group") == NULL) {
        strcpy(cell, "-");
        return;
    }

    epoch = ctl_number(member, "group_epoch");
    cell += snprintf(cell, CTL_CELL_BYTES, "%.31s %.15s",
                     ctl_word(member, "group"),
                     ctl_word(member, "group_state"));

    if (epoch != 0) {
        sprintf(cell, " %" JSON_INTEGER_FORMAT, epoch);
    }
}


static void
ctl_fill_row(ctl_row_t *row, const json_t *member)
{
    const char  *cause;

    cause = json_string_value(json_object_get(member, "cause"));

#define cell(i)  row->cells[i], CTL_CELL_BYTES
    snprintf(cell(0), "%s", ctl_word(member, "id"));
    snprintf(cell(1), "%s", ctl_word(member, "role"));
    snprintf(cell(2), "%s%s%s%s", ctl_word(member, "state"),
             cause ? " (" : "", cause ? cause : "", cause ? ")" : "");
    ctl_fill_service(row->cells[3], member);
    ctl_fill_group(row->cells[CTL_GROUP_COLUMN], member);
    snprintf(cell(5), "%s", ctl_word(member, "model_version"));
    ctl_fill_models(row->cells[6], member);
    ctl_fill_load(row->cells[7], member);
    ctl_fill_engine(row->cells[8], member);
    snprintf(cell(9), "%s", ctl_word(member, "grpc"));
    snprintf(cell(10), "%s", ctl_word(member, "address"));
    snprintf(cell(11), "%" JSON_INTEGER_FORMAT,
             ctl_number(member, "incarnation"));
#undef cell
}


static void
ctl_widen(size_t *widths, const ctl_row_t *row)
{
    size_t  i, len;

    for (i = 0; i < CTL_NCOLUMNS; i++) {
        len = strlen(row->cells[i]);
        widths[i] = len > widths[i] ? len : widths[i];
    }
}


static const char *
ctl_state_colour(const char *state)
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


static void
ctl_print_row(const ctl_t *ctl, const size_t *widths, const ctl_row_t *row,
    FILE *out)
{
    int     is_coloured;
    size_t  i;

    for (i = 0; i < CTL_NCOLUMNS; i++) {
        if (widths[i] == 0) {
            continue;
        }

        is_coloured = ctl->has_colours && i == CTL_STATE_COLUMN
                      && row != &ctl_heading;

        fprintf(out, "%s%-*s%s%s",
                is_coloured ? ctl_state_colour(row->cells[i]) : "",
                i + 1 < CTL_NCOLUMNS ? (int) widths[i] : 0, row->cells[i],
                is_coloured ? "\033[0m" : "",
                i + 1 < CTL_NCOLUMNS ? "  " : "\n");
    }
}


static void
ctl_members_show(const ctl_t *ctl, json_t *answer, FILE *out)
{
    int         has_groups;
    size_t      i;
    size_t      widths[CTL_NCOLUMNS] = { 0 };
    json_t     *member, *members;
    ctl_row_t   row;

    has_groups = 0;
    members = json_object_get(answer, "members");

    ctl_widen(widths, &ctl_heading);

    json_array_foreach(members, i, member) {
        ctl_fill_row(&row, member);
        ctl_widen(widths, &row);
        has_groups |= json_object_get(member, "group") != NULL;
    }

    if (!has_groups) {
        widths[CTL_GROUP_COLUMN] = 0;
    }

    ctl_print_row(ctl, widths, &ctl_heading, out);

    json_array_foreach(members, i, member) {
        ctl_fill_row(&row, member);
        ctl_print_row(ctl, widths, &row, out);
    }
}


int
ctl_members(const ctl_t *ctl)
{
    return ctl_show(ctl, "members", "members", ctl_members_show);
}
