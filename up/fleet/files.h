
/*
 * The configuration of a gateway, as files that people may read: for nginx, for
 * its agent, and for each engine's adapter and agent.
 *
 * Nothing is decided here: the files only contain what was decided elsewhere.
 * `llmgw up` writes them to its directory and starts programs on them; `llmgw
 * up --print` writes the same for an installation that systemd runs.
 */

#ifndef FILES_H
#define FILES_H

#include <limits.h>
#include <stdint.h>

#include "up/fleet/source.h"
#include "up/host/tools.h"


#define FILES_ERROR_BYTES  (PATH_MAX + 512)

#define FILES_CLUSTER      "up"         /* name of the agents' cluster */
#define FILES_GATEWAY      "gateway"    /* id of nginx's agent */

/* What all files of a gateway have in common. */
typedef struct {
    const char     *dir;            /* the directory where files are written */
    const char     *etc;            /* that directory's name in the files */
    const char     *run;            /* directory of sockets, segment and pid */
    const char     *logs;           /* directory of logs; NULL: all output goes
                                       to standard error */
    const char     *host;           /* where adapters serve and agents gossip */
    const char     *listen;         /* numeric address */
    const char     *local;          /* this host's address with the same port,
                                       where pages are served; NULL: none */
    const char     *keys;           /* the key file; NULL: none */
    const char     *engine_key;     /* the engines' key file; NULL: none */
    const char     *module;
    const char     *user;           /* of nginx's workers; NULL: default */
    unsigned        connections;    /* of each worker */
    uint64_t        drain_timeout_ms;
    uint64_t        stop_timeout_ms;    /* how long an engine started here may
                                           take to end after its drain; 0:
                                           default */
} files_t;

typedef struct {
    const char     *id;
    source_kind_t   kind;
    const char     *target;         /* a URL or a command; NULL for SIM */
    unsigned        slot;           /* determines its ports */
} files_engine_t;


/* Each returns 0, or -1 and a reason. */
int files_write_keyring(const files_t *files, char error[FILES_ERROR_BYTES]);
int files_write_nginx(const files_t *files, char error[FILES_ERROR_BYTES]);
int files_write_agent(const files_t *files, char error[FILES_ERROR_BYTES]);
int files_write_engine(const files_t *files, const files_engine_t *engine,
    char error[FILES_ERROR_BYTES]);

/* Removes the files of an engine. */
void files_remove_engine(const files_t *files, const char *id);

/* For an installation: a file for conf.d in place of nginx's own; and, for each
   engine, the file that its agent's unit reads, with how to install all of
   it. */
int files_write_snippet(const files_t *files, char error[FILES_ERROR_BYTES]);
int files_write_unit(const files_t *files, const files_engine_t *engine,
    char error[FILES_ERROR_BYTES]);

/* The path of a file in a directory; it always fits PATH_MAX. */
void files_path(char path[PATH_MAX], const char *dir, const char *name,
    const char *suffix);

/* The path of a log, for program_t; "" stands for standard error. */
void files_log(char path[PATH_MAX], const files_t *files, const char *name,
    const char *suffix);

#endif /* FILES_H */
