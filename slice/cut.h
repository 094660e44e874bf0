
/*
 * Writes a file with a part of a model; its contents are described in
 * slice/sliced.h.
 *
 * It is written as PATH.tmp, and renamed to PATH when all of it is on the disk.
 * So a file PATH is complete, however the run ends.
 */

#ifndef CUT_H
#define CUT_H

#include "slice/whole.h"


typedef struct {
    sliced_kind_t  kind;
    uint32_t       first_layer;     /* SLICE */
    uint32_t       last_layer;
    const char    *path;
    uint64_t       bytes;           /* set by cut_write(): bytes of the file */
} cut_t;

/*
 * Writes a file; the model's manifest has been made.  0, or -1 and an error,
 * which is empty if it was stopped.  Only a run that is killed leaves PATH.tmp
 * behind.
 */
int cut_write(const whole_t *whole, cut_t *cut, const tensors_watch_t *watch,
    char error[SLICED_ERROR_BYTES]);

#endif /* CUT_H */
