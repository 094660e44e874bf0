
/*
 * A whole model that is to be cut: its facts, and whether it can be cut.
 *
 * A slice is a model of its own to libllama, with layers from 0 on and the
 * rows of another slice as its input.  That gives the whole model's bits only
 * where a layer computes the same whatever its number is, and where nothing
 * is done to an input before the first layer or kept from one layer for a
 * later one.  Whether that holds is in libllama's code for an architecture,
 * so the architectures where it does are listed, and others refused.
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
    char         name[SLICED_NAME_BYTES];       /* as members tell it */
    uint32_t     layers;
    uint32_t     width;
    uint32_t     vocabulary;
    manifest_t   manifest;
    char        *text;              /* of the manifest */
    uint8_t      weights_id[MANIFEST_ID_BYTES];
    float       *norms;             /* layers + 1 of them, or NULL */
} whole_t;

/*
 * Opens a model by its file, or by the first of several; name: NULL for its
 * own.  0, or -1 and why; it needs whole_done() in both cases.
 */
int whole_open(whole_t *whole, const char *path, const char *name,
    char error[SLICED_ERROR_BYTES]);

/* Reads all of it.  0, or -1 and why; an empty error: it was to stop. */
int whole_hash(whole_t *whole, const tensors_watch_t *watch,
    char error[SLICED_ERROR_BYTES]);

void whole_done(whole_t *whole);

#endif /* WHOLE_H */
