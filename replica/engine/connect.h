
/*
 * The HTTP client of an engine, by the options of the command line: URL or
 * socket, key, certificates.
 */

#ifndef CONNECT_H
#define CONNECT_H

#include "replica/engine/engine.h"
#include "replica/engine/http.h"


/* NULL and one line in the log: it cannot be made. */
http_client_t *connect_create(engine_t *engine,
    const engine_options_t *options);

#endif /* CONNECT_H */
