
/*
 * Output of an engine's processes, as lines of the adapter's log.
 *
 * An engine must not wait for its log.  So output is read at once, and a line
 * that the adapter's own log cannot take at this moment is dropped; the number
 * of dropped lines is logged later.  Lines longer than OUTPUT_LINE_BYTES are
 * cut, and of a progress bar, which returns to the line's beginning, only the
 * last state is kept.
 */

#ifndef OUTPUT_H
#define OUTPUT_H

#include <ev.h>
#include <stddef.h>

#include "common/log.h"


/* Short enough that a line, with the log's own prefix, is below what a pipe
   takes in one piece. */
#define OUTPUT_LINE_BYTES  1024

typedef struct {
    struct ev_loop  *loop;
    const log_t     *log;
    ev_io            watch;
    int              read_fd;       /* -1: not open */
    int              write_fd;      /* for the engine; -1: not open */
    char             line[OUTPUT_LINE_BYTES + 1];
    size_t           len;
    int              is_cut;
    int              is_return;     /* the last byte was a carriage return */
    unsigned long    dropped;       /* lines */
} output_t;


/* Makes a pipe, and reads it.  0, or -1 and errno. */
int output_open(output_t *output, struct ev_loop *loop, const log_t *log);

/* Reads the remaining output, and closes the pipe. */
void output_close(output_t *output);

#endif /* OUTPUT_H */
