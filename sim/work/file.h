
/*
 * Whole files, read and written.
 */

#ifndef WORK_FILE_H
#define WORK_FILE_H

#include <stddef.h>

#include "sim/work/error.h"


/* Enough for 10^7 requests of 200 bytes. */
#define WORK_FILE_BYTES  (2000u * 1000 * 1000)

/*
 * Reads a whole file, and ends it with a NUL; the caller frees the bytes.
 * NULL: *error has the reason.
 */
char *work_file_read(const char *path, size_t *len, work_error_t *error);

#endif /* WORK_FILE_H */
