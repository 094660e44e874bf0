
/* A program whose first word names a command. */

#include <stdio.h>
#include <string.h>

#include "common/options.h"


int
options_run_command(const options_spec_t *spec,
    const options_command_t *commands, int argc, char **argv)
{
    int   rest;
    char  none;

    switch (options_parse(spec, &none, argc, argv, 1, &rest)) {

    case OPTIONS_EXIT:
        return 0;

    case OPTIONS_EUSAGE:
        return 2;

    default:
        break;
    }

    if (rest == argc) {
        fprintf(stderr, "%s: a command is missing, see --help\n",
                spec->program);
        return 2;
    }

    for ( /* void */ ; commands->name != NULL; commands++) {
        if (strcmp(argv[rest], commands->name) == 0) {
            return commands->run(argc - rest, argv + rest);
        }
    }

    fprintf(stderr, "%s: unknown command \"%s\", see --help\n", spec->program,
            argv[rest]);

    return 2;
}
