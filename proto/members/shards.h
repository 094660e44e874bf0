
/*
 * The model whose layers shards compute, and which shards can serve together.
 *
 * A shard's record has its layers (llmgw_member_shard()).  Longer facts, which
 * are the same for all shards of one model, are in the list that `models` of
 * its record names: three names, each ended by a NUL,
 *
 *     the model         1 .. 126 printable characters
 *     the weights id    64 hexadecimal digits in lower case
 *     the numerics id   a name (llmgw_name_is_valid())
 *
 * so shards whose records name one list may serve one request together, and
 * others never.  The list is as long as gossip carries.
 */

#ifndef LLMGW_SHARDS_H
#define LLMGW_SHARDS_H

#include "proto/members/member.h"


#define LLMGW_WEIGHTS_ID_BYTES  32

/* With the NUL; so the three names fit LLMGW_MEMBERS_MODELS_BYTES. */
#define LLMGW_SHARD_MODEL_BYTES                                               \
    (LLMGW_MEMBERS_MODELS_BYTES - (2 * LLMGW_WEIGHTS_ID_BYTES + 1)            \
     - LLMGW_MEMBERS_NAME_BYTES)

/* What all shards that may serve one request together have in common. */
typedef struct {
    char     name[LLMGW_SHARD_MODEL_BYTES];
    uint8_t  weights_id[LLMGW_WEIGHTS_ID_BYTES];
    char     numerics[LLMGW_MEMBERS_NAME_BYTES];
} llmgw_shard_model_t;


/* Reads a list of the names area.  0; -1: it is not the list of a shard. */
int llmgw_shard_model_read(llmgw_shard_model_t *model, const char *names,
    size_t bytes);

/*
 * Writes the list of a model; names holds LLMGW_MEMBERS_MODELS_BYTES.  Returns
 * its length.
 */
size_t llmgw_shard_model_write(const llmgw_shard_model_t *model, char *names);

/*
 * Writes an id as 64 hexadecimal digits in lower case and a NUL; and reads them
 * back: 0, or -1.
 */
void llmgw_weights_id_write(const uint8_t *id, char *text);
int llmgw_weights_id_read(uint8_t *id, const char *text, size_t len);

#endif /* LLMGW_SHARDS_H */
