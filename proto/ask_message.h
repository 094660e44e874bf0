
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


typedef struct {
    size_t                       bytes;     /* written before the body */
    size_t                       openai_bytes;
    size_t                       body_bytes;
    Llmgateway__OpenaiRequest    openai;    /* all fields but its body */
    Llmgateway__GenerateRequest  request;   /* all fields but `openai` */
} llmgw_ask_message_t;


/*
 * Sets the message and its numbers of bytes.  It points into the request, whose
 * memory must stay until the message is written.  The body is below 256 MB; a
 * request without an OpenAI request has none.
 */
void llmgw_ask_message_init(llmgw_ask_message_t *message,
    const Llmgateway__GenerateRequest *request);

/* Writes message->bytes; the caller sends the body after them. */
void llmgw_ask_message_write(const llmgw_ask_message_t *message, uint8_t *p);

#endif /* LLMGW_ASK_MESSAGE_H */
