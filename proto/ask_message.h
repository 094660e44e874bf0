
/*
 * Writes a GenerateRequest without the body of its OpenAI request, which may
 * have megabytes and is sent from where it is.
 *
 *   fields of GenerateRequest | openai: fields of OpenaiRequest | body: | bytes
 *   '------------------- written here -------------------------------' theirs
 *
 * An encoder would write the body in the middle.  A protobuf reader takes the
 * fields in any order (Protocol Buffers, "Encoding").
 */

#ifndef LLMGW_ASK_MESSAGE_H
#define LLMGW_ASK_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "llmgateway.pb-c.h"


/* How many bytes are written before the body: it is below 256 MB. */
size_t llmgw_ask_message_size(const Llmgateway__GenerateRequest *request);

/* Writes them.  The body follows; without an OpenAI request there is none. */
void llmgw_ask_message_write(const Llmgateway__GenerateRequest *request,
    uint8_t *p);

#endif /* LLMGW_ASK_MESSAGE_H */
