
/*
 * Reads a token's message without decoding it.
 *
 * Both messages that carry a token begin alike (llmgateway.proto): field 1 is
 * its text, field 2 says whether it is the last; the gateway adds field 3.
 * A protobuf reader merges messages that are concatenated (Protocol Buffers,
 * "Encoding", last one wins).  So the bytes of a replica's message, with
 * field 3 appended, are the message for the client.
 *
 * This holds only for a message in the form that every encoder writes, with
 * no fields but these two.  Any other must be decoded with protobuf-c.
 */

#ifndef LLMGW_TOKEN_MESSAGE_H
#define LLMGW_TOKEN_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "llmgateway.pb-c.h"


/*
 * A GenerateResponse, and its fields.  The message is in the form above: with
 * `more` it is a copy of these two fields alone.
 */
typedef struct {
    const uint8_t  *message;
    size_t          len;
    const uint8_t  *text;       /* within the message */
    size_t          text_len;
    int             is_final;
    uint32_t        count;      /* how many tokens it is */
    const Llmgateway__GenerateResponse  *more;      /* NULL: it is plain */
} llmgw_token_t;


/* The last message of a stream, without text: it is no token. */
extern const llmgw_token_t  llmgw_token_final;


/*
 * 1: the bytes are in the form that an encoder writes, have no unknown
 * fields, and *token is set.  0: they are not, or this cannot be decided.
 */
int llmgw_token_message_read(const uint8_t *message, size_t len,
    llmgw_token_t *token);

#endif /* LLMGW_TOKEN_MESSAGE_H */
