
/*
 * A whole model that is to be cut: its facts, and whether it can be cut.
 *
 * A slice is a model of its own to libllama, with layers from 0 on and the rows
 * of another slice as its input.  That gives the whole model's bits only if a
 * layer computes the same whatever its number is, if the input is not changed
 * before the first layer, and if a layer keeps nothing for a later one.
 * Whether this holds depends on libllama's code for an architecture, so the
 * architectures for which it does are listed, and others are refused.
 */

#ifndef WHOLE_H
#define WHOLE_H

#include "slice/sliced.h"
#include "slice/tensors.h"


typedef struct {
    tensors_t    tensors;
    char       **paths;
    size_t       npaths;
    const char  *architecture;
    char         name[SLICED_NAME_BYTES];       /* the name that members
                                                   publish */
    uint32_t     layers;
    uint32_t     width;
    uint32_t     vocabulary;
    manifest_t   manifest;
    char        *text;              /* of the manifest */
    uint8_t      weights_id[MANIFEST_ID_BYTES];
    float       *norms;             /* layers + 1 of them, or NULL */
} whole_t;

/*
 * Opens a model by its file, or by the first of several; name: NULL for the
 * name in the file.  0, or -1 and an error; whole_done() is needed in both
 * cases.
 */
int whole_open(whole_t *whole, const char *path, const char *name,
    char error[SLICED_ERROR_BYTES]);

/* Reads the whole model, and makes its manifest.  0, or -1 and an error, which
   is empty if it was stopped. */
int whole_hash(whole_t *whole, const tensors_watch_t *watch,
    char error[SLICED_ERROR_BYTES]);

void whole_done(whole_t *whole);

#endif /* WHOLE_H */
