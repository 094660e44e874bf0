
/*
 * Reads a replica's message, without decoding it where it is a plain token.
 *
 * Both messages that carry a token begin alike (llmgateway.proto): field 1 is
 * its text, field 2 says whether it is the last; the gateway adds field 3.
 * A protobuf reader merges messages that are concatenated (Protocol Buffers,
 * "Encoding", last one wins).  So the bytes of a replica's message, with
 * field 3 appended, are the message for the client.
 *
 * This holds only for a message in the form that every encoder writes, with no
 * fields but these two.  Any other message is decoded with protobuf-c, into
 * memory on the caller's stack, and its two fields are written anew.
 */

#ifndef LLMGW_TOKEN_MESSAGE_H
#define LLMGW_TOKEN_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "llmgateway.pb-c.h"


#define LLMGW_TOKEN_ARENA_BYTES   4096      /* most messages fit into it */

/*
 * Most bytes that a message may take when decoded: its submessages take more
 * memory than their bytes.
 */
#define LLMGW_TOKEN_ARENA_MAX     (8 * 1024 * 1024)

/* Limits of llmgateway.proto: a piece of an answer, a failure's body. */
#define LLMGW_TOKEN_PIECE_MAX     (64 * 1024)

/* The longest finish_reason or content type; the longest known have 30. */
#define LLMGW_TOKEN_WORD_MAX      256


/*
 * A GenerateResponse and its fields.  `message` is in the form above; if `more`
 * is set, it is a copy of the first two fields alone.
 */
typedef struct {
    const uint8_t  *message;
    size_t          len;
    const uint8_t  *text;       /* within the message */
    size_t          text_len;
    int             is_final;
    uint32_t        count;      /* number of tokens in the text */
    const Llmgateway__GenerateResponse  *more;      /* all fields; NULL: it is a
                                                       plain token */
} llmgw_token_t;


typedef struct llmgw_token_block_s  llmgw_token_block_t;

/* The memory of one decoded message. */
typedef struct {
    ProtobufCAllocator    allocator;
    llmgw_token_block_t  *blocks;       /* what did not fit, from malloc() */
    size_t                used;
    size_t                taken;        /* bytes in these blocks */
    uint8_t               bytes[LLMGW_TOKEN_ARENA_BYTES]
                          __attribute__((aligned(16)));
} llmgw_token_arena_t;


/* The last message of a stream, without text: it counts as no token. */
extern const llmgw_token_t  llmgw_token_final;


/*
 * 1: the bytes are in the form that an encoder writes, have no further
 * fields, and *token is set.  0: they are not, or this cannot be decided.
 */
int llmgw_token_message_read(const uint8_t *message, size_t len,
    llmgw_token_t *token);

/*
 * For a message that read() does not take.  1: *token is set, and valid until
 * the arena is done; token->more is NULL if the message has no known field
 * beside the two.  0: it is no valid GenerateResponse, or breaks a rule of
 * llmgateway.proto, or there is no memory.  Everything but the text is checked.
 * Either way the arena must be done.  has_data: 0: the caller does not read
 * `data`, and messages count as having none.  Line ends in failure.body are
 * replaced by spaces.
 */
int llmgw_token_message_decode(const uint8_t *message, size_t len,
    int has_data, llmgw_token_arena_t *arena, llmgw_token_t *token);

/*
 * 1: something in the message is for the client; 0: it is `progress`, or has
 * only facts about the stream.
 */
int llmgw_token_is_output(const llmgw_token_t *token);

void llmgw_token_arena_done(llmgw_token_arena_t *arena);

#endif /* LLMGW_TOKEN_MESSAGE_H */
