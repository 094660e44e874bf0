
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <unistd.h>

#include "common/os/private_file.h"


int
private_file_is_closed(const struct stat *st)
{
    mode_t  others;

    others = st->st_mode & (S_IRWXG|S_IRWXO);

    return others == 0
           || (others == S_IRGRP && st->st_uid != geteuid()
               && (st->st_gid == getegid() || group_member(st->st_gid)));
}


/* Checks that the file is private.  0; -1: why says what is wrong. */
static int
private_file_check(int fd, char why[PRIVATE_FILE_WHY_BYTES])
{
    struct stat  st;

    if (fstat(fd, &st) == -1) {
        snprintf(why, PRIVATE_FILE_WHY_BYTES, "%s", strerror(errno));
        return -1;
    }

    if (!S_ISREG(st.st_mode)) {
        snprintf(why, PRIVATE_FILE_WHY_BYTES, "not a regular file");
        return -1;
    }

    if (!private_file_is_closed(&st)) {
        snprintf(why, PRIVATE_FILE_WHY_BYTES,
                 "its mode is %04o, others than its owner may use it: "
                 "chmod 600", (unsigned) st.st_mode & 07777);
        return -1;
    }

    return 0;
}


FILE *
private_file_open(const char *path, char why[PRIVATE_FILE_WHY_BYTES])
{
    int    fd;
    FILE  *file;

    fd = open(path, O_RDONLY|O_CLOEXEC|O_NONBLOCK|O_NOCTTY);

    if (fd == -1) {
        snprintf(why, PRIVATE_FILE_WHY_BYTES, "%s", strerror(errno));
        return NULL;
    }

    if (private_file_check(fd, why) != 0) {
        close(fd);
        return NULL;
    }

    file = fdopen(fd, "r");

    if (file == NULL) {
        snprintf(why, PRIVATE_FILE_WHY_BYTES, "%s", strerror(errno));
        close(fd);
    }

    return file;
}
