
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
    Llmgateway__OpenaiRequest    openai;    /* without its body */
    Llmgateway__GenerateRequest  request;   /* without the above */
} llmgw_ask_message_t;


/*
 * Measures it; the request's memory must stay until it is written.  The body is
 * below 256 MB; without an OpenAI request there is none.
 */
void llmgw_ask_message_init(llmgw_ask_message_t *message,
    const Llmgateway__GenerateRequest *request);

/* Writes message->bytes.  The body follows. */
void llmgw_ask_message_write(const llmgw_ask_message_t *message, uint8_t *p);

#endif /* LLMGW_ASK_MESSAGE_H */
