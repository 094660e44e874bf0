
#include <stdio.h>
#include <string.h>

#include "ctl/verbs.h"


#define CTL_HELP_WIDTH     25
#define CTL_COMMAND_BYTES  64


static const ctl_verb_t  ctl_verbs[] = {
    { "members", NULL, "[options]", 0, 0, "list the members and their state",
      .run = ctl_members, .spec = &ctl_members_spec },
    { "status", NULL, "[options]", 0, 0,
      "show the agent's state and its counters",
      .run = ctl_status, .spec = &ctl_status_spec },
    { "metrics", NULL, "", 0, 0, "print the agent's counters for Prometheus",
      .run = ctl_metrics },
    { "events", NULL, "", 0, 0, "print changes as they happen, as JSON lines",
      .run = ctl_events },
    { "drain", NULL, "ID [options]", 1, 1,
      "send it nothing new, wait for its last stream",
      .run = ctl_drain, .spec = &ctl_drain_spec },
    { "undrain", NULL, "ID", 1, 1, "end the drain", .run = ctl_undrain },
    { "rolling-update", NULL, "[options]", 0, 0,
      "give every replica another version",
      .run = ctl_update, .spec = &ctl_update_spec },
    { "group", "list", "", 0, 0, "list the standby groups, with their states",
      .run = ctl_group_list, .spec = &ctl_group_spec, .is_default = 1 },
    { "group", "switch", "GROUP", 1, 1,
      "have a standby of that group take over",
      .run = ctl_group_switch, .spec = &ctl_group_spec },
    { "shards", NULL, "", 0, 0,
      "draw which layers of which model shards cover", .run = ctl_shards },
    { "leave", NULL, "", 0, 0, "leave the cluster, and end the agent",
      .run = ctl_leave },
    { "keyring", "list", "", 0, 0, "list the ids of the keys, and the primary",
      .run = ctl_keyring_list },
    { "keyring", "add", "KEY", 1, 1,
      "add a key; \"-\": from standard input", .run = ctl_keyring_add },
    { "keyring", "use", "ID", 1, 1,
      "make this key the primary: it encrypts", .run = ctl_keyring_use },
    { "keyring", "remove", "ID", 1, 1, "remove a key",
      .run = ctl_keyring_remove },
    { "certs", "init", "DIR", 1, 1, "make a CA, for TLS within a fleet",
      .run = ctl_certs_init, .spec = &ctl_certs_spec,
      .needs = CTL_NEEDS_FILES },
    { "certs", "issue", "DIR NAME", 2, 2,
      "make a key and a certificate that it signs",
      .run = ctl_certs_issue, .spec = &ctl_certs_spec,
      .needs = CTL_NEEDS_FILES },
    { "weights", "status", "[options]", 0, 0,
      "show what a weights service keeps, and for which engines",
      .run = ctl_weights, .spec = &ctl_weights_spec },
    { "lock", "status", "[options]", 0, 0,
      "show which engine holds each group of a host",
      .run = ctl_lock, .spec = &ctl_lock_spec },
    { "keys", "add", "NAME", 1, CTL_MAX_WORDS,
      "make a key, and show it this once",
      .run = ctl_keys_add, .spec = &ctl_keys_spec,
      .needs = CTL_NEEDS_FILES },
    { "keys", "list", "[options]", 0, 0, "list the keys by their ids",
      .run = ctl_keys_list, .spec = &ctl_keys_spec,
      .needs = CTL_NEEDS_FILES },
    { "keys", "revoke", "NAME", 1, 2, "end the validity of an account's keys",
      .run = ctl_keys_revoke, .spec = &ctl_keys_spec,
      .needs = CTL_NEEDS_FILES },
    { "keys", "rotate", "NAME", 1, 2,
      "make a key in place of another, which ends later",
      .run = ctl_keys_rotate, .spec = &ctl_keys_spec,
      .needs = CTL_NEEDS_FILES },
    { "keys", "check", "[options]", 0, 0, "show each line that is wrong",
      .run = ctl_keys_check, .spec = &ctl_keys_spec,
      .needs = CTL_NEEDS_FILES },
    { "usage", NULL, "FILE [options]", 1, CTL_MAX_WORDS,
      "add up logs of usage records",
      .run = ctl_usage_logs, .spec = &ctl_usage_spec,
      .needs = CTL_NEEDS_FILES },
    { "doctor", NULL, "[options]", 0, 0,
      "say what is wrong here, and what to do",
      .run = ctl_doctor, .spec = &ctl_doctor_spec,
      .needs = CTL_TAKES_SOCKET },
    { "inject-suspect", NULL, "ID", 1, 1, NULL, .run = ctl_inject_suspect }
};

#define CTL_NVERBS  (sizeof(ctl_verbs) / sizeof(ctl_verbs[0]))


/* Prints "keys add NAME", "group [list]". */
static void
ctl_verb_print(const ctl_verb_t *verb, FILE *out)
{
    char  text[CTL_COMMAND_BYTES];

    snprintf(text, sizeof(text), "%s%s%s%s%s%s", verb->name,
             verb->verb ? verb->is_default ? " [" : " " : "",
             verb->verb ? verb->verb : "", verb->is_default ? "]" : "",
             verb->words[0] ? " " : "", verb->words);
    fprintf(out, "  %-*s %s\n", CTL_HELP_WIDTH, text, verb->help);
}


void
ctl_verbs_help(FILE *out)
{
    size_t  i;

    for (i = 0; i < CTL_NVERBS; i++) {
        if (ctl_verbs[i].help != NULL) {
            ctl_verb_print(&ctl_verbs[i], out);
        }
    }
}


/* The first row with that name. */
static const ctl_verb_t *
ctl_verb_find(const char *name)
{
    size_t  i;

    for (i = 0; i < CTL_NVERBS; i++) {
        if (strcmp(ctl_verbs[i].name, name) == 0) {
            return &ctl_verbs[i];
        }
    }

    return NULL;
}


/*
 * Takes words up to the next option.  Returns the index after them; -1: too
 * many.
 */
static int
ctl_take_words(ctl_t *ctl, int argc, char **argv, int i)
{
    for ( /* void */ ; i < argc; i++) {

        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            break;
        }

        if (ctl->nwords == CTL_MAX_WORDS) {
            ctl_usage("unexpected word", argv[i]);
            return -1;
        }

        ctl->words[ctl->nwords++] = argv[i];
    }

    return i;
}


/* Words may come before a command's options or after them.  -1: continue;
   otherwise the exit status. */
static int
ctl_take_line(const options_spec_t *spec, ctl_t *ctl, int argc, char **argv)
{
    int  i, rest;

    i = ctl_take_words(ctl, argc, argv, 1);

    if (i != -1 && spec != NULL) {

        switch (options_parse(spec, &ctl->options, argc - i + 1,
                              argv + i - 1, 1, &rest))
        {
        case OPTIONS_EXIT:
            return CTL_DONE;
        case OPTIONS_EUSAGE:
            return CTL_USAGE;
        default:
            i = ctl_take_words(ctl, argc, argv, i - 1 + rest);
            break;
        }
    }

    if (i == -1) {
        return CTL_USAGE;
    }

    return i < argc ? ctl_usage("unexpected option", argv[i]) : -1;
}


/*
 * Finds the row by the verb, which is taken off the words.  NULL: wrong usage,
 * which was reported.
 */
static const ctl_verb_t *
ctl_take_verb(const ctl_verb_t *verb, ctl_t *ctl)
{
    char         command[CTL_COMMAND_BYTES];
    const char  *name;

    if (verb->verb == NULL || (ctl->nwords == 0 && verb->is_default)) {
        return verb;
    }

    name = verb->name;

    if (ctl->nwords == 0) {
        ctl_usage("a word is missing after", name);
        return NULL;
    }

    for ( /* void */ ; verb < ctl_verbs + CTL_NVERBS; verb++) {
        if (strcmp(verb->name, name) == 0
            && strcmp(verb->verb, ctl->words[0]) == 0)
        {
            ctl->nwords--;
            memmove(ctl->words, ctl->words + 1,
                    (size_t) ctl->nwords * sizeof(ctl->words[0]));
            return verb;
        }
    }

    snprintf(command, sizeof(command), "%s %s", name, ctl->words[0]);
    ctl_usage("there is no command", command);

    return NULL;
}


static int
ctl_check_words(const ctl_verb_t *verb, const ctl_t *ctl)
{
    char  command[CTL_COMMAND_BYTES];

    if (ctl->nwords > verb->max_words) {
        return ctl_usage("unexpected word", ctl->words[verb->max_words]);
    }

    if (ctl->nwords < verb->min_words) {
        snprintf(command, sizeof(command), "%s%s%s %s", verb->name,
                 verb->verb ? " " : "", verb->verb ? verb->verb : "",
                 verb->words);
        return ctl_usage("words are missing of", command);
    }

    return -1;
}


int
ctl_verb_parse(const ctl_verb_t **verb, ctl_t *ctl, int argc, char **argv)
{
    int                status;
    const ctl_verb_t  *first;

    first = ctl_verb_find(argv[0]);

    if (first == NULL) {
        return ctl_usage("there is no command", argv[0]);
    }

    status = ctl_take_line(first->spec, ctl, argc, argv);

    if (status == -1) {
        *verb = ctl_take_verb(first, ctl);
        status = *verb ? ctl_check_words(*verb, ctl) : CTL_USAGE;
    }

    if (status != -1) {
        ctl_verb_done(first, ctl);
    }

    return status;
}


void
ctl_verb_done(const ctl_verb_t *verb, ctl_t *ctl)
{
    if (verb->spec != NULL) {
        options_done(verb->spec, &ctl->options);
    }
}
