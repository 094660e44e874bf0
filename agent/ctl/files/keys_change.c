
/*
 * llmgwctl keys add, revoke, rotate.  A key is shown once, when it is made, and
 * is in no file.
 */

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/files/keys_line.h"
#include "ctl/main.h"
#include "proto/date.h"


#define KEY_PREFIX  "sk-llmgw-"
#define KEY_BYTES   32                  /* random bytes */
#define KEY_CHARS   (sizeof(KEY_PREFIX) - 1 + 43)

/* The new content of the file, made line by line from the old one. */
typedef struct {
    keys_file_t   file;
    FILE         *out;
    char         *text;
    size_t        len;
    uint64_t      now_ms;
} keys_edit_t;


static void
put_text(FILE *out, llmgw_key_text_t text)
{
    fwrite(text.text, 1, text.len, out);
}


/*
 * A change consists of edit_begin(), writing the new text to edit->out, and
 * edit_end().
 */

static int
edit_begin(keys_edit_t *edit, const ctl_t *ctl, int is_new)
{
    if (sodium_init() < 0) {
        fprintf(stderr, "llmgwctl: there is no source of random numbers\n");
        return -1;
    }

    memset(edit, 0, sizeof(*edit));
    edit->now_ms = keys_file_now_ms();

    if (keys_file_open(&edit->file, ctl->options.keys_file, 1, is_new) != 0) {
        return -1;
    }

    edit->out = open_memstream(&edit->text, &edit->len);

    if (edit->out == NULL) {
        keys_file_done(&edit->file);
        fprintf(stderr, "llmgwctl: out of memory\n");
        return -1;
    }

    return 0;
}


/*
 * Ends a change; is_wanted 0: the file stays as it is.  Returns an exit status.
 */
static int
edit_end(keys_edit_t *edit, int is_wanted)
{
    int  rc;

    rc = fclose(edit->out) == 0 && is_wanted
         && keys_file_write(&edit->file, edit->text, edit->len) == 0
         ? CTL_DONE : CTL_FAILED;

    free(edit->text);
    keys_file_done(&edit->file);

    return rc;
}


/* Writes a line unchanged, but valid up to that time at most. */
static void
edit_put_until(keys_edit_t *edit, const keys_file_line_t *line,
    uint64_t until_ms)
{
    char               date[LLMGW_DATE_BYTES];
    const char        *p, *end;
    llmgw_key_text_t   word;

    put_text(edit->out, line->name);
    fputc(' ', edit->out);
    put_text(edit->out, line->hash);
    fputc(' ', edit->out);

    p = line->rest.text;
    end = p + line->rest.len;

    if (keys_line_find(line, "until=", &word)) {
        fwrite(p, 1, (size_t) (word.text - p), edit->out);
        p = word.text + word.len;
        p += (p < end);                 /* skip the blank after it */
    }

    fwrite(p, 1, (size_t) (end - p), edit->out);

    llmgw_date_write(date, until_ms);
    fprintf(edit->out, "%suntil=%.*sZ",
            p < end && end[-1] != ' ' ? " " : "",
            (int) strlen("2027-01-31T12:00:00"), date);

    if (line->comment.text != NULL) {
        fputs("  ", edit->out);
        put_text(edit->out, line->comment);
    }

    fputc('\n', edit->out);
}


static void
edit_put_line(keys_edit_t *edit, llmgw_key_text_t line)
{
    put_text(edit->out, line);
    fputc('\n', edit->out);
}


/* A key and its hash, as text. */
typedef struct {
    char  key[KEY_CHARS + 1];
    char  hash[2 * LLMGW_KEY_HASH_BYTES + 1];
} new_key_t;


static void
new_key_make(new_key_t *new)
{
    uint8_t  chance[KEY_BYTES];

    randombytes_buf(chance, sizeof(chance));
    memcpy(new->key, KEY_PREFIX, sizeof(KEY_PREFIX));
    (void) sodium_bin2base64(new->key + sizeof(KEY_PREFIX) - 1,
                             sizeof(new->key) - sizeof(KEY_PREFIX) + 1, chance,
                             sizeof(chance),
                             sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    llmgw_key_hash(new->key, KEY_CHARS, new->hash);
    sodium_memzero(chance, sizeof(chance));
}


/*
 * Shows the key, for the only time.  Standard output has nothing but the key.
 */
static void
new_key_show(const ctl_t *ctl, const char *name, const new_key_t *new)
{
    json_t  *object;

    if (ctl->is_json) {
        object = json_pack("{s:s,s:s,s:s%}", "name", name, "key", new->key,
                           "id", new->hash, (size_t) KEY_ID_CHARS);
        ctl_print_json(object);
        json_decref(object);
        return;
    }

    printf("%s\n", new->key);
    (void) fflush(stdout);
    fprintf(stderr, "llmgwctl: the key of \"%s\" with the id %.*s; it is not "
            "shown again\n", name, KEY_ID_CHARS, new->hash);
}


/*
 * Checks one word of a line: with blanks it would be several words, and with
 * '#' a comment.  0; or an error that was reported.
 */
static int
keys_check_word(const char *word)
{
    return word[0] != '\0' && word[0] != '#'
           && strcspn(word, " \t\r\n") == strlen(word)
           ? 0 : ctl_usage("not a word of a key's line:", word);
}


int
ctl_keys_add(const ctl_t *ctl)
{
    int          i, status;
    new_key_t    new;
    keys_edit_t  edit;

    for (i = 0; i < ctl->nwords; i++) {
        if (keys_check_word(ctl->words[i]) != 0) {
            return CTL_USAGE;
        }
    }

    if (edit_begin(&edit, ctl, 1) != 0) {
        return CTL_FAILED;
    }

    new_key_make(&new);
    fwrite(edit.file.text, 1, edit.file.len, edit.out);

    if (edit.file.len > 0 && edit.file.text[edit.file.len - 1] != '\n') {
        fputc('\n', edit.out);
    }

    fprintf(edit.out, "%s %s", ctl->words[0],
            ctl->options.is_identity ? "-" : new.hash);

    for (i = 1; i < ctl->nwords; i++) {
        fprintf(edit.out, " %s", ctl->words[i]);
    }

    fputc('\n', edit.out);
    status = edit_end(&edit, 1);

    if (status == CTL_DONE && !ctl->options.is_identity) {
        new_key_show(ctl, ctl->words[0], &new);
    }

    sodium_memzero(&new, sizeof(new));

    return status;
}


/* 1: the command's NAME, and ID if given, name this line. */
static int
keys_is_meant(const keys_file_line_t *line, const ctl_t *ctl)
{
    char  id[KEY_ID_CHARS + 1];

    if (line->name.text == NULL || !keys_text_is(line->name, ctl->words[0])) {
        return 0;
    }

    keys_line_id(line, id);

    return ctl->nwords == 1 || strcmp(id, ctl->words[1]) == 0;
}


static int
keys_none(const ctl_t *ctl)
{
    int  has_id;

    has_id = ctl->nwords > 1;
    fprintf(stderr, "llmgwctl: no valid key of \"%s\"%s%s\n", ctl->words[0],
            has_id ? " with the id " : "", has_id ? ctl->words[1] : "");

    return CTL_NOT_FOUND;
}


/*
 * The line stays: its facts about the account are still valid for other keys.
 */
int
ctl_keys_revoke(const ctl_t *ctl)
{
    int                status, found;
    const char        *at;
    keys_edit_t        edit;
    keys_file_line_t   line;

    if (edit_begin(&edit, ctl, 0) != 0) {
        return CTL_FAILED;
    }

    for (found = 0, at = NULL; keys_file_next(&edit.file, &at, &line); ) {

        if (keys_is_meant(&line, ctl)
            && keys_line_until_ms(&line) > edit.now_ms)
        {
            edit_put_until(&edit, &line, edit.now_ms);
            found++;

        } else {
            edit_put_line(&edit, line.line);
        }
    }

    status = edit_end(&edit, found > 0);

    if (found == 0) {
        return keys_none(ctl);
    }

    if (status == CTL_DONE && ctl->is_json) {
        printf("{\"revoked\":%d}\n", found);

    } else if (status == CTL_DONE) {
        fprintf(stderr, "llmgwctl: %d %s of \"%s\" revoked; streams that run go"
                " on\n", found, found == 1 ? "key" : "keys", ctl->words[0]);
    }

    return status;
}


/* Returns how many keys could be meant; if it is one, *rotated is its line. */
static int
keys_find_one(const keys_edit_t *edit, const ctl_t *ctl,
    keys_file_line_t *rotated)
{
    int                n;
    const char        *at;
    keys_file_line_t   line;
    llmgw_key_text_t   word;

    for (n = 0, at = NULL; keys_file_next(&edit->file, &at, &line); ) {
        if (keys_is_meant(&line, ctl) && !keys_text_is(line.hash, "-")
            && keys_line_until_ms(&line) > edit->now_ms
            && (ctl->nwords > 1 || !keys_line_find(&line, "until=", &word)))
        {
            *rotated = line;
            n++;
        }
    }

    return n;
}


/*
 * The new line has the same facts about the account, so that the old one may be
 * removed.
 */
static void
keys_put_rotated(keys_edit_t *edit, const keys_file_line_t *old,
    const char *hash)
{
    uint32_t          at;
    llmgw_key_text_t  word;

    put_text(edit->out, old->name);
    fprintf(edit->out, " %s", hash);

    for (at = 0; keys_line_word(old, &at, &word); ) {
        if (word.len < 6 || memcmp(word.text, "until=", 6) != 0) {
            fputc(' ', edit->out);
            put_text(edit->out, word);
        }
    }

    fputc('\n', edit->out);
}


int
ctl_keys_rotate(const ctl_t *ctl)
{
    int                n, status;
    uint64_t           until_ms;
    new_key_t          new;
    const char        *at;
    keys_edit_t        edit;
    keys_file_line_t   line, old;

    if (edit_begin(&edit, ctl, 0) != 0) {
        return CTL_FAILED;
    }

    n = keys_find_one(&edit, ctl, &old);

    if (n != 1) {
        (void) edit_end(&edit, 0);

        return n == 0 ? keys_none(ctl)
               : ctl_usage("it has more than one key, so an ID is needed "
                           "behind", ctl->words[0]);
    }

    until_ms = edit.now_ms + ctl->options.grace_ms;

    if (keys_line_until_ms(&old) < until_ms) {
        until_ms = keys_line_until_ms(&old);
    }

    new_key_make(&new);

    for (at = NULL; keys_file_next(&edit.file, &at, &line); ) {

        if (line.line.text != old.line.text) {
            edit_put_line(&edit, line.line);
            continue;
        }

        edit_put_until(&edit, &line, until_ms);
        keys_put_rotated(&edit, &line, new.hash);
    }

    status = edit_end(&edit, 1);

    if (status == CTL_DONE) {
        new_key_show(ctl, ctl->words[0], &new);
    }

    sodium_memzero(&new, sizeof(new));

    return status;
}
