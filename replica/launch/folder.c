
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/atomic_file.h"
#include "replica/launch/folder.h"


/* 64 numbers of 20 digits, after the command's hash. */
#define FOLDER_TOOK_BYTES  2048


static void
folder_base(char base[FOLDER_BYTES])
{
    size_t       i;
    const char  *dir;

    static const char *const  names[] = {
        "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"
    };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        dir = getenv(names[i]);

        if (dir != NULL && dir[0] == '/') {
            snprintf(base, FOLDER_BYTES, "%.*s", (int) strcspn(dir, ":"), dir);
            return;
        }
    }

    strcpy(base, "/tmp");
}


/* Makes the folder, and checks it: in /tmp any user may have made it before. */
static int
folder_make(const char *path, char error[FOLDER_ERROR_BYTES])
{
    struct stat  st;

    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        snprintf(error, FOLDER_ERROR_BYTES, "cannot make \"%s\" for the "
                 "engine: %s", path, strerror(errno));
        return -1;
    }

    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode)
        || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
    {
        snprintf(error, FOLDER_ERROR_BYTES, "\"%s\" is not a folder of this "
                 "user's alone, remove it", path);
        return -1;
    }

    return 0;
}


int
folder_open(folder_t *f, const char *id, char error[FOLDER_ERROR_BYTES])
{
    char  base[FOLDER_BYTES], path[FOLDER_PATH_BYTES];

    f->lock_fd = -1;
    folder_base(base);

    if (snprintf(f->path, sizeof(f->path), "%s/llmgw-engine-%s", base, id)
        >= (int) sizeof(f->path))
    {
        snprintf(error, FOLDER_ERROR_BYTES, "\"%s\" is too long for the "
                 "engine's folder", base);
        return -1;
    }

    if (folder_make(f->path, error) != 0) {
        return -1;
    }

    snprintf(path, sizeof(path), "%s/lock", f->path);
    f->lock_fd = open(path, O_RDWR|O_CREAT|O_CLOEXEC|O_NOFOLLOW, 0600);

    if (f->lock_fd == -1) {
        snprintf(error, FOLDER_ERROR_BYTES, "cannot open \"%s\": %s", path,
                 strerror(errno));
        return -1;
    }

    return 0;
}


void
folder_close(folder_t *f)
{
    if (f->lock_fd != -1) {
        close(f->lock_fd);
        f->lock_fd = -1;
    }
}


int
folder_lock(folder_t *f)
{
    return flock(f->lock_fd, LOCK_EX|LOCK_NB);
}


int
folder_socket(const folder_t *f, char path[FOLDER_SOCKET_BYTES])
{
    if (snprintf(path, FOLDER_SOCKET_BYTES, "%s/http", f->path)
        >= FOLDER_SOCKET_BYTES)
    {
        return -1;
    }

    (void) unlink(path);

    return 0;
}


/* FNV-1a: it distinguishes commands, and need not withstand attacks. */
static uint64_t
folder_hash(const char *command)
{
    uint64_t  hash;

    for (hash = 14695981039346656037ULL; *command != '\0'; command++) {
        hash = (hash ^ (unsigned char) *command) * 1099511628211ULL;
    }

    return hash;
}


void
folder_read(const folder_t *f, const char *command, uint64_t *bytes, int count)
{
    int       i;
    char      path[FOLDER_PATH_BYTES];
    FILE     *file;
    uint64_t  hash;

    snprintf(path, sizeof(path), "%s/took", f->path);
    file = fopen(path, "re");

    if (file == NULL) {
        return;
    }

    if (fscanf(file, "%" SCNx64, &hash) == 1 && hash == folder_hash(command)) {

        for (i = 0; i < count; i++) {
            if (fscanf(file, "%" SCNu64, &bytes[i]) != 1) {
                break;
            }
        }
    }

    fclose(file);
}


void
folder_write(const folder_t *f, const char *command, const uint64_t *bytes,
    int count)
{
    int     i;
    char    path[FOLDER_PATH_BYTES], text[FOLDER_TOOK_BYTES];
    size_t  n;

    n = (size_t) snprintf(text, sizeof(text), "%" PRIx64,
                          folder_hash(command));

    for (i = 0; i < count && n < sizeof(text) - 24; i++) {
        n += (size_t) snprintf(text + n, sizeof(text) - n, " %" PRIu64,
                               bytes[i]);
    }

    text[n++] = '\n';
    snprintf(path, sizeof(path), "%s/took", f->path);
    (void) atomic_file_write(path, text, n);
}
