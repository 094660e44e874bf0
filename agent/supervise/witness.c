
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervise/witness.h"


#define WITNESS_PAGE_BYTES  4096

/*
 * Limit of the thread's wake-ups, each of which takes it once around its loop.
 * The word changes when the futex is released and taken again, which no replica
 * does often: more is an attack.
 */
#define WITNESS_MAX_WAKES   1000

struct witness_s {
    struct ev_loop    *loop;
    ev_io              watch;
    int                event_fd;
    pthread_t          thread;
    _Atomic uint32_t  *word;        /* in the shared page */
    _Atomic uint32_t   is_ending;   /* a futex, too */
    witness_dead_pt    on_dead;
    void              *data;
};


/* Sleeps while both words have these values. */
static int
witness_sleep(witness_t *witness, uint32_t value)
{
    struct futex_waitv  waits[2] = {
        { .val = value, .uaddr = (uintptr_t) witness->word,
          .flags = FUTEX_32 },
        { .val = 0, .uaddr = (uintptr_t) &witness->is_ending,
          .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG }
    };

    if (syscall(SYS_futex_waitv, waits, 2, 0, NULL, 0) >= 0
        || errno == EAGAIN || errno == EINTR)
    {
        return 0;
    }

    return -1;
}


/*
 * Waits.  1: the holder died; 0: it released the futex, or cannot be waited
 * for.
 */
static int
witness_wait(witness_t *witness)
{
    int       wakes;
    uint32_t  value;

    for (wakes = 0; wakes < WITNESS_MAX_WAKES; wakes++) {
        value = atomic_load(witness->word);

        if (atomic_load(&witness->is_ending)) {
            return 0;
        }

        if (value & FUTEX_OWNER_DIED) {
            return 1;
        }

        if ((value & FUTEX_TID_MASK) == 0) {
            return 0;
        }

        /* without this bit, no waiter is woken */
        if (!(value & FUTEX_WAITERS)
            && !atomic_compare_exchange_strong(witness->word, &value,
                                               value | FUTEX_WAITERS))
        {
            continue;
        }

        if (witness_sleep(witness, value | FUTEX_WAITERS) != 0) {
            return 0;
        }
    }

    return 0;
}


static void *
witness_main(void *data)
{
    uint64_t    one = 1;
    ssize_t     n;
    witness_t  *witness = data;

    if (witness_wait(witness)) {
        n = write(witness->event_fd, &one, sizeof(one));
        (void) n;       /* an eventfd that is 0 accepts this */
    }

    return NULL;
}


static void
witness_heard(struct ev_loop *loop, ev_io *watch, int events)
{
    witness_t  *witness = watch->data;

    witness->on_dead(witness->data);
}


static _Atomic uint32_t *
witness_map(int fd)
{
    int           seals;
    void         *page;
    struct stat   st;

    seals = fcntl(fd, F_GET_SEALS);

    if (seals == -1 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) == -1
        || st.st_size < WITNESS_PAGE_BYTES)
    {
        return NULL;
    }

    page = mmap(NULL, WITNESS_PAGE_BYTES, PROT_READ|PROT_WRITE, MAP_SHARED,
                fd, 0);

    return page == MAP_FAILED ? NULL : page;
}


/*
 * Whether a living thread holds the futex.  Without a holder, nothing is known;
 * a holder that is dead while its process reports was a thread that ended
 * before, and would count as a death at each connection.
 */
static int
witness_is_held(const witness_t *witness)
{
    uint32_t  value;

    value = atomic_load(witness->word);

    return (value & FUTEX_TID_MASK) != 0 && !(value & FUTEX_OWNER_DIED);
}


/* The thread blocks all signals, since the loop handles them. */
static int
witness_start(witness_t *witness)
{
    int       rc;
    sigset_t  all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&witness->thread, NULL, witness_main, witness);
    pthread_sigmask(SIG_SETMASK, &before, NULL);

    return rc == 0 ? 0 : -1;
}


static void
witness_free(witness_t *witness)
{
    if (witness->event_fd != -1) {
        close(witness->event_fd);
    }

    if (witness->word != NULL) {
        munmap((void *) witness->word, WITNESS_PAGE_BYTES);
    }

    free(witness);
}


witness_t *
witness_create(struct ev_loop *loop, int fd, witness_dead_pt on_dead,
    void *data)
{
    witness_t  *witness;

    witness = calloc(1, sizeof(witness_t));

    if (witness == NULL) {
        close(fd);
        return NULL;
    }

    witness->loop = loop;
    witness->on_dead = on_dead;
    witness->data = data;
    witness->word = witness_map(fd);
    witness->event_fd = eventfd(0, EFD_NONBLOCK|EFD_CLOEXEC);
    close(fd);

    if (witness->word == NULL || witness->event_fd == -1
        || !witness_is_held(witness) || witness_start(witness) != 0)
    {
        witness_free(witness);
        return NULL;
    }

    ev_io_init(&witness->watch, witness_heard, witness->event_fd, EV_READ);
    witness->watch.data = witness;
    ev_set_priority(&witness->watch, -1);   /* after messages that were sent
                                               before */
    ev_io_start(loop, &witness->watch);

    return witness;
}


void
witness_destroy(witness_t *witness)
{
    ev_io_stop(witness->loop, &witness->watch);

    atomic_store(&witness->is_ending, 1);
    syscall(SYS_futex, &witness->is_ending, FUTEX_WAKE_PRIVATE, 1, NULL,
            NULL, 0);
    pthread_join(witness->thread, NULL);

    witness_free(witness);
}
