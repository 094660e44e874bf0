
/*
 * An engine's key.
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/keys/key.h"
#include "common/os/private_file.h"


static int __attribute__((format(printf, 3, 4)))
key_fail(char *error, const char *path, const char *format, ...)
{
    int      n;
    va_list  args;

    n = snprintf(error, KEY_ERROR_BYTES, "key file \"%.120s\": ", path);

    va_start(args, format);
    vsnprintf(error + n, KEY_ERROR_BYTES - (size_t) n, format, args);
    va_end(args);

    return -1;
}


/* Checks a key, which becomes a part of an HTTP header field. */
static int
key_check(const char *key, const char *path, char *error)
{
    const char  *c;

    if (*key == '\0') {
        return key_fail(error, path, "its first line is empty");
    }

    if (strlen(key) == KEY_BYTES - 1) {
        return key_fail(error, path, "the key must be shorter than %d bytes",
                        KEY_BYTES - 1);
    }

    for (c = key; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~') {
            return key_fail(error, path, "the key has a character that keys "
                            "cannot have");
        }
    }

    return 0;
}


int
key_read(const char *path, char key[KEY_BYTES], char error[KEY_ERROR_BYTES])
{
    int    rc;
    FILE  *file;
    char   why[PRIVATE_FILE_WHY_BYTES];

    file = private_file_open(path, why);

    if (file == NULL) {
        return key_fail(error, path, "%s", why);
    }

    if (fgets(key, KEY_BYTES, file) == NULL) {
        key[0] = '\0';
    }

    key[strcspn(key, "\r\n")] = '\0';
    rc = key_check(key, path, error);

    fclose(file);

    return rc;
}
