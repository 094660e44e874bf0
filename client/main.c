
/*
 * llmgw-client: runs the command that the first argument names.
 */

#include <stddef.h>

#include "client/bench.h"
#include "common/options.h"
#include "client/infer.h"
#include "client/openai.h"


static const options_command_t  main_commands[] = {
    { "infer", infer_main },
    { "openai", openai_main },
    { "bench", bench_main },
    { NULL, NULL }
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
    return options_run_command(&main_spec, main_commands, argc, argv);
}
