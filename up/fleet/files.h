
/*
 * The configuration that is run, as files that people may read: nginx's, the
 * gateway's agent's, and for each engine its adapter's and its agent's.
 *
 * They say what was decided elsewhere and decide nothing.  `llmgw up` writes
 * them to its directory and starts programs on them; `llmgw up --print` writes
 * the same for an installation that systemd runs.
 */

#ifndef FILES_H
#define FILES_H

#include <limits.h>
#include <stdint.h>

#include "up/fleet/source.h"
#include "up/host/tools.h"


#define FILES_ERROR_BYTES  (PATH_MAX + 512)

#define FILES_CLUSTER      "up"         /* of agents' gossip */
#define FILES_GATEWAY      "gateway"    /* the id of nginx's agent */

/* What all files of a gateway have in common. */
typedef struct {
    const char     *dir;            /* where they are written, */
    const char     *etc;            /* and as they name it themselves */
    const char     *run;            /* sockets, segment, pid */
    const char     *logs;           /* a directory for them; NULL: all go to
                                       standard error */
    const char     *host;           /* of adapters and gossip */
    const char     *listen;         /* numeric */
    const char     *local;          /* the same port of this host, or NULL:
                                       the pages are for its clients alone */
    const char     *keys;           /* the key file; NULL: none */
    const char     *engine_key;     /* the file of --engine-key-file, or NULL */
    const char     *module;
    const char     *user;           /* of nginx's workers; NULL: its default */
    unsigned        connections;    /* of a worker */
    uint64_t        drain_timeout_ms;
    uint64_t        stop_timeout_ms;    /* of engines that are started, behind
                                           the drain; 0: as by default */
} files_t;

typedef struct {
    const char     *id;
    source_kind_t   kind;
    const char     *target;         /* a URL or a command; NULL for SIM */
    unsigned        slot;           /* gives its ports */
} files_engine_t;


/* Each: 0, or -1 and a reason. */
int files_write_keyring(const files_t *files, char error[FILES_ERROR_BYTES]);
int files_write_nginx(const files_t *files, char error[FILES_ERROR_BYTES]);
int files_write_agent(const files_t *files, char error[FILES_ERROR_BYTES]);
int files_write_engine(const files_t *files, const files_engine_t *engine,
    char error[FILES_ERROR_BYTES]);

/* Removes those of an engine. */
void files_remove_engine(const files_t *files, const char *id);

/* Instead of nginx's: a file for conf.d, and for each engine what its agent's
   unit reads; and how all of it is installed. */
int files_write_snippet(const files_t *files, char error[FILES_ERROR_BYTES]);
int files_write_unit(const files_t *files, const files_engine_t *engine,
    char error[FILES_ERROR_BYTES]);

/* The names of files in the directory, below PATH_MAX for sure. */
void files_path(char path[PATH_MAX], const char *dir, const char *name,
    const char *suffix);

/* A log, as program_t has it: "" is standard error. */
void files_log(char path[PATH_MAX], const files_t *files, const char *name,
    const char *suffix);

#endif /* FILES_H */
