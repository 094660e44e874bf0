
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "state/state_file.h"


/* -1: too long. */
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


static int
state_file_fill(const char *path, const char *text)
{
    int    rc;
    FILE  *file;

    file = fopen(path, "we");
    if (file == NULL) {
        return -1;
    }

    rc = fprintf(file, "%s\n", text) < 0 || fflush(file) != 0
         || fsync(fileno(file)) != 0 ? -1 : 0;

    return fclose(file) != 0 ? -1 : rc;
}


/* Without this, a power failure could undo the rename. */
static void
state_file_sync_dir(const char *dir)
{
    int  fd;

    fd = open(dir, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (fd != -1) {
        (void) fsync(fd);
        close(fd);
    }
}


int
state_file_write(const char *dir, const char *id, const char *name,
    const char *text)
{
    int   saved;
    char  path[PATH_MAX], fresh[PATH_MAX + sizeof(".new")];

    if (dir == NULL) {
        return 0;
    }

    if (state_file_path(path, dir, id, name) != 0) {
        return -1;
    }

    snprintf(fresh, sizeof(fresh), "%s.new", path);

    if (state_file_fill(fresh, text) != 0 || rename(fresh, path) != 0) {
        saved = errno;
        unlink(fresh);
        errno = saved;
        return -1;
    }

    state_file_sync_dir(dir);

    return 0;
}
