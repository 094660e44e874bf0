
/*
 * llmgw-replica: the adapter beside an engine, behind gRPC.
 *
 * Simulated engines are another program, llmgw-simreplica, so that none of
 * their code, faults on demand above all, is in the program that serves.
 * `--engine sim` and `--engine model` execute it in place of this one: pid and
 * command line stay, so the supervisor does not notice.  Its options are not
 * read here.
 */

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replica/kinds.h"
#include "replica/launch/keeper.h"
#include "replica/replica.h"


#define MAIN_SIMULATED  "llmgw-simreplica"

typedef struct {
    const char  *engine;
} main_first_t;


/* The path of llmgw-simreplica, beside this program's file. */
static int
main_simulated_path(char path[PATH_MAX])
{
    char     *name;
    ssize_t   n;

    n = readlink("/proc/self/exe", path, PATH_MAX - 1);

    if (n <= 0) {
        return -1;
    }

    path[n] = '\0';
    name = strrchr(path, '/') + 1;

    if ((size_t) (name - path) + sizeof(MAIN_SIMULATED) > PATH_MAX) {
        return -1;
    }

    memcpy(name, MAIN_SIMULATED, sizeof(MAIN_SIMULATED));

    return 0;
}


/* Executes llmgw-simreplica; returns only if it cannot. */
static int
main_become_simulated(const char *engine, char **argv)
{
    char  path[PATH_MAX];

    if (main_simulated_path(path) != 0) {
        fprintf(stderr, "llmgw-replica: /proc/self/exe: %s\n",
                strerror(errno));
        return 1;
    }

    (void) execv(path, argv);

    fprintf(stderr, "llmgw-replica: --engine %s: \"%s\": %s%s\n", engine, path,
            strerror(errno), errno == ENOENT
            ? "; it is in the package llmgw-tools" : "");

    return 2;
}


/* Checks --engine.  0, or an exit status: the other program could not be
   executed, or the file of options cannot be read. */
static int
main_judge_engine(int argc, char **argv)
{
    int           rc;
    main_first_t  first = { NULL };

    static const option_t  table[] = {
        { .name = "engine", .offset = offsetof(main_first_t, engine) },
        { .name = NULL }
    };

    static const options_spec_t  spec = {
        .program = "llmgw-replica", .table = table
    };

    if (options_parse_some(&spec, &first, argc, argv) != OPTIONS_DONE) {
        return 2;
    }

    rc = first.engine != NULL && (strcmp(first.engine, "sim") == 0
                                  || strcmp(first.engine, "model") == 0)
         ? main_become_simulated(first.engine, argv) : 0;

    options_done(&spec, &first);

    return rc;
}


int
main(int argc, char **argv)
{
    int           rc;
    cmdline_t     cmdline;
    replica_t     replica;
    options_rc_t  parsed;

    if (keeper_is_asked_for(argc, argv)) {
        return keeper_main(argc, argv);
    }

    rc = main_judge_engine(argc, argv);

    if (rc != 0) {
        return rc;
    }

    memset(&cmdline, 0, sizeof(cmdline));
    memset(&replica, 0, sizeof(replica));
    replica.options = &cmdline;

    parsed = cmdline_read(&cmdline, &kinds_program, argc, argv,
                          &replica.engine.kind);
    rc = parsed == OPTIONS_DONE ? replica_run(&replica)
         : parsed == OPTIONS_EUSAGE ? 2 : 0;

    cmdline_done(&cmdline);

    return rc;
}
