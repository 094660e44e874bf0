
/* llmgw: runs the command that the first word names. */

#include <stdio.h>
#include <string.h>

#include "common/options.h"
#include "up/fleet/dns.h"
#include "up/up.h"


typedef struct {
    const char   *name;
    int         (*run)(int argc, char **argv);
} main_command_t;


static const main_command_t  main_commands[] = {
    { "up", up_main },
    { "add", ask_main },
    { "remove", ask_main },
    { "status", ask_main },
    { DNS_COMMAND, dns_main },      /* of `up` itself */
    { NULL, NULL }
};

static const option_t  main_table[] = {
    { .name = NULL }
};

static const options_spec_t  main_spec = {
    "llmgw",
    "COMMAND [options]",
    "A gateway before LLM engines, with one command.",
    "commands (see COMMAND --help):\n"
    "  up URL...                    start a gateway, until Ctrl-C\n"
    "  add URL                      one engine more, behind one that runs\n"
    "  remove URL                   one less, when its streams have ended\n"
    "  status                       its engines, and how they are",
    main_table
};


int
main(int argc, char **argv)
{
    int     rest;
    char    none;
    size_t  i;

    switch (options_parse(&main_spec, &none, argc, argv, 1, &rest)) {

    case OPTIONS_EXIT:
        return 0;

    case OPTIONS_EUSAGE:
        return 2;

    default:
        break;
    }

    if (rest == argc) {
        fprintf(stderr, "llmgw: a command is missing, see --help\n");
        return 2;
    }

    for (i = 0; main_commands[i].name != NULL; i++) {
        if (strcmp(argv[rest], main_commands[i].name) == 0) {
            return main_commands[i].run(argc - rest, argv + rest);
        }
    }

    fprintf(stderr, "llmgw: unknown command \"%s\", see --help\n",
            argv[rest]);

    return 2;
}
