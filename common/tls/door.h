
/*
 * One end's TLS: what its options say, its part of grpc_conn_options_t, and a
 * line in the log for each connection that a server refuses.
 *
 * Any host that reaches the port can cause such lines, so they are limited:
 * ten at once, and one a second.
 */

#ifndef TLS_DOOR_H
#define TLS_DOOR_H

#include "common/grpc/conn.h"
#include "common/tls/tls.h"


typedef struct {
    const log_t          *log;
    tls_t                *tls;          /* NULL: plain */
    grpc_conn_options_t   conn;         /* for this end's connections */
    double                told_at;      /* of the last refusal */
    double                lines;        /* that may be logged now */
    unsigned              untold;       /* refusals without a line */
} tls_door_t;


/*
 * Reads the files, if there are any (files->ca is NULL: none).  They and log
 * outlive it.  0, or -1 and one line in error (TLS_ERROR_BYTES).
 */
int tls_door_open(tls_door_t *door, const tls_files_t *files,
    const log_t *log, char *error);

/* When its connections are gone.  Zeroed is fine. */
void tls_door_close(tls_door_t *door);

#endif /* TLS_DOOR_H */
