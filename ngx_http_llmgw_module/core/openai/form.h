
/*
 * The body of a request that sends a file: multipart/form-data (RFC 7578, in
 * the form of RFC 2046, 5.1).  The gateway reads its part `model`; all else is
 * passed on unread, to an engine that judges it.
 *
 *     --BOUNDARY CRLF  fields  CRLF CRLF  content  CRLF
 *     --BOUNDARY CRLF  ...
 *     --BOUNDARY--
 *
 * It is read strictly, so that no engine finds another `model` in it: nothing
 * precedes the first part, lines end with CRLF, each part has one
 * Content-Disposition, and there is one `model`.  Contents are only searched
 * for the next boundary.
 */

#ifndef LLMGW_OPENAI_FORM_H
#define LLMGW_OPENAI_FORM_H

#include <stddef.h>

#include "core/openai/body.h"


#define LLMGW_OPENAI_MAX_PARTS     64       /* OpenAI's API has some ten */
#define LLMGW_OPENAI_MAX_FIELDS    4096     /* in the header fields of a part */
#define LLMGW_OPENAI_MAX_BOUNDARY  70       /* RFC 2046, 5.1.1 */


/*
 * As llmgw_openai_body_read(), with the request's Content-Type. members has
 * `model`, from the beginning of its content to its end; file is the part that
 * has a file's name, the last if there are several.
 */
int llmgw_openai_form_read(llmgw_openai_body_t *body, const char *type,
    size_t type_len, Llmgateway__Api api, const void *bytes, size_t len,
    const llmgw_openai_memory_t *memory, llmgw_openai_error_t *error);

#endif /* LLMGW_OPENAI_FORM_H */
