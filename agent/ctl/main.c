
/* llmgwctl: the command line. */

#include <fnmatch.h>
#include <getopt.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/main.h"


#define CTL_RUN_DIR     "/run/llmgw"
#define CTL_HELP_WIDTH  25

typedef struct {
    const char            *name;
    const char            *words;       /* that follow it */
    int                    min_words;
    int                    max_words;   /* CTL_MAX_WORDS at most */
    const char            *help;        /* NULL: hidden */
    int                  (*run)(const ctl_t *ctl);
    const options_spec_t  *spec;        /* NULL: it has no options */
} ctl_command_t;


static const ctl_command_t  ctl_commands[] = {
    { "members", " [options]", 0, 0, "list the members and their state",
      ctl_members, &ctl_members_spec },
    { "status", " [options]", 0, 0, "show the agent's state and its counters",
      ctl_status, &ctl_status_spec },
    { "metrics", "", 0, 0, "print the agent's counters for Prometheus",
      ctl_metrics, NULL },
    { "events", "", 0, 0, "print changes as they happen, as JSON lines",
      ctl_events, NULL },
    { "drain", " ID [options]", 1, 1,
      "send it nothing new, wait for its last stream", ctl_drain,
      &ctl_drain_spec },
    { "undrain", " ID", 1, 1, "end the drain", ctl_undrain, NULL },
    { "rolling-update", " [options]", 0, 0,
      "give every replica another version",
      ctl_update, &ctl_update_spec },
    { "group", " [list]", 0, 2, "list the standby groups, and who is active",
      ctl_group, &ctl_group_spec },
    { "group", " switch GROUP", 0, 2,
      "have a standby of that group take over", ctl_group, &ctl_group_spec },
    { "shards", "", 0, 0,
      "draw which layers of which model shards cover", ctl_shards, NULL },
    { "leave", "", 0, 0, "leave the cluster, and end the agent",
      ctl_leave, NULL },
    { "keyring", " list", 1, 2, "list the ids of the keys, and the primary",
      ctl_keyring, NULL },
    { "keyring", " add KEY", 1, 2, "add a key; \"-\": from standard input",
      ctl_keyring, NULL },
    { "keyring", " use ID", 1, 2, "make this key the primary: it encrypts",
      ctl_keyring, NULL },
    { "keyring", " remove ID", 1, 2, "remove a key", ctl_keyring, NULL },
    { "certs", " init DIR", 2, 3, "make a CA, for TLS within a fleet",
      ctl_certs, &ctl_certs_spec },
    { "certs", " issue DIR NAME", 2, 3,
      "make a key and a certificate that it signs", ctl_certs,
      &ctl_certs_spec },
    { "weights", " status [options]", 1, 1,
      "show what a weights service keeps, and for which engines",
      ctl_weights, &ctl_weights_spec },
    { "lock", " status [options]", 1, 1,
      "show which engine holds each group of a host", ctl_lock,
      &ctl_lock_spec },
    { "keys", " add NAME", 1, CTL_MAX_WORDS,
      "make a key, and show it this once", ctl_keys, &ctl_keys_spec },
    { "keys", " list [options]", 1, CTL_MAX_WORDS,
      "list the keys by their ids", ctl_keys, &ctl_keys_spec },
    { "keys", " revoke NAME", 1, CTL_MAX_WORDS,
      "end the validity of an account's keys", ctl_keys, &ctl_keys_spec },
    { "keys", " rotate NAME", 1, CTL_MAX_WORDS,
      "make a key in place of another, which ends later", ctl_keys,
      &ctl_keys_spec },
    { "keys", " check [options]", 1, CTL_MAX_WORDS,
      "show each line that is wrong", ctl_keys, &ctl_keys_spec },
    { "usage", " FILE [options]", 1, CTL_MAX_WORDS,
      "add up logs of usage records", ctl_usage_logs, &ctl_usage_spec },
    { "doctor", " [options]", 0, 0,
      "say what is wrong here, and what to do", ctl_doctor,
      &ctl_doctor_spec },
    { "inject-suspect", " ID", 1, 1, NULL, ctl_inject_suspect, NULL }
};

#define CTL_NCOMMANDS  (sizeof(ctl_commands) / sizeof(ctl_commands[0]))


static void
ctl_help(void)
{
    size_t  i;

    printf("usage: llmgwctl [-s PATH] [--json] COMMAND\n"
           "Queries and controls an llmgw-agent and the services of a standby, "
           "and reads and\nwrites the files of keys and usage.\n\n");

    for (i = 0; i < CTL_NCOMMANDS; i++) {
        if (ctl_commands[i].help != NULL) {
            printf("  %s%-*s %s\n", ctl_commands[i].name,
                   CTL_HELP_WIDTH - (int) strlen(ctl_commands[i].name),
                   ctl_commands[i].words, ctl_commands[i].help);
        }
    }

    printf("\n"
           "  -s, --socket PATH   the agent's control socket; else "
           "$LLMGW_CONTROL,\n"
           "                      else the only one in " CTL_RUN_DIR "\n"
           "  --json              print JSON, for programs\n"
           "  --help, --version\n\n"
           "exit status: 0 done, 1 failed, 2 usage, 3 refused, 4 not found,\n"
           "             5 timed out, 6 agent not reachable, 7 warnings\n");
}


static const ctl_command_t *
ctl_find_command(const char *name)
{
    size_t  i;

    for (i = 0; i < CTL_NCOMMANDS; i++) {
        if (strcmp(ctl_commands[i].name, name) == 0) {
            return &ctl_commands[i];
        }
    }

    return NULL;
}


/* Or a service's, by its name. */
static int
ctl_is_agents(const char *path)
{
    return fnmatch(CTL_RUN_DIR "/weights*.sock", path, 0) != 0
           && fnmatch(CTL_RUN_DIR "/lock*.sock", path, 0) != 0;
}


/* The path is allocated; NULL: none, or more than one. */
static char *
ctl_default_socket(void)
{
    char        *path;
    glob_t       found;
    size_t       i, nagents;
    const char  *only;

    path = getenv("LLMGW_CONTROL");

    if (path != NULL && path[0] != '\0') {
        return strdup(path);
    }

    path = NULL;

    if (glob(CTL_RUN_DIR "/*.sock", 0, NULL, &found) == 0) {

        for (i = 0, nagents = 0; i < found.gl_pathc; i++) {
            if (ctl_is_agents(found.gl_pathv[i])) {
                only = found.gl_pathv[i];
                nagents++;
            }
        }

        if (nagents == 1) {
            path = strdup(only);
        }

        globfree(&found);
    }

    return path;
}


/* 1: the command works on files alone, and connects to no service. */
static int
ctl_is_local(const ctl_command_t *command)
{
    return command->run == ctl_certs || command->run == ctl_keys
           || command->run == ctl_usage_logs;
}


static int
ctl_run(const ctl_command_t *command, ctl_t *ctl)
{
    int    status;
    char  *path;

    if (ctl->socket == NULL) {
        ctl->socket = ctl->options.service;
    }

    if (ctl->socket != NULL || ctl_is_local(command)) {
        return command->run(ctl);
    }

    path = ctl_default_socket();

    if (path == NULL && command->run != ctl_doctor) {
        fprintf(stderr, "llmgwctl: not exactly one socket in " CTL_RUN_DIR
                ", use -s PATH\n");
        return CTL_UNREACHABLE;
    }

    ctl->socket = path;
    status = command->run(ctl);
    free(path);

    return status;
}


int
ctl_usage(const char *what, const char *value)
{
    fprintf(stderr, "llmgwctl: %s%s%s%s, see --help\n", what,
            value ? " \"" : "", value ? value : "", value ? "\"" : "");

    return CTL_USAGE;
}


/* -1: go on; else the exit status. */
static int
ctl_parse(ctl_t *ctl, int argc, char **argv)
{
    int                         c;
    static const struct option  options[] = {
        { "socket",  required_argument, NULL, 's' },
        { "json",    no_argument,       NULL, 'j' },
        { "help",    no_argument,       NULL, 'h' },
        { "version", no_argument,       NULL, 'v' },
        { NULL, 0, NULL, 0 }
    };

    opterr = 0;

    while ((c = getopt_long(argc, argv, "+s:h", options, NULL)) != -1) {
        switch (c) {
        case 's':
            ctl->socket = optarg;
            break;
        case 'j':
            ctl->is_json = 1;
            break;
        case 'h':
            ctl_help();
            return CTL_DONE;
        case 'v':
            printf("llmgwctl %s\n", LLMGW_VERSION);
            return CTL_DONE;
        default:
            return ctl_usage("wrong option", argv[optind - 1]);
        }
    }

    return -1;
}


/* Words up to the next option; the index behind them, -1: too many. */
static int
ctl_take_words(ctl_t *ctl, const ctl_command_t *command, int argc,
    char **argv, int i)
{
    for ( /* void */ ; i < argc; i++) {

        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            break;
        }

        if (ctl->nwords == command->max_words) {
            ctl_usage("unexpected word", argv[i]);
            return -1;
        }

        ctl->words[ctl->nwords++] = argv[i];
    }

    return i;
}


/*
 * Words come before a command's options or behind them; argv[0] is the
 * command.  -1: go on; else the exit status.
 */
static int
ctl_parse_command(ctl_t *ctl, const ctl_command_t *command, int argc,
    char **argv)
{
    int  i, rest;

    i = ctl_take_words(ctl, command, argc, argv, 1);

    if (i == -1) {
        return CTL_USAGE;
    }

    if (command->spec != NULL) {

        switch (options_parse(command->spec, &ctl->options, argc - i + 1,
                              argv + i - 1, 1, &rest))
        {
        case OPTIONS_EXIT:
            return CTL_DONE;
        case OPTIONS_EUSAGE:
            return CTL_USAGE;
        default:
            i = ctl_take_words(ctl, command, argc, argv, i - 1 + rest);
            break;
        }
    }

    if (i == -1) {
        return CTL_USAGE;
    }

    if (i < argc) {
        return ctl_usage("unexpected option", argv[i]);
    }

    return ctl->nwords < command->min_words
           ? ctl_usage("a word is missing after", command->name) : -1;
}


/* The command with its options, which are released. */
static int
ctl_run_command(ctl_t *ctl, const ctl_command_t *command, int argc,
    char **argv)
{
    int  status;

    status = ctl_parse_command(ctl, command, argc, argv);

    if (status == -1) {
        status = ctl_run(command, ctl);
    }

    if (command->spec != NULL) {
        options_done(command->spec, &ctl->options);
    }

    return status;
}


int
main(int argc, char **argv)
{
    int                   status;
    ctl_t                 ctl = { 0 };
    const ctl_command_t  *command;

    status = ctl_parse(&ctl, argc, argv);

    if (status != -1) {
        return status;
    }

    if (optind == argc) {
        return ctl_usage("a command is required", NULL);
    }

    command = ctl_find_command(argv[optind]);

    if (command == NULL) {
        return ctl_usage("there is no command", argv[optind]);
    }

    ctl.errors = stderr;
    ctl.is_terminal = isatty(STDOUT_FILENO);
    ctl.has_colours = ctl.is_terminal && getenv("NO_COLOR") == NULL;
    status = ctl_run_command(&ctl, command, argc - optind, argv + optind);

    if (fflush(stdout) != 0) {
        fprintf(stderr, "llmgwctl: the answer could not be written\n");
        return CTL_FAILED;
    }

    return status;
}
