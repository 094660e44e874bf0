
/*
 * llmgwctl keyring: ids are shown, keys never.  A key on the command line is
 * visible to everybody who can list processes, so "-" reads it from standard
 * input.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/link.h"


/* A key and a newline have 65 characters. */
#define CTL_KEY_BYTES  128

typedef struct {
    const char  *verb;
    const char  *cmd;
    const char  *field;         /* of its word; NULL: it has none */
} ctl_keyring_verb_t;


static const ctl_keyring_verb_t  ctl_keyring_verbs[] = {
    { "list",   "keyring_list",   NULL },
    { "add",    "keyring_add",    "key" },
    { "use",    "keyring_use",    "id" },
    { "remove", "keyring_remove", "id" },
    { NULL, NULL, NULL }
};


static void
ctl_print_keys(const json_t *keys)
{
    size_t   i;
    json_t  *key;

    json_array_foreach(keys, i, key) {
        printf("%s  %s\n", json_string_value(json_object_get(key, "id")),
               json_is_true(json_object_get(key, "primary")) ? "seals, opens"
                                                             : "opens");
    }
}


static int
ctl_keyring_run(const ctl_t *ctl, const ctl_keyring_verb_t *verb,
    const char *word)
{
    int      status;
    json_t  *request, *answer;

    request = json_pack("{s:s}", "cmd", verb->cmd);

    if (verb->field != NULL) {
        json_object_set_new(request, verb->field, json_string(word));
    }

    status = ctl_link_ask(ctl, request, &answer);

    if (status != CTL_DONE) {
        return status;
    }

    if (ctl->is_json) {
        ctl_print_json(answer);

    } else {
        ctl_print_keys(json_object_get(answer, "keys"));
    }

    json_decref(answer);

    return CTL_DONE;
}


static int
ctl_keyring_run_from_input(const ctl_t *ctl, const ctl_keyring_verb_t *verb)
{
    char  key[CTL_KEY_BYTES];

    if (fgets(key, sizeof(key), stdin) == NULL) {
        fprintf(stderr, "llmgwctl: no key on standard input\n");
        return CTL_FAILED;
    }

    key[strcspn(key, " \t\r\n")] = '\0';

    return ctl_keyring_run(ctl, verb, key);
}


int
ctl_keyring(const ctl_t *ctl)
{
    const ctl_keyring_verb_t  *verb;

    for (verb = ctl_keyring_verbs; verb->verb != NULL; verb++) {
        if (strcmp(verb->verb, ctl->words[0]) == 0) {
            break;
        }
    }

    if (verb->verb == NULL) {
        return ctl_usage("there is no command", ctl->words[0]);
    }

    if (ctl->nwords == 1 && verb->field != NULL) {
        return ctl_usage("a word is missing after", verb->verb);
    }

    if (ctl->nwords == 2 && verb->field == NULL) {
        return ctl_usage("unexpected word", ctl->words[1]);
    }

    if (verb->field != NULL && strcmp(verb->field, "key") == 0
        && strcmp(ctl->words[1], "-") == 0)
    {
        return ctl_keyring_run_from_input(ctl, verb);
    }

    return ctl_keyring_run(ctl, verb, ctl->nwords == 2 ? ctl->words[1] : NULL);
}
