
/*
 * Writing a file with a part of a model; slice/sliced.h says what is in it.
 *
 * It is written as PATH.tmp, which is renamed when all of it is on the disk:
 * whatever ends the run, a file of that name is whole.
 */

#ifndef CUT_H
#define CUT_H

#include "slice/whole.h"


typedef struct {
    sliced_kind_t  kind;
    uint32_t       first_layer;     /* SLICE */
    uint32_t       last_layer;
    const char    *path;
    uint64_t       bytes;           /* out: of the file */
} cut_t;

/* Of a model whose manifest is made.  0, or -1 and why; an empty error: it
   was to stop.  Only a run that is killed leaves PATH.tmp behind. */
int cut_write(const whole_t *whole, cut_t *cut, const tensors_watch_t *watch,
    char error[SLICED_ERROR_BYTES]);

#endif /* CUT_H */
