
/* llmgwctl keys: its options, and "list" and "check". */

#include <stdio.h>
#include <string.h>

#include "ctl/columns.h"
#include "ctl/field.h"
#include "ctl/files/keys_line.h"
#include "proto/date.h"


static const option_t  ctl_keys_table[] = {
    { .name = "file", .kind = OPTION_STRING, .metavar = "PATH",
      .value = "/etc/llmgw/keys", .offset = offsetof(ctl_options_t, keys_file),
      .help = "the file of keys" },
    { .name = "grace", .kind = OPTION_DURATION, .value = "168h",
      .offset = offsetof(ctl_options_t, grace_ms),
      .help = "rotate: how long the old key stays valid" },
    { .name = "identity", .kind = OPTION_FLAG,
      .offset = offsetof(ctl_options_t, is_identity),
      .help = "add: make no key; another system checks identities" },
    { .name = NULL }
};

const options_spec_t  ctl_keys_spec = {
    .program = "llmgwctl keys",
    .synopsis = "add NAME [WORD...] | list | revoke NAME [ID]"
                " | rotate NAME [ID] | check",
    .summary = "Makes keys, and changes the file that lists their hashes.\n"
               "WORD: models=LIST rpm=N tpm=N streams=N budget=N/day"
               " budget=N/month class=NAME\n"
               "tenant=NAME expires=DATE admin.  ID: of the key, as list shows"
               " it.",
    .table = ctl_keys_table
};


/* Writes "2027-01-31T12:00Z", "expired", or "-" for a key without an end. */
static const char *
keys_valid_until(const json_t *key, char *text)
{
    const char  *date;

    date = ctl_word(key, "valid_until");

    if (strcmp(date, "-") == 0) {
        return date;
    }

    if (!json_is_true(json_object_get(key, "valid"))) {
        return "expired";
    }

    snprintf(text, CTL_CELL_BYTES, "%.*sZ", (int) strlen("2027-01-31T12:00"),
             date);

    return text;
}


static const ctl_column_t  keys_columns[] = {
    { "NAME", .field = "name" },
    { "ID", .field = "id" },
    { "VALID UNTIL", .cell = keys_valid_until },
    { "MAY", .field = "may" }
};


static json_t *
keys_json(const keys_file_line_t *line, uint64_t now_ms)
{
    char      id[KEY_ID_CHARS + 1], date[LLMGW_DATE_BYTES];
    uint64_t  until_ms;

    keys_line_id(line, id);
    until_ms = keys_line_until_ms(line);
    llmgw_date_write(date, until_ms);

    return json_pack("{s:s%,s:s,s:b,s:s?,s:s%}", "name", line->name.text,
                     (size_t) line->name.len, "id", id, "valid",
                     until_ms > now_ms, "valid_until",
                     until_ms == LLMGW_KEY_FOREVER ? NULL : date, "may",
                     line->rest.text, (size_t) line->rest.len);
}


static json_t *
keys_rows(keys_file_t *file, uint64_t now_ms)
{
    json_t            *rows;
    const char        *at;
    keys_file_line_t   line;

    rows = json_array();

    for (at = NULL; keys_file_next(file, &at, &line); ) {
        if (line.name.text != NULL) {
            json_array_append_new(rows, keys_json(&line, now_ms));
        }
    }

    return rows;
}


int
ctl_keys_list(const ctl_t *ctl)
{
    json_t       *rows;
    keys_file_t   file;

    if (keys_file_open(&file, ctl->options.keys_file, 0, 0) != 0) {
        return CTL_FAILED;
    }

    rows = keys_rows(&file, keys_file_now_ms());
    keys_file_done(&file);

    if (ctl->is_json) {
        ctl_print_json(rows);

    } else {
        ctl_columns_print(ctl, keys_columns,
                          sizeof(keys_columns) / sizeof(keys_columns[0]),
                          rows, stdout);
    }

    json_decref(rows);

    return CTL_DONE;
}


typedef struct {
    const char  *path;
    json_t      *errors;
    int          is_json;
} keys_check_t;


static void
keys_on_error(const llmgw_keys_error_t *error, void *data)
{
    keys_check_t  *check = data;

    json_array_append_new(check->errors, json_pack("{s:I,s:s}", "line",
                              (json_int_t) error->line, "error", error->text));

    if (check->is_json) {
        return;
    }

    if (error->line > 0) {
        printf("%s:%u: %s\n", check->path, error->line, error->text);

    } else {
        printf("%s: %s\n", check->path, error->text);
    }
}


int
ctl_keys_check(const ctl_t *ctl)
{
    int             is_good;
    json_t         *object;
    keys_file_t     file;
    keys_check_t    check;
    llmgw_keys_t   *keys;

    if (keys_file_open(&file, ctl->options.keys_file, 0, 0) != 0) {
        return CTL_FAILED;
    }

    check = (keys_check_t) { ctl->options.keys_file, json_array(),
                             ctl->is_json };
    keys = keys_file_parse(file.text, file.len, keys_on_error, &check);
    keys_file_done(&file);

    if (keys == NULL) {
        json_decref(check.errors);
        return CTL_FAILED;
    }

    is_good = json_array_size(check.errors) == 0;
    object = json_pack("{s:b,s:I,s:I,s:o}", "ok", is_good, "keys",
                       (json_int_t) keys->nkeys - 1, "accounts",
                       (json_int_t) keys->naccounts, "errors", check.errors);

    if (ctl->is_json) {
        ctl_print_json(object);

    } else if (is_good) {
        printf("%s: %u keys of %u accounts\n", check.path, keys->nkeys - 1,
               keys->naccounts);
    }

    json_decref(object);
    llmgw_keys_destroy(keys);

    return is_good ? CTL_DONE : CTL_FAILED;
}
