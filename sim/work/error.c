
/* An error as one line: file, line, what is wrong. */

#include "sim/work/error.h"

#include <stdarg.h>
#include <stdio.h>


int
work_fail(work_error_t *error, const char *file, size_t line,
    const char *format, ...)
{
    int       used;
    va_list   args;
    size_t    size;
    unsigned  char *at;

    if (error == NULL) {
        return -1;
    }

    size = sizeof(error->text);
    used = line > 0 ? snprintf(error->text, size, "%.200s:%zu: ", file, line)
                    : snprintf(error->text, size, "%.200s: ", file);

    va_start(args, format);
    vsnprintf(error->text + used, size - (size_t) used, format, args);
    va_end(args);

    /*
     * Text from a file may have any characters; an error must be one line of
     * text.
     */
    for (at = (unsigned char *) error->text; *at != '\0'; at++) {
        if (*at < 0x20 || *at == 0x7f) {
            *at = '?';
        }
    }

    return -1;
}
