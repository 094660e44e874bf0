
/*
 * A file of weights as shared memory.
 *
 * It is filled by sendfile(2): there is never a writable mapping, which would
 * keep the service from sealing it.  Memory from a service is accepted only if
 * it is sealed: no process can change or cut it then, so a mapping never gives
 * SIGBUS and a hash, once computed, holds.  For the same reason the descriptor
 * alone proves later that the bytes are those of the beginning.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/os/memory.h"
#include "replica/weights/weights_inner.h"


#define SLOT_SEALS       (F_SEAL_WRITE|F_SEAL_SHRINK|F_SEAL_GROW|F_SEAL_SEAL)
#define SLOT_CHUNK       ((size_t) 16 << 20)    /* after each, is_stopping is
                                                   checked */
#define SLOT_MAP_CHUNK   ((size_t) 64 << 20)
#define SLOT_FORMAT_BYTES  8
#define SLOT_LINES       10                     /* of progress */

/* Linux 5.14; glibc 2.35 is the first to name it. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#endif

#define slot_fail(error, ...)                                                 \
    (snprintf(error, WEIGHTS_ERROR_BYTES, __VA_ARGS__), -1)


const char *
slot_base(const char *file)
{
    const char  *slash;

    slash = strrchr(file, '/');

    return slash != NULL ? slash + 1 : file;
}


/* Logs a line for each tenth, and none if it is done in one piece. */
static void
slot_log_progress(const slot_t *slot, const log_t *log, uint64_t before,
    uint64_t now)
{
    if (before * SLOT_LINES / slot->bytes != now * SLOT_LINES / slot->bytes
        && now < slot->bytes)
    {
        log_write(log, LOG_INFO, "loaded %lu of %lu MB of \"%s\"", now >> 20,
                  slot->bytes >> 20, slot->name);
    }
}


static int
slot_copy(slot_t *slot, int in, const log_t *log,
    const atomic_int *is_stopping, char error[WEIGHTS_ERROR_BYTES])
{
    ssize_t   n;
    uint64_t  at;

    for (at = 0; at < slot->bytes; at += (uint64_t) n) {
        if (atomic_load(is_stopping)) {
            return slot_fail(error, "stopped");
        }

        n = sendfile(slot->fd, in, NULL, slot->bytes - at < SLOT_CHUNK
                                         ? slot->bytes - at : SLOT_CHUNK);

        if (n < 0 && errno == EINTR) {
            n = 0;
            continue;
        }

        if (n <= 0) {
            return slot_fail(error, "cannot copy \"%.120s\": %s", slot->name,
                             n == 0 ? "it became shorter" : strerror(errno));
        }

        slot_log_progress(slot, log, at, at + (uint64_t) n);
    }

    return 0;
}


/*
 * Checks that the copy fits into memory: in an update to other weights it may
 * not fit beside the first one, and later the kernel would kill a process.
 */
static int
slot_check_room(const slot_t *slot, char error[WEIGHTS_ERROR_BYTES])
{
    memory_t  memory;

    memory_read(&memory, "");

    if (slot->bytes <= memory.available_bytes) {
        return 0;
    }

    return slot_fail(error, "no memory for the %lu MB of \"%.120s\": %lu MB "
                     "are available", slot->bytes >> 20, slot->name,
                     memory.available_bytes >> 20);
}


/* Checks how the file begins, before the copy: committed memory stays, and no
   engine could serve another kind of file. */
static int
slot_check_format(const slot_t *slot, int in, const char *format,
    char error[WEIGHTS_ERROR_BYTES])
{
    char     begin[SLOT_FORMAT_BYTES];
    size_t   len;
    ssize_t  n;

    len = format != NULL ? strlen(format) : 0;
    n = pread(in, begin, len, 0);

    if (n < 0) {
        return slot_fail(error, "cannot read \"%.120s\": %s", slot->name,
                         strerror(errno));
    }

    if ((size_t) n < len || memcmp(begin, format, len) != 0) {
        return slot_fail(error, "\"%.120s\" is not a %s file", slot->name,
                         format);
    }

    return 0;
}


/* Makes the memfd, of the file's size. */
static int
slot_create(slot_t *slot, int in, const char *format,
    char error[WEIGHTS_ERROR_BYTES])
{
    struct stat  st;

    if (fstat(in, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0) {
        return slot_fail(error, "\"%.120s\" is not a file with weights",
                         slot->name);
    }

    slot->bytes = (uint64_t) st.st_size;

    if (slot_check_format(slot, in, format, error) != 0
        || slot_check_room(slot, error) != 0)
    {
        return -1;
    }

    slot->fd = memfd_create("llmgw-weights", MFD_CLOEXEC|MFD_ALLOW_SEALING);

    if (slot->fd < 0 || ftruncate(slot->fd, st.st_size) != 0) {
        return slot_fail(error, "no memory for the %lu MB of \"%.120s\": %s",
                         slot->bytes >> 20, slot->name, strerror(errno));
    }

    return 0;
}


int
slot_fill(slot_t *slot, const char *file, const char *format,
    const log_t *log, const atomic_int *is_stopping,
    char error[WEIGHTS_ERROR_BYTES])
{
    int  in, rc;

    snprintf(slot->name, SLOT_NAME_BYTES, "%s", slot_base(file));
    in = open(file, O_RDONLY|O_NONBLOCK|O_CLOEXEC);     /* it may be a FIFO */

    if (in < 0) {
        return slot_fail(error, "cannot open \"%.120s\": %s", file,
                         strerror(errno));
    }

    rc = slot_create(slot, in, format, error);

    if (rc == 0) {
        rc = slot_copy(slot, in, log, is_stopping, error);
    }

    close(in);

    return rc;
}


int
slot_note(slot_t *slot, char error[WEIGHTS_ERROR_BYTES])
{
    struct stat  st;

    slot->seals = fcntl(slot->fd, F_GET_SEALS);

    if (slot->seals < 0 || (slot->seals & SLOT_SEALS) != SLOT_SEALS) {
        return slot_fail(error, "what it gave for \"%.120s\" is not sealed "
                         "memory", slot->name);
    }

    if (fstat(slot->fd, &st) != 0 || (uint64_t) st.st_size != slot->bytes) {
        return slot_fail(error, "what it gave for \"%.120s\" has another "
                         "size than %lu bytes", slot->name, slot->bytes);
    }

    slot->dev = st.st_dev;
    slot->ino = st.st_ino;

    return 0;
}


int
slot_check(const slot_t *slot, char error[WEIGHTS_ERROR_BYTES])
{
    struct stat  st;

    if (fstat(slot->fd, &st) == 0 && st.st_dev == slot->dev
        && st.st_ino == slot->ino && (uint64_t) st.st_size == slot->bytes
        && fcntl(slot->fd, F_GET_SEALS) == slot->seals)
    {
        return 0;
    }

    return slot_fail(error, "descriptor %d is not \"%.120s\" any more",
                     slot->fd, slot->name);
}


static int
slot_populate(const slot_t *slot, const atomic_int *is_stopping)
{
    size_t  at, n;

    for (at = 0; at < slot->bytes && !atomic_load(is_stopping); at += n) {
        n = slot->bytes - at < SLOT_MAP_CHUNK ? slot->bytes - at
                                              : SLOT_MAP_CHUNK;

        if (madvise((char *) slot->map + at, n, MADV_POPULATE_READ) != 0
            && errno != EINVAL)         /* an older kernel: page by page */
        {
            return -1;
        }
    }

    return 0;
}


int
slot_map(slot_t *slot, int is_locked, const atomic_int *is_stopping,
    char error[WEIGHTS_ERROR_BYTES])
{
    void  *map;

    map = mmap(NULL, slot->bytes, PROT_READ, MAP_SHARED, slot->fd, 0);

    if (map == MAP_FAILED) {
        return slot_fail(error, "cannot map \"%.120s\": %s", slot->name,
                         strerror(errno));
    }

    slot->map = map;

    if (slot_populate(slot, is_stopping) != 0) {
        return slot_fail(error, "cannot map the pages of \"%.120s\": %s",
                         slot->name, strerror(errno));
    }

    if (atomic_load(is_stopping)) {
        return slot_fail(error, "stopped");
    }

    if (is_locked && mlock(map, slot->bytes) != 0) {
        return slot_fail(error, "cannot lock the %lu MB of \"%.120s\" in "
                         "memory: %s (ulimit -l)", slot->bytes >> 20,
                         slot->name, strerror(errno));
    }

    return 0;
}


void
slot_release(slot_t *slot)
{
    if (slot->map != NULL) {
        munmap(slot->map, slot->bytes);
        slot->map = NULL;
    }

    if (slot->fd != -1) {
        close(slot->fd);
        slot->fd = -1;
    }
}
