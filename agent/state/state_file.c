
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/os/atomic_file.h"
#include "state/state_file.h"


/* Makes a file's path.  -1: it is too long. */
static int
state_file_path(char *path, const char *dir, const char *id, const char *name)
{
    if (snprintf(path, PATH_MAX, "%s/%s.%s", dir, id, name) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }

    return 0;
}


int
state_file_read(const char *dir, const char *id, const char *name, char *text)
{
    char   *end, path[PATH_MAX];
    FILE   *file;
    size_t  len;

    if (dir == NULL) {
        return 0;
    }

    if (state_file_path(path, dir, id, name) != 0) {
        return -1;
    }

    file = fopen(path, "re");
    if (file == NULL) {
        return errno == ENOENT ? 0 : -1;
    }

    len = fread(text, 1, STATE_FILE_BYTES, file);
    end = memchr(text, '\n', len);
    fclose(file);

    if (end == NULL || memchr(text, '\0', end - text) != NULL) {
        errno = EINVAL;
        return -1;
    }

    *end = '\0';

    return 1;
}


int
state_file_write(const char *dir, const char *id, const char *name,
    const char *text)
{
    int   len;
    char  path[PATH_MAX], line[STATE_FILE_BYTES + 1];

    if (dir == NULL) {
        return 0;
    }

    if (state_file_path(path, dir, id, name) != 0) {
        return -1;
    }

    len = snprintf(line, sizeof(line), "%s\n", text);

    if (len >= (int) sizeof(line)) {
        errno = EINVAL;
        return -1;
    }

    return atomic_file_write(path, line, (size_t) len);
}
