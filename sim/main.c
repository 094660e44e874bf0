
/*
 * llmgw-sim: runs the command that the first argument names.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/options.h"
#include "sim/commands.h"


static const options_command_t  main_commands[] = {
    { "run", run_main },
    { "replay", replay_main },
    { "compare", compare_main },
    { "search", search_main },
    { "explain", explain_main },
    { "observe", observe_main },
    { "calibrate", calibrate_main },
    { "convert", convert_main },
    { NULL, NULL }
};

static const option_t  main_table[] = {
    { .name = NULL }
};

static const options_spec_t  main_spec = {
    "llmgw-sim",
    "COMMAND [options]",
    "Simulates a fleet of replicas behind the gateway.",
    "commands (see COMMAND --help):\n"
    "  run                          simulate a workload that is drawn\n"
    "  replay                       simulate the requests of a trace\n"
    "  compare                      compare settings, request by request\n"
    "  search                       find fewest replicas, or the best weights\n"
    "  explain                      make each choice of a decision log again\n"
    "  observe                      record a real endpoint as a trace\n"
    "  calibrate                    compare a simulation with a trace\n"
    "  convert                      make a trace of nginx's access log",
    main_table
};


/* Output that could not be written is an error. */
static int
main_flush(int rc)
{
    if (rc != 2 && (fflush(stdout) != 0 || ferror(stdout))) {
        fprintf(stderr, "llmgw-sim: cannot write standard output: %s\n",
                strerror(errno));
        return 2;
    }

    return rc;
}


int
main(int argc, char **argv)
{
    return main_flush(options_run_command(&main_spec, main_commands, argc,
                                          argv));
}
