
/*
 * Whole files, read and written.
 */

#ifndef WORK_FILE_H
#define WORK_FILE_H

#include <stddef.h>

#include "sim/work/error.h"


/* 10^7 requests of 200 bytes. */
#define WORK_FILE_BYTES  (2000u * 1000 * 1000)

/*
 * The file's bytes with a NUL behind them, to be freed by the caller; NULL:
 * *error says why.
 */
char *work_file_read(const char *path, size_t *len, work_error_t *error);

#endif /* WORK_FILE_H */
