
/*
 * The manifest of a model identifies its weights, independent of the files that
 * they are in.
 *
 * It is a text with a line for each tensor,
 *
 *     NAME TYPE SHAPE SHA256
 *     blk.0.attn_k.weight q8_0 128x64 5f70bf18a0860070...
 *
 * sorted by name, bytewise: the name in the whole model, ggml's name of the
 * type, the dimensions from the innermost, and the hash of the tensor's bytes
 * as the file has them.  One more line, "settings keys N SHA256", is for the
 * architecture's keys (rotations, epsilons, heads): with other keys the same
 * tensors compute something else.  The weights id is the SHA-256 of that text.
 * So a file that holds a part of a model carries the whole text, proves by it
 * which model it belongs to, and checks its own lines: a hash of the whole file
 * could not do either.
 *
 * Nothing here knows of GGUF: unit tests run it without libllama.
 */

#ifndef MANIFEST_H
#define MANIFEST_H

#include <stddef.h>
#include <stdint.h>


#define MANIFEST_ID_BYTES     32
#define MANIFEST_HEX_BYTES    (2 * MANIFEST_ID_BYTES + 1)
#define MANIFEST_SHAPE_BYTES  160       /* "q8_0 4096x14336", with a NUL */

/* A text that is longer, or that has more lines, is refused: the largest models
   have some 2,000 tensors, with lines of 150 bytes. */
#define MANIFEST_TEXT_BYTES   (16u * 1024 * 1024)
#define MANIFEST_TENSORS      65536

typedef struct {
    char     *name;
    char      shape[MANIFEST_SHAPE_BYTES];      /* "TYPE SHAPE" */
    uint8_t   sha256[MANIFEST_ID_BYTES];
} manifest_line_t;

typedef struct {
    manifest_line_t  *lines;
    size_t            n;
    size_t            room;
} manifest_t;

/*
 * Adds a line to a manifest that was zeroed at first.  0, or -1: out of
 * memory, too many, or a name or shape that a line cannot hold.
 */
int manifest_add(manifest_t *m, const char *name, const char *shape,
    const uint8_t sha256[MANIFEST_ID_BYTES]);

/* Sorts the lines, and makes the text, which the caller frees.  NULL: out of
   memory, or a name is there twice. */
char *manifest_text(manifest_t *m);

/* Reads a manifest from its text.  0, or the number of the wrong line, from 1,
   or -1: out of memory or too large; after an error m is empty. */
int manifest_parse(manifest_t *m, const char *text);

/* The line with this name, in a manifest whose text was made or parsed; NULL:
   there is none. */
const manifest_line_t *manifest_find(const manifest_t *m, const char *name);

void manifest_done(manifest_t *m);

void manifest_id(const char *text, uint8_t id[MANIFEST_ID_BYTES]);

void manifest_hex(const uint8_t id[MANIFEST_ID_BYTES],
    char hex[MANIFEST_HEX_BYTES]);

/* Reads an id of exactly 64 hexadecimal digits, in small letters.  0, or -1. */
int manifest_unhex(const char *hex, uint8_t id[MANIFEST_ID_BYTES]);

#endif /* MANIFEST_H */
