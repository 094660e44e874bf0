
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/child/cgroup.h"


#define CGROUP_LINE_BYTES  (3 * CGROUP_PATH_BYTES)


/*
 * Finds the place where the hierarchy of version 2 is mounted as a whole.  0,
 * or -1.
 */
static int
cgroup_mount(char mount[CGROUP_PATH_BYTES])
{
    int    n;
    char   line[CGROUP_LINE_BYTES], *type;
    FILE  *f;

    f = fopen("/proc/self/mountinfo", "re");

    if (f == NULL) {
        return -1;
    }

    n = 0;

    while (n == 0 && fgets(line, sizeof(line), f) != NULL) {
        type = strstr(line, " - ");

        if (type != NULL && strncmp(type, " - cgroup2 ", 11) == 0
            && sscanf(line, "%*s %*s %*s / %4095s", mount) == 1)
        {
            n = 1;
        }
    }

    fclose(f);

    return n == 1 ? 0 : -1;
}


/* Finds this process's group, below the mount.  0, or -1. */
static int
cgroup_own(char own[CGROUP_PATH_BYTES])
{
    int    rc;
    char   line[CGROUP_LINE_BYTES];
    FILE  *f;

    f = fopen("/proc/self/cgroup", "re");

    if (f == NULL) {
        return -1;
    }

    rc = -1;

    while (rc != 0 && fgets(line, sizeof(line), f) != NULL) {
        rc = sscanf(line, "0::%4095s", own) == 1 ? 0 : -1;
    }

    fclose(f);

    return rc;
}


/* systemd marks a group that it delegates, and gives it to the unit's user. */
static int
cgroup_is_delegated(const char *path)
{
    char         mark[2];
    struct stat  st;

    if (stat(path, &st) != 0 || st.st_uid != geteuid()) {
        return 0;
    }

    return geteuid() != 0
           || (getxattr(path, "user.delegate", mark, sizeof(mark)) == 1
               && mark[0] == '1')
           || (getxattr(path, "trusted.delegate", mark, sizeof(mark)) == 1
               && mark[0] == '1');
}


static int
cgroup_write(const char *path, const char *file, const char *text)
{
    int      fd;
    char     name[CGROUP_PATH_BYTES + 32];
    ssize_t  n;

    snprintf(name, sizeof(name), "%s/%s", path, file);
    fd = open(name, O_WRONLY|O_CLOEXEC);

    if (fd == -1) {
        return -1;
    }

    n = write(fd, text, strlen(text));
    close(fd);

    return n > 0 ? 0 : -1;
}


/* The path of the group with that name.  0, or -1. */
static int
cgroup_path(const char *name, char path[CGROUP_PATH_BYTES])
{
    int   n;
    char  mount[CGROUP_PATH_BYTES], own[CGROUP_PATH_BYTES];

    if (cgroup_mount(mount) != 0 || cgroup_own(own) != 0) {
        return -1;
    }

    n = snprintf(path, CGROUP_PATH_BYTES, "%s%s", mount, own);

    if (n >= CGROUP_PATH_BYTES || !cgroup_is_delegated(path)) {
        return -1;
    }

    n += snprintf(path + n, (size_t) (CGROUP_PATH_BYTES - n), "%s%s",
                  path[n - 1] == '/' ? "" : "/", name);

    return n < CGROUP_PATH_BYTES ? 0 : -1;
}


void
cgroup_make(const char *name, char path[CGROUP_PATH_BYTES])
{
    if (cgroup_path(name, path) != 0
        || (mkdir(path, 0755) != 0 && errno != EEXIST))
    {
        path[0] = '\0';
    }
}


int
cgroup_enter(const char *path)
{
    return cgroup_write(path, "cgroup.procs", "0");
}


int
cgroup_leave(const char *path)
{
    return cgroup_write(path, "../cgroup.procs", "0");
}


void
cgroup_kill(const char *path)
{
    (void) cgroup_write(path, "cgroup.kill", "1");
}


/* A group that cannot be read counts as empty. */
int
cgroup_is_empty(const char *path)
{
    int    is_full;
    char   line[64], name[CGROUP_PATH_BYTES + 32];
    FILE  *f;

    snprintf(name, sizeof(name), "%s/cgroup.events", path);
    f = fopen(name, "re");

    if (f == NULL) {
        return 1;
    }

    is_full = 0;

    while (fgets(line, sizeof(line), f) != NULL) {
        is_full |= strcmp(line, "populated 1\n") == 0;
    }

    fclose(f);

    return !is_full;
}


void
cgroup_remove(const char *path)
{
    (void) rmdir(path);
}
