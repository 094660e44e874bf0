
/* llmgwctl: the command line. */

#include <fnmatch.h>
#include <getopt.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/verbs.h"


#define CTL_RUN_DIR  "/run/llmgw"


static void
ctl_help(void)
{
    printf("usage: llmgwctl [-s PATH] [--json] COMMAND\n"
           "Queries and controls an llmgw-agent and the services of a standby, "
           "and reads and\nwrites the files of keys and usage.\n\n");

    ctl_verbs_help(stdout);

    printf("\n"
           "  -s, --socket PATH   the agent's control socket; else "
           "$LLMGW_CONTROL,\n"
           "                      else the only one in " CTL_RUN_DIR "\n"
           "  --json              print JSON, for programs\n"
           "  --help, --version\n\n"
           "exit status: 0 done, 1 failed, 2 usage, 3 refused, 4 not found,\n"
           "             5 timed out, 6 agent not reachable, 7 warnings\n");
}


/* 1: by its name, this is an agent's socket, not another service's. */
static int
ctl_is_agents(const char *path)
{
    return fnmatch(CTL_RUN_DIR "/weights*.sock", path, 0) != 0
           && fnmatch(CTL_RUN_DIR "/lock*.sock", path, 0) != 0;
}


/*
 * $LLMGW_CONTROL, or the socket of the only agent; to be freed.  NULL: there is
 * none, or more than one.
 */
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


static int
ctl_run(const ctl_verb_t *verb, ctl_t *ctl)
{
    int    status;
    char  *path;

    if (ctl->socket == NULL) {
        ctl->socket = ctl->options.service;
    }

    if (ctl->socket != NULL || verb->needs == CTL_NEEDS_FILES) {
        return verb->run(ctl);
    }

    path = ctl_default_socket();

    if (path == NULL && verb->needs == CTL_NEEDS_SOCKET) {
        fprintf(stderr, "llmgwctl: not exactly one socket in " CTL_RUN_DIR
                ", use -s PATH\n");
        return CTL_UNREACHABLE;
    }

    ctl->socket = path;
    status = verb->run(ctl);
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


/* Parses the command line.  -1: continue; otherwise the exit status. */
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
    int                status;
    ctl_t              ctl = { 0 };
    const ctl_verb_t  *verb;

    status = ctl_parse(&ctl, argc, argv);

    if (status != -1) {
        return status;
    }

    if (optind == argc) {
        return ctl_usage("a command is required", NULL);
    }

    ctl.errors = stderr;
    ctl.is_terminal = isatty(STDOUT_FILENO);
    ctl.has_colours = ctl.is_terminal && getenv("NO_COLOR") == NULL;
    status = ctl_verb_parse(&verb, &ctl, argc - optind, argv + optind);

    if (status == -1) {
        status = ctl_run(verb, &ctl);
        ctl_verb_done(verb, &ctl);
    }

    if (fflush(stdout) != 0) {
        fprintf(stderr, "llmgwctl: the answer could not be written\n");
        return CTL_FAILED;
    }

    return status;
}
