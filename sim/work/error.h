
/*
 * An error for people: one line with the place and the reason.
 */

#ifndef WORK_ERROR_H
#define WORK_ERROR_H

#include <stddef.h>


typedef struct {
    char  text[512];        /* "FILE:LINE: what", without a line's end */
} work_error_t;

/*
 * Writes "FILE:LINE: what" ("FILE: what" if line is 0) and returns -1, so that
 * a reader can end with it.  error may be NULL.
 */
int work_fail(work_error_t *error, const char *file, size_t line,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif /* WORK_ERROR_H */
