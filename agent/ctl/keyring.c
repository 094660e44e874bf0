
/*
 * llmgwctl keyring: ids are shown, keys never.  A key on the command line is
 * visible to everybody who can list processes, so "-" reads it from standard
 * input.
 */

#include <stdio.h>
#include <string.h>

#include "ctl/field.h"
#include "ctl/main.h"


/* A key and a newline have 65 characters. */
#define CTL_KEY_BYTES  128


static void
ctl_keyring_show(const ctl_t *ctl, json_t *answer, FILE *out)
{
    size_t   i;
    json_t  *key;

    json_array_foreach(json_object_get(answer, "keys"), i, key) {
        fprintf(out, "%s  %s\n", ctl_text(key, "id"),
                json_is_true(json_object_get(key, "primary"))
                ? "encrypts, decrypts" : "decrypts");
    }
}


int
ctl_keyring_list(const ctl_t *ctl)
{
    return ctl_ask(ctl, json_pack("{s:s}", "cmd", "keyring_list"),
                   ctl_keyring_show);
}


int
ctl_keyring_use(const ctl_t *ctl)
{
    return ctl_ask(ctl, json_pack("{s:s, s:s?}", "cmd", "keyring_use", "id",
                                  ctl->words[0]),
                   ctl_keyring_show);
}


int
ctl_keyring_remove(const ctl_t *ctl)
{
    return ctl_ask(ctl, json_pack("{s:s, s:s?}", "cmd", "keyring_remove",
                                  "id", ctl->words[0]),
                   ctl_keyring_show);
}


int
ctl_keyring_add(const ctl_t *ctl)
{
    char         line[CTL_KEY_BYTES];
    const char  *key;

    key = ctl->words[0];

    if (strcmp(key, "-") == 0) {

        if (fgets(line, sizeof(line), stdin) == NULL) {
            fprintf(stderr, "llmgwctl: no key on standard input\n");
            return CTL_FAILED;
        }

        line[strcspn(line, " \t\r\n")] = '\0';
        key = line;
    }

    return ctl_ask(ctl, json_pack("{s:s, s:s?}", "cmd", "keyring_add", "key",
                                  key),
                   ctl_keyring_show);
}
