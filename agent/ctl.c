
/* llmgwctl: the command line. */

#include <getopt.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl.h"


#define CTL_RUN_DIR     "/run/llmgw"
#define CTL_HELP_WIDTH  18

typedef struct {
    const char  *name;
    const char  *words;         /* behind it */
    int          min_words;
    int          max_words;
    const char  *help;          /* NULL: hidden */
    int        (*run)(const ctl_t *ctl);
} ctl_command_t;


static const ctl_command_t  ctl_commands[] = {
    { "members", "", 0, 0, "who is in the cluster, and how it is",
      ctl_members },
    { "status", "", 0, 0, "the agent itself, its counters", ctl_status },
    { "events", "", 0, 0, "what changes, as it changes, a JSON object a line",
      ctl_events },
    { "leave", "", 0, 0, "tell all that this member leaves, and end the agent",
      ctl_leave },
    { "keyring", " list", 1, 2, "ids of the keys, and which of them seals",
      ctl_keyring },
    { "keyring", " add KEY", 1, 2, "take a key in; \"-\": from standard input",
      ctl_keyring },
    { "keyring", " use ID", 1, 2, "seal with this key from now on",
      ctl_keyring },
    { "keyring", " remove ID", 1, 2, "take a key out", ctl_keyring },
    { "inject-suspect", " ID", 1, 1, NULL, ctl_inject_suspect }
};

#define CTL_NCOMMANDS  (sizeof(ctl_commands) / sizeof(ctl_commands[0]))


static void
ctl_help(void)
{
    size_t  i;

    printf("usage: llmgwctl [-s PATH] [--json] COMMAND\n"
           "Asks an llmgw-agent.\n\n");

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
           "  --json              one JSON object, for programs\n"
           "  --help, --version\n\n"
           "exit status: 0 done, 1 failed, 2 usage, 6 agent not reached\n");
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


/* The path is allocated; NULL: none, or more than one. */
static char *
ctl_default_socket(void)
{
    char    *path;
    glob_t   found;

    path = getenv("LLMGW_CONTROL");

    if (path != NULL && path[0] != '\0') {
        return strdup(path);
    }

    path = NULL;

    if (glob(CTL_RUN_DIR "/*.sock", 0, NULL, &found) == 0) {
        if (found.gl_pathc == 1) {
            path = strdup(found.gl_pathv[0]);
        }

        globfree(&found);
    }

    return path;
}


static int
ctl_run(const ctl_command_t *command, ctl_t *ctl)
{
    int    status;
    char  *path;

    if (ctl->socket != NULL) {
        return command->run(ctl);
    }

    path = ctl_default_socket();

    if (path == NULL) {
        fprintf(stderr, "llmgwctl: not one agent's socket in " CTL_RUN_DIR
                ", name it by -s PATH\n");
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

    ctl.words = argv + optind + 1;
    ctl.nwords = argc - optind - 1;

    if (ctl.nwords < command->min_words) {
        return ctl_usage("a word is missing behind", command->name);
    }

    if (ctl.nwords > command->max_words) {
        return ctl_usage("unexpected word", ctl.words[command->max_words]);
    }

    ctl.has_colours = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
    status = ctl_run(command, &ctl);

    if (fflush(stdout) != 0) {
        fprintf(stderr, "llmgwctl: the answer could not be written\n");
        return CTL_FAILED;
    }

    return status;
}


void
ctl_print_json(const json_t *json)
{
    json_dumpf(json, stdout, JSON_COMPACT);
    putchar('\n');
}
