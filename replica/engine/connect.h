
/*
 * The HTTP client of an engine, by what the command line says of it: URL or
 * socket, key, certificates.
 */

#ifndef CONNECT_H
#define CONNECT_H

#include "replica/engine/engine.h"
#include "replica/engine/http.h"


/* NULL, and one line in the log. */
http_client_t *connect_create(engine_t *engine,
    const engine_options_t *options);

#endif /* CONNECT_H */
