
/*
 * Files of llmgw-slice, as read by the processes that compute.
 *
 *   slice   layers first .. last of a model, renamed from blk.0 on, with
 *           output_norm and what all layers share, as rope_freqs.  The one
 *           with the model's last layer has the output matrix, under the name
 *           token_embd.weight; others have one row of zeros there, so that
 *           libllama loads no vocabulary.
 *   head    vocabulary, chat template and token_embd; no layer.
 *
 * Both kinds are GGUF and are marked by keys:
 *
 *   llmgw.kind         "slice" or "head"
 *   llmgw.model        the model's name, as members publish it
 *   llmgw.manifest     of the whole model (slice/manifest/manifest.h)
 *   llmgw.weights_id   64 hex digits
 *   llmgw.layers       of the whole model
 *   llmgw.first_layer, llmgw.last_layer      of a slice; in the whole model
 *   llmgw.vocabulary   tokens of the whole model
 *   llmgw.norms        f32, one for each boundary, 0 .. layers: the greatest
 *                      norm of a row there, positions 4 and up, in a run of
 *                      fixed tokens through the whole model; may be absent
 */

#ifndef SLICED_H
#define SLICED_H

#include <stdatomic.h>
#include <stdint.h>

#include "slice/manifest/manifest.h"


#define SLICED_ERROR_BYTES  256
#define SLICED_NAME_BYTES   64
#define SLICED_LAYERS_MAX   1024

/* Positions whose norm is ignored: real models have activations there that are
   far greater than all others. */
#define SLICED_FREE_POSITIONS  4

typedef enum {
    SLICED_SLICE = 0,
    SLICED_HEAD
} sliced_kind_t;

typedef struct {
    sliced_kind_t  kind;
    char           model[SLICED_NAME_BYTES];
    uint8_t        weights_id[MANIFEST_ID_BYTES];
    uint32_t       layers;          /* of the whole model */
    uint32_t       first_layer;     /* SLICE */
    uint32_t       last_layer;
    uint32_t       width;           /* floats of a row */
    uint32_t       vocabulary;      /* tokens of the whole model */
    int            has_output;      /* 1: a slice with the model's last layer */
    uint64_t       bytes;           /* of its tensors */
    float         *norms;           /* layers + 1 of them, or NULL */
} sliced_t;

/*
 * Reads the metadata of a file, and no weights.  The manifest's text must have
 * the weights id, and the file exactly the tensors that its kind and its layers
 * require, in the manifest's types and shapes.  0, or -1 and an error for
 * people; then sliced_done() is not needed.
 */
int sliced_read(sliced_t *sliced, const char *path,
    char error[SLICED_ERROR_BYTES]);

/*
 * The same, and compares each tensor's bytes with the manifest; the error names
 * the difference.  To be called before libllama loads the file.  -1 with an
 * empty error: it was stopped.
 */
int sliced_check(sliced_t *sliced, const char *path,
    const atomic_int *is_stopping, char error[SLICED_ERROR_BYTES]);

void sliced_done(sliced_t *sliced);

/* Whether a file is marked as a slice or a head; reads no weights.  0 also if
   it cannot be read. */
int sliced_is_one(const char *path);

/*
 * Computes the weights id of a whole model from the paths of all its parts,
 * which are read whole.  0, or -1 as above.
 */
int sliced_weights_id(char *const *paths, size_t n,
    const atomic_int *is_stopping, uint8_t id[MANIFEST_ID_BYTES],
    char error[SLICED_ERROR_BYTES]);

#endif /* SLICED_H */
