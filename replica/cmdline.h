
/*
 * llmgw-replica's command line.
 */

#ifndef CMDLINE_H
#define CMDLINE_H

#include <stdint.h>

#include "common/options.h"
#include "common/tls/context.h"
#include "replica/engine/engine.h"
#include "replica/shard/options.h"
#include "replica/standby/standby.h"


/* Strings live until cmdline_done(). */
typedef struct {
    const char        *id;
    const char        *listen;
    const char        *agent;
    const char        *kind;        /* --engine */
    engine_options_t   engine;
    shards_options_t   shards;
    uint64_t           drain_timeout_ms;
    const char        *max_capacity;
    const char        *exact;
    standby_options_t  standby;
    int64_t            model_memory_mb;
    const char        *model_memory_kind;
    const char        *token_log;
    const char        *hash_log;
    int                is_remote_drain;
    tls_files_t        tls;             /* all three, or none */
    const char        *tls_clients;     /* patterns; NULL: any client */
    int                is_insecure;
} cmdline_t;


/*
 * Reads argv into a zeroed cmdline, and chooses the kind of engine.  What is
 * wrong was printed, as one line that says what would be right.
 */
options_rc_t cmdline_read(cmdline_t *cmdline, int argc, char **argv,
    const engine_kind_t **kind);

void cmdline_done(cmdline_t *cmdline);

#endif /* CMDLINE_H */
