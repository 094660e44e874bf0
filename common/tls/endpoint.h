
/*
 * The TLS of one end: its files, its part of grpc_conn_options_t, and a line in
 * the log for each connection that a server refuses.
 *
 * Any host that reaches the port can cause such lines, so they are limited:
 * ten at once, and one a second.
 */

#ifndef TLS_ENDPOINT_H
#define TLS_ENDPOINT_H

#include "common/grpc/conn.h"
#include "common/tls/tls.h"


typedef struct {
    const log_t          *log;
    tls_t                *tls;          /* NULL: without TLS */
    grpc_conn_options_t   conn;         /* for this end's connections */
    double                counted_at;   /* time of the last refusal */
    double                lines;        /* number of lines that may be logged
                                           now */
    unsigned              unlogged;     /* refusals without a line */
} tls_endpoint_t;


/*
 * Reads the files, if there are any (files->ca is NULL: none).  files and log
 * must outlive the endpoint.  0, or -1 and one line in error (TLS_ERROR_BYTES).
 */
int tls_endpoint_open(tls_endpoint_t *endpoint, const tls_files_t *files,
    const log_t *log, char *error);

/* When its connections are gone; a zeroed endpoint is accepted. */
void tls_endpoint_close(tls_endpoint_t *endpoint);

#endif /* TLS_ENDPOINT_H */
