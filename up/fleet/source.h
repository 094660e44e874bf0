
/*
 * A source: what a word of the command line stands for, one engine or a name
 * whose addresses are engines.
 *
 *   http://HOST:PORT     an engine, or https://; HOST:PORT is http://HOST:PORT
 *   dns:NAME:PORT        each address of the name, as it changes
 *   exec:COMMAND         an engine that its adapter starts
 *   sim:                 a simulated engine (--demo)
 *
 * Only texts are handled: nothing is resolved or started here.
 */

#ifndef SOURCE_H
#define SOURCE_H

#include <stddef.h>

#include "replica/engine/url.h"


#define SOURCE_BYTES        URL_BYTES
#define SOURCE_ERROR_BYTES  (URL_BYTES + 512)
#define SOURCE_HOST_BYTES   256

/* A member's id may have 63 bytes; this also fits into the path of a socket. */
#define SOURCE_ID_BYTES     41

typedef enum {
    SOURCE_HTTP = 0,
    SOURCE_DNS,
    SOURCE_EXEC,
    SOURCE_SIM
} source_kind_t;

typedef struct {
    source_kind_t  kind;
    char           text[SOURCE_BYTES];      /* the source as people write it */
    char           target[URL_BYTES];       /* URL or command; not for DNS */
    char           host[SOURCE_HOST_BYTES]; /* only for DNS */
    unsigned       port;                    /* only for DNS */
} source_t;


/* Reads a word.  0 and *source; or -1 and a reason that quotes the word. */
int source_read(source_t *source, const char *word,
    char error[SOURCE_ERROR_BYTES]);

/*
 * Makes an id for an engine, of the characters of a member's id: "gpu1-8000"
 * for http://gpu1:8000, "vllm" for "exec:vllm serve ...".  text: a URL or
 * command.
 */
void source_id(const char *text, char id[SOURCE_ID_BYTES]);

#endif /* SOURCE_H */
