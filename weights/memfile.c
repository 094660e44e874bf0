
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>

#include "weights/memfile.h"


#define MEMFILE_SEALS                                                         \
    (F_SEAL_WRITE|F_SEAL_SHRINK|F_SEAL_GROW|F_SEAL_SEAL)

#define MEMFILE_BLOCK_BYTES  512        /* of st_blocks, on any system */


const char *
memfile_look(memfile_t *file, int fd)
{
    struct stat  st;

    if (fd == -1) {
        return "no_fd";
    }

    file->fd = fd;
    file->seals = fcntl(fd, F_GET_SEALS);

    if (file->seals == -1 || fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
        return "not_memfd";
    }

    if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY) {
        return "not_readable";
    }

    if (st.st_size < 1 || (uint64_t) st.st_size > MEMFILE_MAX_BYTES) {
        return "bad_size";
    }

    file->dev = st.st_dev;
    file->ino = st.st_ino;
    file->bytes = (uint64_t) st.st_size;
    file->held_bytes = (uint64_t) st.st_blocks * MEMFILE_BLOCK_BYTES;

    return NULL;
}


int
memfile_is_sealed(const memfile_t *file)
{
    return (file->seals & MEMFILE_SEALS) == MEMFILE_SEALS;
}


int
memfile_is_whole(const memfile_t *file)
{
    return file->held_bytes >= file->bytes;
}


/* A file on a tmpfs, which cannot be sealed, has F_SEAL_SEAL alone from its
   beginning. */
const char *
memfile_can_seal(const memfile_t *file)
{
    if (memfile_is_sealed(file)) {
        return NULL;
    }

    return (file->seals & F_SEAL_SEAL)
           || (fcntl(file->fd, F_GETFL) & O_ACCMODE) != O_RDWR
           ? "not_sealable" : NULL;
}


/* Holes are looked for twice: before the file is sealed, so that the client can
   fill them, and afterwards, when none can be made any more. */
const char *
memfile_seal(memfile_t *file)
{
    memfile_t  sealed;

    if (memfile_look(&sealed, file->fd) == NULL
        && !memfile_is_whole(&sealed))
    {
        return "sparse";
    }

    if (fcntl(file->fd, F_ADD_SEALS, MEMFILE_SEALS) == -1 && errno == EBUSY) {
        return "mapped";
    }

    if (memfile_look(&sealed, file->fd) != NULL
        || !memfile_is_sealed(&sealed))
    {
        return "not_sealable";
    }

    if (sealed.bytes != file->bytes) {
        return "bad_size";
    }

    if (!memfile_is_whole(&sealed)) {
        return "sparse";
    }

    *file = sealed;

    return NULL;
}


int
memfile_is_same(const memfile_t *a, const memfile_t *b)
{
    return a->dev == b->dev && a->ino == b->ino;
}
