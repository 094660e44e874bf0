
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "replica/lifelock.h"


#define LIFELOCK_PAGE_BYTES  4096


/* Makes the page; it is sealed, so that it cannot vanish while the agent reads
   it. */
static int
lifelock_create_page(void)
{
    int  fd;

    fd = memfd_create("llmgw-lifelock", MFD_CLOEXEC|MFD_ALLOW_SEALING);

    if (fd == -1) {
        return -1;
    }

    if (ftruncate(fd, LIFELOCK_PAGE_BYTES) == -1
        || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK|F_SEAL_GROW|F_SEAL_SEAL) == -1)
    {
        close(fd);
        return -1;
    }

    return fd;
}


static int
lifelock_hold(pthread_mutex_t *mutex)
{
    int                  rc;
    pthread_mutexattr_t  attr;

    if (pthread_mutexattr_init(&attr) != 0) {
        return -1;
    }

    rc = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED)
         || pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST)
         || pthread_mutex_init(mutex, &attr)
         || pthread_mutex_lock(mutex);

    pthread_mutexattr_destroy(&attr);

    return rc ? -1 : 0;
}


void
lifelock_init(lifelock_t *lock)
{
    void  *page;

    lock->mutex = NULL;
    lock->fd = lifelock_create_page();

    if (lock->fd == -1) {
        return;
    }

    page = mmap(NULL, LIFELOCK_PAGE_BYTES, PROT_READ|PROT_WRITE, MAP_SHARED,
                lock->fd, 0);

    if (page != MAP_FAILED && lifelock_hold(page) == 0) {
        lock->mutex = page;
        return;
    }

    if (page != MAP_FAILED) {
        munmap(page, LIFELOCK_PAGE_BYTES);
    }

    close(lock->fd);
    lock->fd = -1;
}


void
lifelock_done(lifelock_t *lock)
{
    if (lock->mutex != NULL) {
        pthread_mutex_unlock(lock->mutex);
        munmap(lock->mutex, LIFELOCK_PAGE_BYTES);
        close(lock->fd);
    }

    lock->mutex = NULL;
    lock->fd = -1;
}
