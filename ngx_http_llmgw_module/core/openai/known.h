
/*
 * The members that the gateway knows, of all APIs and engines: what type they
 * have to be, and what they ask for.
 */

#ifndef LLMGW_OPENAI_KNOWN_H
#define LLMGW_OPENAI_KNOWN_H

#include "core/openai/body.h"


/* Judges the members of a body and fills in the rest of it.  -1: an error. */
int llmgw_openai_known_read(llmgw_openai_body_t *body,
    llmgw_openai_error_t *error);

#endif /* LLMGW_OPENAI_KNOWN_H */
