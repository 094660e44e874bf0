
/*
 * llmgw-client: runs the command that the first argument names.
 */

#include <stdio.h>
#include <string.h>

#include "client/bench.h"
#include "common/options.h"
#include "client/infer.h"
#include "client/openai.h"


typedef struct {
    const char   *name;
    int         (*run)(int argc, char **argv);
} main_command_t;


static const main_command_t  main_commands[] = {
    { "infer", infer_main },
    { "openai", openai_main },
    { "bench", bench_main },
};

static const option_t  main_table[] = {
    { .name = NULL }
};

static const options_spec_t  main_spec = {
    "llmgw-client",
    "COMMAND [options]",
    "A command-line client of the gateway.",
    "commands (see COMMAND --help):\n"
    "  infer                        stream the tokens of one prompt\n"
    "  openai                       ask over OpenAI's API, over HTTP\n"
    "  bench                        run many streams and measure them",
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
        fprintf(stderr, "llmgw-client: a command is missing, see --help\n");
        return 2;
    }

    for (i = 0; i < sizeof(main_commands) / sizeof(main_commands[0]); i++) {
        if (strcmp(argv[rest], main_commands[i].name) == 0) {
            return main_commands[i].run(argc - rest, argv + rest);
        }
    }

    fprintf(stderr, "llmgw-client: unknown command \"%s\", see --help\n",
            argv[rest]);

    return 2;
}
