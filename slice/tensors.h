
/*
 * The tensors of a GGUF file, or of a model in several files: their places and
 * contents.  They are read by pread, in blocks, so that a model that is larger
 * than the memory can be hashed and cut.
 *
 * libllama's reader of GGUF parses the head; its figures are checked here
 * against the sizes of the files.
 */

#ifndef TENSORS_H
#define TENSORS_H

#include <gguf.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "slice/manifest/manifest.h"


#define TENSORS_ERROR_BYTES  256

typedef struct {
    const char     *name;               /* in its file */
    enum ggml_type  type;
    int64_t         ne[GGML_MAX_DIMS];
    uint64_t        bytes;
    uint64_t        offset;             /* in its file */
    int             fd;
    const char     *path;
} tensor_t;

typedef struct {
    struct gguf_context *gguf;
    int                  fd;
    char                *path;
} tensors_part_t;

typedef struct {
    tensors_part_t *parts;              /* the first one has the facts */
    size_t          nparts;
    tensor_t       *tensors;
    size_t          n;
    uint64_t        bytes;              /* of all tensors */
} tensors_t;

/* Interruption and progress of long work.  The pointer to it may be NULL, and
   so may each field. */
typedef struct {
    const atomic_int  *is_stopping;
    void             (*progress)(void *data, uint64_t bytes);   /* more done */
    void              *data;
} tensors_watch_t;

/* Opens a model by the paths of all its parts.  0, or -1 and an error; then
   tensors_close() is not needed. */
int tensors_open(tensors_t *t, char *const *paths, size_t n,
    char error[TENSORS_ERROR_BYTES]);
void tensors_close(tensors_t *t);

const tensor_t *tensors_find(const tensors_t *t, const char *name);

/* Read a fact of the first part.  0, or -1: it has none of this name and
   type. */
int tensors_u32(const tensors_t *t, const char *key, uint32_t *value);

/* A fact that is a text, valid as long as t; NULL: there is none of this
   name. */
const char *tensors_text(const tensors_t *t, const char *key);

/* A fact that is an array of n floats; NULL: there is none of this name and
   length. */
const float *tensors_floats(const tensors_t *t, const char *key, size_t n);

/* "TYPE SHAPE", as a manifest has it. */
void tensors_shape(const tensor_t *tensor, char shape[MANIFEST_SHAPE_BYTES]);

/*
 * Passes the bytes of a tensor to each(), which returns 0 or -1 with errno.  0,
 * or -1 and errno: ECANCELED if it was stopped.
 */
int tensors_read(const tensor_t *tensor, const tensors_watch_t *watch,
    int (*each)(void *data, const void *bytes, size_t n), void *data);

/* 0, or -1 and errno, as above. */
int tensors_hash(const tensor_t *tensor, const tensors_watch_t *watch,
    uint8_t sha256[MANIFEST_ID_BYTES]);

/*
 * Makes the manifest's line of the architecture's keys, without those that
 * differ between a model and its slices: the numbers of layers and of tokens.
 * 0, or -1: out of memory, or the file names no architecture.
 */
int tensors_settings(const tensors_t *t, char shape[MANIFEST_SHAPE_BYTES],
    uint8_t sha256[MANIFEST_ID_BYTES]);

/*
 * Makes the manifest of a whole model, sorted, and its text, which the caller
 * frees.  0, or -1 and an error.
 */
int tensors_manifest(const tensors_t *t, const tensors_watch_t *watch,
    manifest_t *manifest, char **text, char error[TENSORS_ERROR_BYTES]);

#endif /* TENSORS_H */
