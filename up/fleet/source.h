
/*
 * What a word of the command line stands for: one engine, or a name whose
 * addresses are engines.
 *
 *   http://HOST:PORT     an engine, or https://; HOST:PORT is http://HOST:PORT
 *   dns:NAME:PORT        each address of the name, as it changes
 *   exec:COMMAND         an engine that its adapter starts
 *   sim:                 a simulated engine (--demo)
 *
 * Pure: nothing is resolved or started here.
 */

#ifndef SOURCE_H
#define SOURCE_H

#include <stddef.h>

#include "replica/engine/url.h"


#define SOURCE_BYTES        URL_BYTES
#define SOURCE_ERROR_BYTES  (URL_BYTES + 512)
#define SOURCE_HOST_BYTES   256

/* A member's id may have 63 bytes, and a path of a socket holds it. */
#define SOURCE_ID_BYTES     41

typedef enum {
    SOURCE_HTTP = 0,
    SOURCE_DNS,
    SOURCE_EXEC,
    SOURCE_SIM
} source_kind_t;

typedef struct {
    source_kind_t  kind;
    char           text[SOURCE_BYTES];      /* how people call it */
    char           target[URL_BYTES];       /* a URL or a command; not DNS */
    char           host[SOURCE_HOST_BYTES]; /* DNS */
    unsigned       port;                    /* DNS */
} source_t;


/* 0 and *source; or -1 and a reason that quotes the word. */
int source_read(source_t *source, const char *word,
    char error[SOURCE_ERROR_BYTES]);

/*
 * A name for an engine, of a member's characters: "gpu1-8000" for
 * http://gpu1:8000, "vllm" for "exec:vllm serve ...".  text: a URL or a
 * command.
 */
void source_id(const char *text, char id[SOURCE_ID_BYTES]);

#endif /* SOURCE_H */
