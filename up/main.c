
/* llmgw: runs the command that the first word names. */

#include <stddef.h>

#include "common/options.h"
#include "up/fleet/dns.h"
#include "up/host/bound.h"
#include "up/up.h"


static const options_command_t  main_commands[] = {
    { "up", up_main },
    { "add", ask_main },
    { "remove", ask_main },
    { "status", ask_main },
    { BOUND_COMMAND, bound_main },  /* used only by `up` */
    { DNS_COMMAND, dns_main },
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
    "  add URL                      add an engine to a running gateway\n"
    "  remove URL                   remove an engine once its streams end\n"
    "  status                       list its engines and their state",
    main_table
};


int
main(int argc, char **argv)
{
    return options_run_command(&main_spec, main_commands, argc, argv);
}
