
/*
 * The writer's files.
 *
 * The segment's file is made under another name and renamed when it is whole,
 * so no reader ever opens half a segment; it has all its space from the start,
 * so no later write fails for want of it; and it is never truncated, so a
 * reader between two preads finds what it began with.  PATH.tmp needs no pid in
 * its name: the lock lets one writer in, and with one name, a writer that was
 * killed while it made the file leaves at most one, which the next writer
 * removes.
 *
 * The lock is a file of its own, since the segment's file is replaced by
 * rename: a lock on the latter would soon be a lock on a file that no process
 * opens.  The lock file stays when the writer ends, since removing it would
 * break the lock.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/members/file.h"


#define COMPARE_BYTES  16384


int
llmgw_disk_refuses(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EROFS
           || error == EIO;
}


/*
 * Appends the suffix to the path.  0; -1: it is too long, and error says so in
 * the system's words.
 */
static int
path_with_suffix(char *buf, const char *path, const char *suffix, char *error)
{
    int  n;

    n = snprintf(buf, PATH_MAX, "%s%s", path, suffix);
    if (n < 0 || n >= PATH_MAX) {
        errno = ENAMETOOLONG;
        llmgw_members_system_error("open", path, error);
        return -1;
    }

    return 0;
}


static long
lock_owner(int fd)
{
    char     text[32];
    ssize_t  n;

    n = pread(fd, text, sizeof(text) - 1, 0);
    if (n <= 0) {
        return 0;
    }

    text[n] = '\0';

    return strtol(text, NULL, 10);
}


/*
 * Writes the pid into the lock file.  Errors are ignored: the pid is only for
 * people.
 */
static void
lock_sign(int fd)
{
    int   n;
    char  text[32];

    n = snprintf(text, sizeof(text), "%ld\n", (long) getpid());

    if (ftruncate(fd, 0) == 0) {
        (void) llmgw_members_pwrite(fd, text, (size_t) n, 0);
    }
}


int
llmgw_members_lock(const char *path, char *error)
{
    int   fd;
    long  pid;
    char  lock[PATH_MAX], owner[32];

    if (path_with_suffix(lock, path, ".lock", error) == -1) {
        return -1;
    }

    fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
              LLMGW_MEMBERS_MODE);
    if (fd == -1) {
        llmgw_members_system_error("open", lock, error);
        return -1;
    }

    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        lock_sign(fd);
        return fd;
    }

    if (errno != EWOULDBLOCK) {
        llmgw_members_system_error("flock", lock, error);
        close(fd);
        return -1;
    }

    pid = lock_owner(fd);
    owner[0] = '\0';

    if (pid > 0) {
        snprintf(owner, sizeof(owner), ", pid %ld", pid);
    }

    snprintf(error, LLMGW_MEMBERS_ERROR_BYTES,
             "\"%.150s\" has another writer%s", path, owner);
    close(fd);
    errno = EWOULDBLOCK;

    return -1;
}


/*
 * In a directory that all users may write to, another user may have created a
 * file there that they can still write to, or a link.
 */
int
llmgw_members_file_open(const char *path, off_t *file_bytes)
{
    int          fd;
    struct stat  file;

    fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd == -1) {
        return -1;
    }

    if (fstat(fd, &file) == -1
        || !S_ISREG(file.st_mode)
        || file.st_uid != geteuid()
        || file.st_nlink != 1
        || (file.st_mode & 07777) != LLMGW_MEMBERS_MODE)
    {
        close(fd);
        return -1;
    }

    *file_bytes = file.st_size;

    return fd;
}


int
llmgw_members_pwrite(int fd, const void *buf, size_t bytes, off_t at)
{
    ssize_t      n;
    const char  *p;

    for (p = buf; bytes > 0; p += n, at += n, bytes -= (size_t) n) {
        n = pwrite(fd, p, bytes, at);

        if (n < 0) {
            if (errno != EINTR) {
                return -1;
            }

            n = 0;
        }
    }

    return 0;
}


/*
 * The copy is aligned, so that neither side of the kernel's copy crosses a
 * page.
 */
int
llmgw_members_head_write(int fd, const llmgw_members_head_t *head)
{
    _Alignas(64) llmgw_members_head_t  copy;

    copy = *head;

    return llmgw_members_pwrite(fd, &copy, sizeof(copy), 0);
}


int
llmgw_members_table_write(int fd, const llmgw_members_head_t *head,
    const llmgw_members_table_t *table)
{
    uint64_t  sequence;

    sequence = table->header->sequence;

    if (llmgw_members_pwrite(fd, table->header,
                             llmgw_members_table_bytes(table),
                             llmgw_members_buffer_at(head, sequence))
        == -1)
    {
        return -1;
    }

    return llmgw_members_pwrite(fd, table->slots,
                                llmgw_members_table_slots_bytes(table),
                                llmgw_members_slots_at(head, sequence));
}


/* The copy is aligned, as the head is. */
int
llmgw_members_slot_write(int fd, const llmgw_members_head_t *head,
    const llmgw_members_table_t *table, size_t k)
{
    _Alignas(64) llmgw_members_slot_t  copy;

    copy = table->slots[k];

    return llmgw_members_pwrite(fd, &copy, sizeof(copy),
                                llmgw_members_slots_at(head, head->sequence)
                                + (off_t) (k * sizeof(copy)));
}


/* Writes the whole new file under its temporary name. */
static int
file_fill(int fd, const char *tmp, const llmgw_members_head_t *head,
    const llmgw_members_table_t *table, const llmgw_members_lists_t *lists,
    char *error)
{
    if (fchmod(fd, LLMGW_MEMBERS_MODE) == -1) {
        llmgw_members_system_error("fchmod", tmp, error);
        return -1;
    }

    errno = posix_fallocate(fd, 0, llmgw_members_file_bytes(head));
    if (errno != 0) {
        llmgw_members_system_error("posix_fallocate", tmp, error);
        return -1;
    }

    if (llmgw_members_table_write(fd, head, table) == -1
        || llmgw_members_lists_write(lists, fd, head) == -1
        || llmgw_members_head_write(fd, head) == -1)
    {
        llmgw_members_system_error("pwrite", tmp, error);
        return -1;
    }

    return 0;
}


int
llmgw_members_file_make(const char *path, const llmgw_members_head_t *head,
    const llmgw_members_table_t *table, const llmgw_members_lists_t *lists,
    char *error)
{
    int   fd, saved;
    char  tmp[PATH_MAX];

    if (path_with_suffix(tmp, path, ".tmp", error) == -1) {
        return -1;
    }

    (void) unlink(tmp);     /* left by a writer that was killed here */

    fd = open(tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, LLMGW_MEMBERS_MODE);
    if (fd == -1) {
        llmgw_members_system_error("open", tmp, error);
        return -1;
    }

    if (file_fill(fd, tmp, head, table, lists, error) == -1) {
        goto failed;
    }

    if (rename(tmp, path) == -1) {
        llmgw_members_system_error("rename", path, error);
        goto failed;
    }

    return fd;

failed:

    saved = errno;
    (void) unlink(tmp);
    close(fd);
    errno = saved;

    return -1;
}


int
llmgw_members_file_has(int fd, const void *what, size_t bytes, off_t at)
{
    size_t       some;
    const char  *p;
    char         buf[COMPARE_BYTES];

    for (p = what; bytes > 0; p += some, at += (off_t) some, bytes -= some) {
        some = bytes < sizeof(buf) ? bytes : sizeof(buf);

        if (llmgw_members_pread(fd, buf, some, at) != 1
            || memcmp(buf, p, some) != 0)
        {
            return 0;
        }
    }

    return 1;
}


static int
all_stands_in_file(int fd, const llmgw_members_head_t *head,
    const llmgw_members_table_t *table)
{
    uint64_t  sequence;

    sequence = head->sequence;

    return llmgw_members_file_has(fd, head, sizeof(*head), 0)
           && llmgw_members_file_has(fd, table->header,
                                     llmgw_members_table_bytes(table),
                                     llmgw_members_buffer_at(head, sequence))
           && llmgw_members_file_has(fd, table->slots,
                                     llmgw_members_table_slots_bytes(table),
                                     llmgw_members_slots_at(head, sequence));
}


const char *
llmgw_members_file_loss(const char *path, int fd,
    const llmgw_members_head_t *head, const llmgw_members_table_t *table,
    const llmgw_members_lists_t *lists)
{
    struct stat  ours, there;

    if (lstat(path, &there) == -1) {
        return "was removed";
    }

    if (fstat(fd, &ours) == -1
        || there.st_dev != ours.st_dev
        || there.st_ino != ours.st_ino)
    {
        return "was replaced";
    }

    if (ours.st_size != llmgw_members_file_bytes(head)) {
        return "has another size";
    }

    if ((ours.st_mode & 07777) != LLMGW_MEMBERS_MODE) {
        return "has another mode";
    }

    if (!all_stands_in_file(fd, head, table)
        || !llmgw_members_lists_stand(lists, fd, head))
    {
        return "was overwritten";
    }

    return NULL;
}
