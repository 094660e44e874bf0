
/*
 * The members that the gateway knows, of all APIs and engines: their types, and
 * what they ask for.
 *
 * The gateway checks what it reads itself, and the types of parameters for
 * sampling and formats, since some engines answer as if a parameter of a wrong
 * type were not there.  Everything else engines check.
 */

#ifndef LLMGW_OPENAI_KNOWN_H
#define LLMGW_OPENAI_KNOWN_H

#include "core/openai/body.h"


/* Checks the members of a body and fills in the rest of it.  -1: an error. */
int llmgw_openai_known_read(llmgw_openai_body_t *body,
    llmgw_openai_error_t *error);

#endif /* LLMGW_OPENAI_KNOWN_H */
