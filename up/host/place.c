
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/address.h"
#include "common/listener.h"
#include "up/host/place.h"


#define PLACE_LOCK       "lock"
#define PLACE_RUN_LINK   "run"
#define PLACE_RUN_NAME   "llmgw-"

/* Addresses that are tried, since other gateways may use some of them. */
#define PLACE_HOSTS      64

/* Greatest depth of a run's directory, in which nginx nests temporary files. */
#define PLACE_DEPTH      8


static int
place_refuse(const char *what, const char *path,
    char error[PLACE_ERROR_BYTES])
{
    snprintf(error, PLACE_ERROR_BYTES, "%s \"%s\": %s", what, path,
             strerror(errno));

    return -1;
}


/*
 * The workers of root's nginx have another user, and read keys and the segment.
 */
static mode_t
place_mode(void)
{
    return geteuid() == 0 ? 0755 : 0700;
}


/* Makes a path's missing directories.  0, or -1 and errno. */
static int
place_make_dirs(char *path)
{
    char  *p;

    for (p = path + 1; *p != '\0'; p++) {

        if (*p == '/') {
            *p = '\0';

            if (mkdir(path, place_mode()) != 0 && errno != EEXIST) {
                *p = '/';
                return -1;
            }

            *p = '/';
        }
    }

    return mkdir(path, place_mode()) == 0 || errno == EEXIST ? 0 : -1;
}


/* The parent of the directories of gateways without --dir; "": none is known.
   It is never in /tmp, where other users could prepare one. */
static void
place_root(char root[PATH_MAX])
{
    const char  *dir;

    dir = getenv("XDG_STATE_HOME");

    if (geteuid() == 0) {
        strcpy(root, "/var/lib/llmgw/up");

    } else if (dir != NULL && dir[0] == '/') {
        snprintf(root, PATH_MAX, "%s/llmgw", dir);

    } else if ((dir = getenv("HOME")) != NULL && dir[0] == '/'
               && access(dir, W_OK|X_OK) == 0)
    {
        snprintf(root, PATH_MAX, "%s/.local/state/llmgw", dir);

    } else {
        root[0] = '\0';
    }
}


static int
place_set_dir(place_t *p, const char *path, char error[PLACE_ERROR_BYTES])
{
    struct stat  st;

    if (realpath(path, p->dir) == NULL || stat(p->dir, &st) != 0) {
        return place_refuse("directory", path, error);
    }

    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid()) {
        snprintf(error, PLACE_ERROR_BYTES, "directory \"%s\" is not one of "
                 "this user; give another with --dir", path);
        return -1;
    }

    if (strpbrk(p->dir, " \t\n\"';{}#\\$") != NULL) {
        snprintf(error, PLACE_ERROR_BYTES, "directory \"%s\" has a character "
                 "in its path that configuration files do not take; give "
                 "another with --dir", p->dir);
        return -1;
    }

    return 0;
}


int
place_find(place_t *place, const char *dir, const char *listen,
    char error[PLACE_ERROR_BYTES])
{
    char  path[PATH_MAX], root[PATH_MAX];
    int   n;

    place->lock = -1;

    if (dir != NULL) {
        n = snprintf(path, sizeof(path), "%s", dir);

    } else {
        place_root(root);

        if (root[0] == '\0') {
            snprintf(error, PLACE_ERROR_BYTES, "there is no home directory "
                     "for configuration and logs: give one with --dir");
            return -1;
        }

        n = snprintf(path, sizeof(path), "%s/%s", root, listen);
    }

    if (n >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return place_refuse("directory", dir != NULL ? dir : root, error);
    }

    if (place_make_dirs(path) != 0) {
        return place_refuse("directory", path, error);
    }

    return place_set_dir(place, path, error);
}


/* Whether a process holds the directory's lock; does not take the lock. */
static int
place_is_taken(const char *dir)
{
    int           fd, is_taken;
    char          path[PATH_MAX];
    struct flock  lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

    if (snprintf(path, sizeof(path), "%s/" PLACE_LOCK, dir) >= PATH_MAX) {
        return 0;
    }

    fd = open(path, O_RDONLY|O_CLOEXEC);

    if (fd == -1) {
        return 0;
    }

    is_taken = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(fd);

    return is_taken;
}


/* Finds the only running gateway in the root.  Returns how many run. */
static int
place_find_only(char path[PATH_MAX])
{
    int             n;
    DIR            *dir;
    char            root[PATH_MAX], one[PATH_MAX];
    struct dirent  *entry;

    place_root(root);
    dir = opendir(root);
    n = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {

        if (entry->d_name[0] != '.'
            && snprintf(one, sizeof(one), "%s/%s", root, entry->d_name)
               < PATH_MAX
            && place_is_taken(one))
        {
            strcpy(path, one);
            n++;
        }
    }

    if (dir != NULL) {
        closedir(dir);
    }

    return n;
}


/*
 * Reads the target of "run".  0, or -1: there is no such link, or the target
 * does not belong to this user.
 */
static int
place_read_link(const place_t *p, char run[PLACE_RUN_BYTES])
{
    char         path[PATH_MAX], target[PATH_MAX];
    const char  *name;
    ssize_t      n;
    struct stat  st;

    if (snprintf(path, sizeof(path), "%s/" PLACE_RUN_LINK, p->dir)
        >= PATH_MAX)
    {
        return -1;
    }

    n = readlink(path, target, sizeof(target) - 1);

    if (n <= 0 || n >= PLACE_RUN_BYTES) {
        return -1;
    }

    target[n] = '\0';
    name = strrchr(target, '/');

    if (name == NULL
        || strncmp(name + 1, PLACE_RUN_NAME, strlen(PLACE_RUN_NAME)) != 0
        || lstat(target, &st) != 0 || !S_ISDIR(st.st_mode)
        || st.st_uid != geteuid())
    {
        return -1;
    }

    strcpy(run, target);

    return 0;
}


int
place_find_running(place_t *place, const char *dir,
    char error[PLACE_ERROR_BYTES])
{
    int   n;
    char  path[PATH_MAX];

    place->lock = -1;
    n = dir != NULL ? 1 : place_find_only(path);

    if (n != 1) {
        snprintf(error, PLACE_ERROR_BYTES, n == 0
                 ? "no gateway of \"llmgw up\" runs; one with --dir is found "
                   "by the same --dir"
                 : "several gateways run: say which one with --dir");
        return -1;
    }

    if (place_set_dir(place, dir != NULL ? dir : path, error) != 0) {
        return -1;
    }

    if (!place_is_taken(place->dir)
        || place_read_link(place, place->run) != 0)
    {
        snprintf(error, PLACE_ERROR_BYTES, "no gateway runs in \"%s\"",
                 place->dir);
        return -1;
    }

    return 0;
}


static int
place_remove(const char *path, const struct stat *st, int type,
    struct FTW *at)
{
    (void) remove(path);

    return 0;
}


static void
place_remove_run(const char *run)
{
    (void) nftw(run, place_remove, PLACE_DEPTH, FTW_DEPTH|FTW_PHYS);
}


static int
place_lock(place_t *p, char error[PLACE_ERROR_BYTES])
{
    char          path[PATH_MAX];
    struct flock  lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    if (snprintf(path, sizeof(path), "%s/" PLACE_LOCK, p->dir) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return place_refuse("directory", p->dir, error);
    }

    p->lock = open(path, O_RDWR|O_CREAT|O_CLOEXEC, 0600);

    if (p->lock == -1) {
        return place_refuse("file", path, error);
    }

    if (fcntl(p->lock, F_OFD_SETLK, &lock) != 0) {
        snprintf(error, PLACE_ERROR_BYTES, "another \"llmgw up\" runs with "
                 "directory \"%s\": \"llmgw add URL\" adds to it, and --dir "
                 "names another one", p->dir);
        return -1;
    }

    return 0;
}


static uint64_t
place_hash(const char *text)
{
    uint64_t  hash;

    hash = 0xcbf29ce484222325ULL;           /* FNV-1a */

    for ( /* void */ ; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char) *text) * 0x100000001b3ULL;
    }

    return hash;
}


/*
 * Makes `keep`.  It is in /dev/shm, where any user could have made it before.
 */
static int
place_make_keep(const place_t *p, char error[PLACE_ERROR_BYTES])
{
    struct stat  st;

    if (mkdir(p->keep, 0700) != 0 && errno != EEXIST) {
        return place_refuse("directory", p->keep, error);
    }

    if (lstat(p->keep, &st) != 0 || !S_ISDIR(st.st_mode)
        || st.st_uid != geteuid())
    {
        snprintf(error, PLACE_ERROR_BYTES, "\"%s\" is not a directory of this "
                 "user, remove it", p->keep);
        return -1;
    }

    return 0;
}


/* Makes `run` in memory, where its path is short.  root's XDG_RUNTIME_DIR is
   not used, because nginx's workers cannot enter it. */
static int
place_make_run(place_t *p, char error[PLACE_ERROR_BYTES])
{
    int          n;
    char         path[PATH_MAX], fresh[PATH_MAX];
    const char  *base;

    base = getenv("XDG_RUNTIME_DIR");

    if (geteuid() == 0 || base == NULL || base[0] != '/'
        || access(base, W_OK|X_OK) != 0)
    {
        base = "/dev/shm";
    }

    n = snprintf(p->run, sizeof(p->run), "%s/" PLACE_RUN_NAME "%x-%d", base,
                 (unsigned) place_hash(p->dir), (int) getpid());
    (void) snprintf(p->keep, sizeof(p->keep), "%s/" PLACE_RUN_NAME "%x", base,
                    (unsigned) place_hash(p->dir));

    if (n >= PLACE_RUN_BYTES) {
        p->run[0] = '\0';
        snprintf(error, PLACE_ERROR_BYTES, "XDG_RUNTIME_DIR: \"%s\" is too "
                 "long for the paths of sockets; set it to another directory, "
                 "or to nothing", base);
        return -1;
    }

    if (place_make_keep(p, error) != 0) {
        return -1;
    }

    if (mkdir(p->run, place_mode()) != 0) {
        (void) place_refuse("directory", p->run, error);
        p->run[0] = '\0';
        return -1;
    }

    if (snprintf(path, sizeof(path), "%s/" PLACE_RUN_LINK, p->dir) >= PATH_MAX
        || snprintf(fresh, sizeof(fresh), "%s/" PLACE_RUN_LINK ".new", p->dir)
           >= PATH_MAX)
    {
        errno = ENAMETOOLONG;
        return place_refuse("directory", p->dir, error);
    }

    (void) unlink(fresh);

    return symlink(p->run, fresh) == 0 && rename(fresh, path) == 0 ? 0
           : place_refuse("symbolic link", path, error);
}


/* Whether no agent gossips at the host, and no first adapter serves there. */
static int
place_host_is_free(const char *host)
{
    int        fd, port, is_free;
    size_t     i;
    address_t  address;
    char       text[ADDRESS_TEXT_BYTES];

    static const int  ports[] = { PLACE_GOSSIP_PORT, PLACE_GRPC_PORT };

    is_free = 1;

    for (i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
        port = ports[i];
        snprintf(text, sizeof(text), "%s:%d", host, port);

        if (address_parse(text, &address) != 0) {
            return 0;
        }

        fd = listener_socket(&address);
        is_free &= fd != -1 && listen(fd, 1) == 0;

        if (fd != -1) {
            close(fd);
        }
    }

    return is_free;
}


static int
place_find_host(place_t *p, char error[PLACE_ERROR_BYTES])
{
    unsigned  i, bits;

    for (i = 0; i < PLACE_HOSTS; i++) {
        bits = (unsigned) (place_hash(p->dir) >> 32) + i * 251;
        snprintf(p->host, sizeof(p->host), "127.%u.%u.%u",
                 1 + (bits >> 16) % 254, 1 + (bits >> 8) % 254,
                 1 + bits % 254);

        if (place_host_is_free(p->host)) {
            return 0;
        }
    }

    snprintf(error, PLACE_ERROR_BYTES, "no address of 127.0.0.0/8 is free for "
             "adapters; the last one that was tried is %s", p->host);

    return -1;
}


int
place_take(place_t *place, char error[PLACE_ERROR_BYTES])
{
    char  last[PLACE_RUN_BYTES];

    if (place_lock(place, error) != 0) {
        return -1;
    }

    if (place_read_link(place, last) == 0) {
        place_remove_run(last);
    }

    return place_make_run(place, error) == 0 ? place_find_host(place, error)
                                             : -1;
}


void
place_done(place_t *place)
{
    char  path[PATH_MAX];

    if (place->run[0] != '\0' && place->lock != -1) {
        place_remove_run(place->run);
        (void) rmdir(place->keep);      /* not if engines were started */

        if (snprintf(path, sizeof(path), "%s/" PLACE_RUN_LINK, place->dir)
            < PATH_MAX)
        {
            (void) unlink(path);
        }
    }

    if (place->lock != -1) {
        close(place->lock);
    }

    place->lock = -1;
}
