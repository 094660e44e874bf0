
/*
 * The tensors of a model in a file of llmgw-slice, and their names there. The
 * slicer and the checks of a file use the same rules:
 *
 *   blk.N.*         the slices whose range has layer N, as blk.(N - first)
 *   token_embd.*    the head; with a model whose output matrix it is, too, the
 *                   slices with the last layer as well
 *   output.*        the slices with the last layer; output.weight is called
 *                   token_embd.weight there, since libllama takes that as the
 *                   output matrix where there is none of its own
 *   all others      (output_norm, rope_freqs) every slice: libllama does not
 *                   load a model without them, and they are small
 *   SHARE_SETTINGS  every file: it is no tensor, but the line of keys that also
 *                   decide what is computed, as the base of the rotations
 *
 * A slice without the last layer has a token_embd.weight that is not the
 * model's: one row of zeros.
 */

#ifndef SHARE_H
#define SHARE_H

#include <stdint.h>


#define SHARE_NAME_BYTES  64            /* libllama's own limit, with a NUL */
#define SHARE_EMBED       "token_embd.weight"
#define SHARE_OUTPUT      "output.weight"
#define SHARE_SETTINGS    "settings"

typedef struct {
    int       is_head;
    int       is_tied;          /* the model has no output.weight */
    uint32_t  first_layer;      /* of a slice */
    uint32_t  last_layer;
    uint32_t  layers;           /* of the model */
} share_t;

int share_has_output(const share_t *share);

/* Whether the file has this tensor of the model. */
int share_has(const share_t *share, const char *name);

/* The name that a tensor of the model has in the file. */
void share_name(const share_t *share, const char *name,
    char local[SHARE_NAME_BYTES]);

/* The layer that a tensor belongs to; -1: none. */
int64_t share_layer(const char *name);

#endif /* SHARE_H */
