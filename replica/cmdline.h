
/*
 * The command line of a replica: the options that all have, and those of the
 * engines that a program has.
 */

#ifndef CMDLINE_H
#define CMDLINE_H

#include <stdint.h>

#include "common/options.h"
#include "common/tls/context.h"
#include "replica/engine/engine.h"
#include "replica/shard/options.h"
#include "replica/standby/standby.h"


#define CMDLINE_ERROR_BYTES    SHARDS_ERROR_BYTES      /* the longest */
#define CMDLINE_OPTIONS_MAX    96
#define CMDLINE_LONG_MAX_MS    86400000     /* of long waits: a day */

/* Strings live until cmdline_done(). */
typedef struct {
    const char        *id;
    const char        *listen;
    const char        *agent;
    engine_options_t   engine;
    uint64_t           drain_timeout_ms;
    const char        *max_capacity;
    standby_options_t  standby;
    int                is_remote_drain;
    tls_files_t        tls;             /* all three, or none */
    const char        *tls_clients;     /* patterns; NULL: any client */
    int                is_insecure;

    /* llmgw-replica's own: kinds.c */
    const char        *kind;            /* --engine */
    shards_options_t   shards;
    const char        *exact;

    options_spec_t     spec;
    option_t           table[CMDLINE_OPTIONS_MAX];
} cmdline_t;

/* A program that serves as a replica. */
typedef struct {
    const char      *name;
    const char      *synopsis;
    const char      *summary;
    const option_t  *options;           /* of its engines */

    /* The kind of engine that the options ask for.  NULL and a reason: there is
       no such kind, or its options contradict each other. */
    const engine_kind_t  *(*choose)(cmdline_t *cmdline,
                                    char error[CMDLINE_ERROR_BYTES]);
} cmdline_program_t;


/*
 * Reads argv into a zeroed cmdline, and chooses the kind of engine.  cmdline
 * may be the first member of a struct that the program's own options fill.  An
 * error is printed here, as one line with the accepted values.
 */
options_rc_t cmdline_read(cmdline_t *cmdline, const cmdline_program_t *program,
    int argc, char **argv, const engine_kind_t **kind);

void cmdline_done(cmdline_t *cmdline);

/* Writes the error, and returns -1. */
int cmdline_wrong(char error[CMDLINE_ERROR_BYTES], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* For choose(): 0 if --weights is absent or names as many services as there are
   files; else the error, and -1. */
int cmdline_check_services(const cmdline_t *cmdline, size_t files,
    char error[CMDLINE_ERROR_BYTES]);

#endif /* CMDLINE_H */
