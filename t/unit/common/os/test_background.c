
/* Jobs of a background thread: their order, and how the thread ends. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/os/background.h"


#define N  100

typedef struct disk_s  disk_t;

typedef struct {
    background_job_t   job;         /* has to be the first member */
    disk_t            *disk;
    int                number;
} test_job_t;

struct disk_s {
    atomic_int   nbegun;
    int          written[N];
    atomic_int   nwritten;
    int          done[N];
    int          ndone;
    atomic_int   is_held;       /* the disk blocks */
    int          next;          /* the job that done() puts; 0: none */
    background_t  *bg;
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


static void put(background_t *bg, disk_t *disk, int number);


static void
job_done(background_job_t *job)
{
    int          next;
    disk_t      *disk;
    test_job_t  *test = (test_job_t *) job;

    disk = test->disk;
    disk->done[disk->ndone++] = test->number;
    free(test);

    next = disk->next;
    disk->next = 0;

    if (next != 0) {
        put(disk->bg, disk, next);
    }
}


static void
put(background_t *bg, disk_t *disk, int number)
{
    test_job_t  *test;

    test = malloc(sizeof(test_job_t));
    assert_non_null(test);
    test->job.run = job_write;
    test->job.done = job_done;
    test->disk = disk;
    test->number = number;
    background_put(bg, &test->job);
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
    background_t        *bg;
    struct ev_loop  *loop;

    loop = ev_loop_new(0);
    bg = background_create(loop);
    assert_non_null(bg);

    for (i = 0; i < N; i++) {
        put(bg, &disk, i);
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

    background_destroy(bg, 1.0);
    ev_loop_destroy(loop);
}


static void
end_waits_for_what_was_put(void **state)
{
    int              i;
    disk_t           disk = { 0 };
    background_t        *bg;
    struct ev_loop  *loop;

    loop = ev_loop_new(0);
    bg = background_create(loop);

    for (i = 0; i < N; i++) {
        put(bg, &disk, i);
    }

    background_destroy(bg, 10.0);
    assert_int_equal(disk.ndone, N);
    ev_loop_destroy(loop);
}


static void
end_waits_for_what_a_job_puts_when_it_is_done(void **state)
{
    disk_t           disk = { .next = 2 };
    struct ev_loop  *loop;

    loop = ev_loop_new(0);
    disk.bg = background_create(loop);
    put(disk.bg, &disk, 1);
    background_destroy(disk.bg, 10.0);
    assert_int_equal(disk.ndone, 2);
    assert_int_equal(disk.written[1], 2);
    ev_loop_destroy(loop);
}


static void
end_without_time_calls_no_done(void **state)
{
    disk_t           disk = { 0 };
    background_t    *bg;
    struct ev_loop  *loop;

    loop = ev_loop_new(0);
    bg = background_create(loop);
    put(bg, &disk, 1);
    wait_for(&disk.nwritten, 1);
    background_destroy(bg, 0);
    assert_int_equal(disk.ndone, 0);
    ev_loop_destroy(loop);
}


/* The blocked job is left to its thread; a job that has not begun
   never runs. */
static void
end_does_not_wait_for_ever(void **state)
{
    double            before;
    static disk_t     disk;
    background_t         *bg;
    struct ev_loop   *loop;

    loop = ev_loop_new(0);
    bg = background_create(loop);
    atomic_store(&disk.is_held, 1);
    put(bg, &disk, 1);
    put(bg, &disk, 2);
    wait_for(&disk.nbegun, 1);

    before = ev_time();
    background_destroy(bg, 0.2);
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
        cmocka_unit_test(end_waits_for_what_a_job_puts_when_it_is_done),
        cmocka_unit_test(end_without_time_calls_no_done),
        cmocka_unit_test(end_does_not_wait_for_ever),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
