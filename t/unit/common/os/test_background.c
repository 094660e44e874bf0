
/* Jobs of the writer's thread: their order, and the writer's end. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/os/background.h"


#define N  100

typedef struct disk_s  disk_t;

typedef struct {
    background_job_t   job;
    disk_t        *disk;
    int            number;
} test_job_t;

struct disk_s {
    test_job_t   jobs[N];       /* a writer that is ended leaves some */
    atomic_int   nbegun;
    int          written[N];
    atomic_int   nwritten;
    int          done[N];
    int          ndone;
    atomic_int   is_held;       /* the disk blocks */
};


static void
job_write(background_job_t *job)
{
    test_job_t  *test = (test_job_t *) job;

    atomic_fetch_add(&test->disk->nbegun, 1);

    while (atomic_load(&test->disk->is_held)) {
        usleep(1000);
    }

    test->disk->written[atomic_load(&test->disk->nwritten)] = test->number;
    atomic_fetch_add(&test->disk->nwritten, 1);
}


static void
job_done(background_job_t *job)
{
    test_job_t  *test = (test_job_t *) job;

    test->disk->done[test->disk->ndone++] = test->number;
}


static void
put(background_t *writer, disk_t *disk, int number)
{
    test_job_t  *test;

    test = &disk->jobs[number];
    test->job.run = job_write;
    test->job.done = job_done;
    test->disk = disk;
    test->number = number;
    background_put(writer, &test->job);
}


static void
wait_for(atomic_int *count, int value)
{
    while (atomic_load(count) < value) {
        usleep(1000);
    }
}


static void
jobs_are_done_in_order_and_from_the_loop(void **state)
{
    int              i;
    disk_t           disk = { 0 };
    background_t        *writer;
    struct ev_loop  *loop;

    loop = ev_loop_new(0);
    writer = background_create(loop);
    assert_non_null(writer);

    for (i = 0; i < N; i++) {
        put(writer, &disk, i);
    }

    wait_for(&disk.nwritten, N);
    assert_int_equal(disk.ndone, 0);

    while (disk.ndone < N) {
        ev_run(loop, EVRUN_ONCE);
    }

    for (i = 0; i < N; i++) {
        assert_int_equal(disk.written[i], i);
        assert_int_equal(disk.done[i], i);
    }

    background_destroy(writer, 1.0);
    ev_loop_destroy(loop);
}


static void
end_waits_for_what_was_put(void **state)
{
    int              i;
    disk_t           disk = { 0 };
    background_t        *writer;
    struct ev_loop  *loop;

    loop = ev_loop_new(0);
    writer = background_create(loop);

    for (i = 0; i < N; i++) {
        put(writer, &disk, i);
    }

    background_destroy(writer, 10.0);
    assert_int_equal(disk.ndone, N);
    ev_loop_destroy(loop);
}


/* The blocked job is left to the thread; one not begun never runs. */
static void
end_does_not_wait_for_ever(void **state)
{
    double            before;
    static disk_t     disk;
    background_t         *writer;
    struct ev_loop   *loop;

    loop = ev_loop_new(0);
    writer = background_create(loop);
    atomic_store(&disk.is_held, 1);
    put(writer, &disk, 1);
    put(writer, &disk, 2);
    wait_for(&disk.nbegun, 1);

    before = ev_time();
    background_destroy(writer, 0.2);
    assert_true(ev_time() - before >= 0.19);
    assert_true(ev_time() - before < 5.0);
    assert_int_equal(disk.ndone, 0);
    ev_loop_destroy(loop);

    atomic_store(&disk.is_held, 0);
    wait_for(&disk.nwritten, 1);
    usleep(100000);
    assert_int_equal(atomic_load(&disk.nbegun), 1);
    assert_int_equal(disk.ndone, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(jobs_are_done_in_order_and_from_the_loop),
        cmocka_unit_test(end_waits_for_what_was_put),
        cmocka_unit_test(end_does_not_wait_for_ever),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
