
/* Whole files. */

#include "sim/work/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_FIRST_BYTES  (64 * 1024)


/* Reads to the end, since a pipe or /dev/stdin has no known length. */
static char *
file_read_all(FILE *f, size_t *len)
{
    char    *bytes, *grown;
    size_t   size, got;

    *len = 0;
    size = FILE_FIRST_BYTES;
    bytes = malloc(size);

    while (bytes != NULL) {
        got = fread(bytes + *len, 1, size - *len - 1, f);
        *len += got;

        if (got == 0) {
            bytes[*len] = '\0';
            return bytes;
        }

        if (*len == size - 1) {
            size *= 2;
            errno = size > WORK_FILE_BYTES ? EFBIG : 0;
            grown = errno == 0 ? realloc(bytes, size) : NULL;

            if (grown == NULL) {
                free(bytes);
            }

            bytes = grown;
        }
    }

    return NULL;
}


char *
work_file_read(const char *path, size_t *len, work_error_t *error)
{
    char  *bytes;
    FILE  *f;

    f = fopen(path, "rb");

    if (f == NULL) {
        work_fail(error, path, 0, "%s", strerror(errno));
        return NULL;
    }

    errno = 0;
    bytes = file_read_all(f, len);

    if (bytes == NULL || ferror(f)) {
        work_fail(error, path, 0, "%s", strerror(errno != 0 ? errno : EIO));
        free(bytes);
        bytes = NULL;
    }

    fclose(f);

    return bytes;
}
