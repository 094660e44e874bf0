
/*
 * A token's message, told by its bytes.
 *
 * Both messages that carry a token begin alike (llmgateway.proto): field 1 is
 * its text, field 2 says whether it is the last; what the gateway adds is
 * field 3.  Of protobuf messages that follow each other in one piece of bytes
 * a reader makes one (Protocol Buffers, "Encoding", last one wins): so a
 * replica's message, as it lies there, with field 3 behind it, is the client's.
 *
 * That holds for a message which is written as every encoder writes it, and
 * has nothing but these two fields.  Any other is for protobuf-c.
 */

#ifndef LLMGW_TOKEN_MESSAGE_H
#define LLMGW_TOKEN_MESSAGE_H

#include <stddef.h>
#include <stdint.h>


/* A GenerateResponse, and what stands in it. */
typedef struct {
    const uint8_t  *message;
    size_t          len;
    const uint8_t  *text;       /* within the message */
    size_t          text_len;
    int             is_final;
} llmgw_token_t;


/* The last one of a stream, without text. */
extern const llmgw_token_t  llmgw_token_final;


/*
 * 1: the bytes are what an encoder makes of a GenerateResponse that it knows
 * in full, and *token tells of them.  0: they are not, or it cannot be told.
 */
int llmgw_token_message_read(const uint8_t *message, size_t len,
    llmgw_token_t *token);

#endif /* LLMGW_TOKEN_MESSAGE_H */
